"""Errors of exactly-once writes."""

from etcd_aio.errors.base import EtcdError


class OutcomeUnknownError(EtcdError):
    """The outcome of an exactly-once write is not known yet; `settle()` of the same object finds it out.

    After this error alone the write may still be applied. If `settle()` raises it too, the history that would tell is
    compacted or lost: then no copy can be applied any more, and whether one was cannot be known.
    """

    default_message = "it is not known whether the write was applied: settle() finds out"

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.maybe_applied = True


class ResultLostError(EtcdError):
    """An exactly-once write was answered, but what its operations returned is compacted.

    The write was applied, so `maybe_applied` is True; a txn has run the branch that `succeeded` tells.

    Attributes:
        revision: the revision at which it was applied.
        succeeded: whether a txn ran its `then`; True for other writes.
    """

    default_message = "the write was applied, but the history that its result is read from is compacted"

    def __init__(self, message: str = "", *, revision: int = 0, succeeded: bool = True) -> None:
        super().__init__(message)
        self.maybe_applied = True
        self.revision = revision
        self.succeeded = succeeded
