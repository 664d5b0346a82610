"""Errors of recipes: transactions as functions, counters, barriers, groups, schedules."""

from etcd_aio.errors.base import EtcdError


class TxnConflictError(EtcdError):
    """A transaction was given up: in every attempt another writer had changed what it had read. Nothing was applied.

    Attributes:
        attempts_made: how many commits were sent.
        conflicts: the keys that the last attempt conflicted on.
    """

    default_message = "the transaction conflicted with others in every attempt"
    retryable = True

    def __init__(self, message: str = "", *, attempts_made: int = 0, conflicts: tuple[bytes, ...] = ()) -> None:
        super().__init__(message)
        self.attempts_made = attempts_made
        self.conflicts = conflicts


class CounterError(EtcdError):
    """Base class for errors of counters. Raised itself if the value of the key is not a whole number."""

    default_message = "the counter failed"


class CounterLimitError(CounterError, ValueError):
    """An addition would have left the limits of the counter, and was not made.

    Attributes:
        value: the value that the counter had.
    """

    default_message = "the counter would have left its limits"

    def __init__(self, message: str = "", *, value: int = 0) -> None:
        super().__init__(message)
        self.value = value


class BarrierError(EtcdError):
    """Base class for errors of barriers. Raised itself if a barrier is released that this object does not hold."""

    default_message = "the barrier failed"


class BarrierTimeoutError(BarrierError, TimeoutError):
    """The others did not come to the barrier, or did not leave it, within `timeout`. The own key is deleted.

    The `__cause__` is the last error on the way, if a call had failed.
    """

    default_message = "the barrier did not open in time"
    retryable = True


class TooManyParticipantsError(BarrierError):
    """As many participants as the double barrier takes are there already. The own key is deleted."""

    default_message = "the double barrier has all its participants"


class GroupError(EtcdError):
    """Base class for errors of groups."""

    default_message = "the group failed"


class MemberConflictError(GroupError):
    """The group has a member of this name, of another process or another object, which is left alone.

    In `error` of a membership it may also say that another client has deleted the key, which is then put again.

    Attributes:
        lease: the id of the lease of that member; 0 if it has none.
    """

    default_message = "the group has another member of this name"
    retryable = True

    def __init__(self, message: str = "", *, lease: int = 0) -> None:
        super().__init__(message)
        self.lease = lease


class EmptyGroupError(GroupError, LookupError):
    """A group has no member, so none can be chosen."""

    default_message = "the group has no member"
    retryable = True


class ScheduleError(EtcdError):
    """The state of a schedule cannot be read, or its ticks do not grow."""

    default_message = "the schedule failed"
