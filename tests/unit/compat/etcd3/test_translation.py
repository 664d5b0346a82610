"""compat/etcd3/_translation.py, compat/etcd3/exceptions.py: errors by their status, with and without grpc."""

import enum
import pickle
import sys
import types
from typing import Any

import pytest

from etcd_aio.compat.etcd3 import exceptions
from etcd_aio.compat.etcd3._translation import rpc_error, rpc_errors, translated, translation
from etcd_aio.errors import (
    ClientClosedError,
    CompactedError,
    EtcdError,
    EtcdTimeoutError,
    InternalServerError,
    InvalidRequestError,
    LeaseExistsError,
    NoAvailableEndpointsError,
    NoLeaderError,
    StatusCode,
)


class GrpcStatusCode(enum.Enum):
    """The status codes of grpc are other objects than those of etcd_aio."""

    OUT_OF_RANGE = (11, "out of range")
    UNAVAILABLE = (14, "unavailable")
    DATA_LOSS = (15, "data loss")


@pytest.fixture
def grpc(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module in the place of grpc: the program has imported it."""
    module: Any = types.ModuleType("grpc")
    module.StatusCode = GrpcStatusCode
    module.RpcError = type("RpcError", (Exception,), {})
    monkeypatch.setitem(sys.modules, "grpc", module)
    return module


@pytest.fixture
def no_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "grpc", raising=False)


BY_STATUS = [
    (NoAvailableEndpointsError(), exceptions.ConnectionFailedError),
    (NoLeaderError(), exceptions.ConnectionFailedError),
    (EtcdTimeoutError(), exceptions.ConnectionTimeoutError),
    (LeaseExistsError(), exceptions.PreconditionFailedError),
    (InternalServerError(), exceptions.InternalServerError),
]


@pytest.mark.parametrize(("error", "kind"), BY_STATUS, ids=lambda value: getattr(value, "__name__", ""))
def test_four_statuses_have_exceptions(error: EtcdError, kind: type[Exception], no_grpc: None) -> None:
    with pytest.raises(exceptions.Etcd3Exception) as raised, translation:
        raise error
    assert type(raised.value) is kind
    assert raised.value.__cause__ is error
    assert str(error) in raised.value.args[0]


def test_another_status_is_an_rpc_error(no_grpc: None) -> None:
    with pytest.raises(exceptions.RpcError) as raised, translation:
        raise CompactedError
    assert (raised.value.code(), raised.value.code().name) == (StatusCode.OUT_OF_RANGE, "OUT_OF_RANGE")
    assert "compacted" in raised.value.details()
    assert str(raised.value) == f"OUT_OF_RANGE: {raised.value.details()}"


def test_with_grpc_it_is_a_grpc_error_too(grpc: Any) -> None:
    with pytest.raises(grpc.RpcError) as raised, translation:
        raise CompactedError
    assert isinstance(raised.value, exceptions.RpcError)
    assert raised.value.code() is grpc.StatusCode.OUT_OF_RANGE


def test_a_stub_raises_every_status_as_an_rpc_error(grpc: Any) -> None:
    with pytest.raises(exceptions.RpcError) as raised, rpc_errors:
        raise NoLeaderError
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    assert isinstance(translated(raised.value), exceptions.ConnectionFailedError)


def test_errors_of_grpc_itself_are_translated(grpc: Any) -> None:
    class Raised(grpc.RpcError):  # type: ignore[misc] # made in the fixture
        def __init__(self, status: str) -> None:
            self.status = status

        def code(self) -> Any:
            return grpc.StatusCode[self.status]

    assert type(translated(Raised("UNAVAILABLE"))) is exceptions.ConnectionFailedError
    unknown, without_status = Raised("DATA_LOSS"), grpc.RpcError()
    assert translated(unknown) is unknown
    assert translated(without_status) is without_status


@pytest.mark.parametrize("error", [ClientClosedError(), InvalidRequestError("x"), TypeError("x")], ids=type)
def test_mistakes_of_the_program_stay_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as raised, translation:
        raise error
    assert raised.value is error is rpc_error(error)
    assert raised.value.__cause__ is None


def test_a_program_that_ends_is_left_alone() -> None:
    with pytest.raises(KeyboardInterrupt), translation:
        raise KeyboardInterrupt


def test_exceptions_have_their_texts_and_can_be_pickled() -> None:
    assert str(exceptions.ConnectionFailedError("why")) == "etcd connection failed"
    assert str(exceptions.ConnectionTimeoutError()) == "etcd connection timeout"
    compacted = pickle.loads(pickle.dumps(exceptions.RevisionCompactedError(7)))
    assert (type(compacted), compacted.compacted_revision) == (exceptions.RevisionCompactedError, 7)
