"""errors/concurrency.py: errors of locks and elections: their families, their builtins, and copies of them."""

import copy
import pickle

import pytest

from etcd_aio.errors import (
    ElectionError,
    EtcdError,
    LeadershipLostError,
    LockError,
    LockLostError,
    LockTimeoutError,
    NotHeldError,
    NotLeaderError,
)


@pytest.mark.parametrize(
    ("error", "bases"),
    [
        (LockTimeoutError, (LockError, TimeoutError)),
        (LockLostError, (LockError,)),
        (NotHeldError, (LockError, RuntimeError)),
        (NotLeaderError, (ElectionError,)),
        (LeadershipLostError, (ElectionError,)),
    ],
)
def test_each_has_its_family_and_survives_a_copy(error: type[EtcdError], bases: tuple[type, ...]) -> None:
    assert issubclass(error, bases)
    assert error().message
    for twin in (pickle.loads(pickle.dumps(error("lock 'a': gone"))), copy.copy(error("lock 'a': gone"))):
        assert (type(twin), twin.message, twin.maybe_applied) == (error, "lock 'a': gone", False)


def test_only_waiting_again_can_help_by_itself() -> None:
    assert LockTimeoutError().retryable
    assert not LockLostError().retryable
    assert not LeadershipLostError().retryable
