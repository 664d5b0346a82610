"""Errors of queues and work queues."""

from etcd_aio.errors.base import EtcdError


class QueueError(EtcdError):
    """Base class for errors of queues and work queues."""

    default_message = "the queue failed"


class QueueTimeoutError(QueueError, TimeoutError):
    """The queue had no item for the caller within `timeout`. Nothing was taken."""

    default_message = "the queue had no item in time"
    retryable = True


class ItemInDoubtError(QueueError):
    """The answer to a write was lost: whether items were put, or taken by this call, is not known.

    `maybe_applied` is True, and the `__cause__` is the error of the write, if it failed.

    Attributes:
        keys: of the items.
        revision: for items that may have been taken: they were there at this revision of the store, so
            `client.get(key, revision=error.revision)` reads them, unless it is compacted. 0 for items that may have
            been put.
    """

    default_message = "whether the items were put or taken is not known"

    def __init__(self, message: str = "", *, keys: tuple[bytes, ...] = (), revision: int = 0) -> None:
        super().__init__(message)
        self.keys = keys
        self.revision = revision
        self.maybe_applied = True


class JobLostError(QueueError):
    """The job is not this worker's any more: its lease or its claim is lost, or the job has ended.

    Another worker may have the job. If `maybe_applied` is True, the job may have been ended by this worker.
    """

    default_message = "the job is lost"
