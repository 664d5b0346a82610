"""Errors of locks and elections.

Each message names the lock or the election, and what has happened to the key or the lease that stands for it.
"""

from etcd_aio.errors.base import EtcdError


class LockError(EtcdError):
    """Base class for errors of locks, read-write locks and semaphores.

    Raised itself if the name is used in different ways: for a lock and a semaphore, or for semaphores with different
    limits.
    """

    default_message = "the lock failed"


class LockTimeoutError(LockError, TimeoutError):
    """The lock was not acquired within its `timeout`. Nothing of the attempt is left: its key is deleted.

    The `__cause__` is the last error on the way, if a call had failed; otherwise others held the lock all the time.
    """

    default_message = "the lock was not acquired in time"
    retryable = True


class LockLostError(LockError):
    """The lock was lost, while it was held or while the caller was waiting for it.

    From now on another contender may hold it. Writes that were made through `lock.fenced` are safe; the effects of
    anything else that the block did lately must be checked. The `__cause__` is the underlying error: the one that
    prevented the renewals, `LeaseExpiredError`, or the loss of the session; None if renewals were sent and not
    answered yet.
    """

    default_message = "the lock was lost"


class NotHeldError(LockError, RuntimeError):
    """The lock is not held, so that it cannot be released, and has no fencing token."""

    default_message = "the lock is not held"


class ElectionError(EtcdError):
    """Base class for errors of elections."""

    default_message = "the election failed"


class ElectionTimeoutError(ElectionError, TimeoutError):
    """The candidate did not lead within its `timeout`. Nothing of the attempt is left: its key is deleted.

    The `__cause__` is the last error on the way, if a call had failed; otherwise others led all the time.
    """

    default_message = "this candidate did not lead in time"
    retryable = True


class NotLeaderError(ElectionError):
    """The candidate is not the leader, so that it can neither proclaim nor resign."""

    default_message = "this candidate is not the leader"


class LeadershipLostError(ElectionError):
    """The leadership was lost, or the candidacy while the caller was waiting for it.

    From now on another candidate may lead. Writes that were made through `leadership.fenced` are safe. The `__cause__`
    is the underlying error, such as `LeaseExpiredError`.
    """

    default_message = "the leadership was lost"
