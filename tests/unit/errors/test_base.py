"""The root of the tree and this side's own errors: builtins, notes, pickling."""

import copy
import pickle
from types import MappingProxyType

import pytest

from etcd_aio.errors import (
    Attempt,
    ClientClosedError,
    ClientUsageError,
    ClusterChangedError,
    ConfigError,
    ConnectError,
    ConnectionLostError,
    Delivery,
    DiscoveryError,
    EtcdError,
    EtcdTimeoutError,
    ForkedError,
    InvalidRequestError,
    LeaseExpiredError,
    LeaseLostError,
    MalformedReplyError,
    NoAvailableEndpointsError,
    OldClusterError,
    ReplyTooLargeError,
    SnapshotChecksumError,
    StatusCode,
    StoreRolledBackError,
    TLSError,
    TokenUnavailableError,
    TransportError,
    UnknownEndpointError,
    WrongLoopError,
)

OWN = (
    *(ConfigError, InvalidRequestError, ClientUsageError, ClientClosedError, WrongLoopError, ForkedError),
    *(TransportError, ConnectError, TLSError, ConnectionLostError, MalformedReplyError, ReplyTooLargeError),
    *(ClusterChangedError, NoAvailableEndpointsError, EtcdTimeoutError),
    *(LeaseLostError, LeaseExpiredError, SnapshotChecksumError, UnknownEndpointError, TokenUnavailableError),
    *(DiscoveryError, OldClusterError, StoreRolledBackError),
)


def attempts(count: int) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(f"m{number}:2379", StatusCode.UNAVAILABLE, Delivery.UNKNOWN, 0.001 * number, "gone")
        for number in range(1, count + 1)
    )


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (ConfigError, (ValueError,)),
        (InvalidRequestError, (ValueError,)),
        (UnknownEndpointError, (InvalidRequestError, ValueError)),
        (ClientClosedError, (ClientUsageError, RuntimeError)),
        (WrongLoopError, (ClientUsageError, RuntimeError)),
        (ForkedError, (ClientUsageError, RuntimeError)),
        (ConnectError, (TransportError, ConnectionError)),
        (TLSError, (ConnectError,)),
        (ConnectionLostError, (TransportError,)),
        (MalformedReplyError, (TransportError,)),
        (ReplyTooLargeError, (TransportError,)),
        (ClusterChangedError, (TransportError,)),
        (NoAvailableEndpointsError, (TransportError,)),
        (EtcdTimeoutError, (TimeoutError,)),
        (LeaseExpiredError, (LeaseLostError,)),
    ],
)
def test_the_isinstance_relations(error: type[EtcdError], parents: tuple[type[Exception], ...]) -> None:
    for parent in (*parents, EtcdError):
        with pytest.raises(parent):
            raise error


def test_only_what_may_pass_by_itself_is_retryable() -> None:
    assert {error for error in OWN if error.retryable} == {
        *(TransportError, ConnectError, TLSError, ConnectionLostError, NoAvailableEndpointsError, EtcdTimeoutError),
        *(SnapshotChecksumError, DiscoveryError),
    }


def test_a_new_error_has_its_defaults_and_no_history() -> None:
    error = EtcdTimeoutError()
    assert str(error) == error.message == "the call's deadline passed"
    assert error.code is StatusCode.DEADLINE_EXCEEDED
    assert (error.endpoint, error.attempts, error.maybe_applied, error.member_id) == ("", (), False, 0)
    assert not hasattr(error, "__notes__")


def test_a_given_message_and_code_go_before_the_defaults() -> None:
    error = ConnectionLostError("reset", code=StatusCode.CANCELLED)
    assert str(error) == "reset"
    assert error.code is StatusCode.CANCELLED
    # OK is the number 0, and a code all the same.
    assert EtcdTimeoutError(code=StatusCode.OK).code is StatusCode.OK


def test_history_is_kept_and_noted_oldest_first() -> None:
    error = EtcdTimeoutError()
    assert error.with_history(attempts(2), maybe_applied=False) is error
    assert error.attempts == attempts(2)
    assert error.endpoint == "m2:2379"
    assert not error.maybe_applied
    assert error.__notes__ == [
        "attempt 1 on m1:2379: UNAVAILABLE (unknown) after 1 ms: gone",
        "attempt 2 on m2:2379: UNAVAILABLE (unknown) after 2 ms: gone",
    ]


def test_history_without_attempts_leaves_the_endpoint_alone() -> None:
    error = ConnectError()
    error.endpoint = "m9:2379"
    error.with_history((), maybe_applied=False)
    assert error.endpoint == "m9:2379"
    assert not hasattr(error, "__notes__")


def test_an_open_outcome_is_noted_last() -> None:
    error = EtcdTimeoutError().with_history(attempts(1), maybe_applied=True)
    assert error.maybe_applied
    assert error.__notes__[-1].startswith("The request may have been applied")


@pytest.mark.parametrize(("count", "left_out"), [(10, 0), (11, 1), (25, 15)])
def test_only_the_last_ten_attempts_are_noted_and_the_rest_counted(count: int, left_out: int) -> None:
    error = EtcdTimeoutError().with_history(attempts(count), maybe_applied=False)
    assert len(error.attempts) == count
    assert error.endpoint == f"m{count}:2379"
    notes = list(error.__notes__)
    if left_out:
        assert notes.pop(0) == f"({left_out} earlier attempts left out)"
    assert [note.split(":")[0] for note in notes] == [
        f"attempt {number} on m{number}" for number in range(left_out + 1, count + 1)
    ]


@pytest.mark.parametrize("kind", OWN)
def test_every_error_survives_pickling_and_copying(kind: type[EtcdError]) -> None:
    error = kind("went wrong").with_history(attempts(12), maybe_applied=True)
    error.member_id = 7
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is kind
        assert str(twin) == "went wrong"
        assert vars(twin) == vars(error)
        assert twin.__notes__ == error.__notes__


def test_no_available_endpoints_names_every_endpoint_and_its_cause() -> None:
    error = NoAvailableEndpointsError(errors={"m1:2379": OSError("refused"), "m2:2379": TimeoutError()})
    assert str(error) == "no endpoint is available: m1:2379: OSError: refused; m2:2379: TimeoutError"
    assert list(error.errors) == ["m1:2379", "m2:2379"]
    assert error.code is StatusCode.UNAVAILABLE


def test_no_available_endpoints_keeps_a_copy_that_cannot_be_changed() -> None:
    causes: dict[str, BaseException] = {"m1:2379": OSError("refused")}
    error = NoAvailableEndpointsError(errors=causes)
    causes.clear()
    assert list(error.errors) == ["m1:2379"]
    assert type(error.errors) is MappingProxyType


def test_no_available_endpoints_survives_pickling_with_its_causes() -> None:
    error = NoAvailableEndpointsError("none left", errors={"m1:2379": ConnectError("refused")})
    error.with_history(attempts(1), maybe_applied=False)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is NoAvailableEndpointsError
        assert str(twin) == str(error) == "none left: m1:2379: ConnectError: refused"
        assert twin.args == error.args
        assert type(twin.errors["m1:2379"]) is ConnectError
        assert str(twin.errors["m1:2379"]) == "refused"
        assert twin.attempts == error.attempts
        assert twin.__notes__ == error.__notes__
        assert type(twin.errors) is MappingProxyType


def test_no_available_endpoints_without_causes_says_only_that() -> None:
    assert str(NoAvailableEndpointsError()) == "no endpoint is available"
    assert dict(NoAvailableEndpointsError().errors) == {}
