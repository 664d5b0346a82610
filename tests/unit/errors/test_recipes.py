"""Errors of recipes: their families, their builtins, and what they carry, also through a pickle."""

import pickle

from etcd_aio.errors import (
    BarrierError,
    BarrierTimeoutError,
    CounterError,
    CounterLimitError,
    EmptyGroupError,
    EtcdError,
    GroupError,
    MemberConflictError,
    ScheduleError,
    TooManyParticipantsError,
    TxnConflictError,
)


def test_a_conflict_names_the_keys() -> None:
    error = TxnConflictError("others were faster", attempts_made=3, conflicts=(b"a",))
    assert (error.retryable, error.maybe_applied) == (True, False)
    twin = pickle.loads(pickle.dumps(error))
    assert (twin.attempts_made, twin.conflicts, twin.message) == (3, (b"a",), "others were faster")


def test_families() -> None:
    assert pickle.loads(pickle.dumps(CounterLimitError(value=7))).value == 7
    assert pickle.loads(pickle.dumps(MemberConflictError(lease=7))).lease == 7
    for error, bases in (
        (CounterLimitError, (CounterError, ValueError)),
        (BarrierTimeoutError, (BarrierError, TimeoutError)),
        (TooManyParticipantsError, (BarrierError,)),
        (TxnConflictError, (EtcdError,)),
        (MemberConflictError, (GroupError,)),
        (EmptyGroupError, (GroupError, LookupError)),
        (ScheduleError, (EtcdError,)),
    ):
        assert issubclass(error, bases)
        assert error().message
    assert BarrierTimeoutError().retryable
    assert not TooManyParticipantsError().retryable
