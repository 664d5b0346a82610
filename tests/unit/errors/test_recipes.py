"""errors/recipes.py, errors/queues.py: families, builtins, and what they carry, also through a pickle."""

import pickle

from etcd_aio.errors import (
    BarrierError,
    BarrierTimeoutError,
    CounterError,
    CounterLimitError,
    EmptyGroupError,
    EtcdError,
    GroupError,
    ItemInDoubtError,
    JobLostError,
    MemberConflictError,
    QueueError,
    QueueTimeoutError,
    ScheduleError,
    TooManyParticipantsError,
    TxnConflictError,
)


def test_a_conflict_names_the_keys() -> None:
    error = TxnConflictError("others were faster", attempts_made=3, conflicts=(b"a",))
    assert (error.retryable, error.maybe_applied) == (True, False)
    twin = pickle.loads(pickle.dumps(error))
    assert (twin.attempts_made, twin.conflicts, twin.message) == (3, (b"a",), "others were faster")


def test_items_in_doubt_are_named() -> None:
    error = ItemInDoubtError("the answer was lost", keys=(b"q/1",), revision=7)
    assert error.maybe_applied
    twin = pickle.loads(pickle.dumps(error))
    assert (twin.keys, twin.revision, twin.maybe_applied) == ((b"q/1",), 7, True)


def test_families() -> None:
    assert pickle.loads(pickle.dumps(CounterLimitError(value=7))).value == 7
    assert pickle.loads(pickle.dumps(MemberConflictError(lease=7))).lease == 7
    for error, bases in (
        (CounterLimitError, (CounterError, ValueError)),
        (BarrierTimeoutError, (BarrierError, TimeoutError)),
        (TooManyParticipantsError, (BarrierError,)),
        (TxnConflictError, (EtcdError,)),
        (QueueTimeoutError, (QueueError, TimeoutError)),
        (ItemInDoubtError, (QueueError,)),
        (JobLostError, (QueueError,)),
        (MemberConflictError, (GroupError,)),
        (EmptyGroupError, (GroupError, LookupError)),
        (ScheduleError, (EtcdError,)),
    ):
        assert issubclass(error, bases)
        assert error().message
    assert BarrierTimeoutError().retryable
    assert not TooManyParticipantsError().retryable
