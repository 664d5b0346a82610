"""Errors about one request: its keys, operations, revisions, size, lease or watch.

Knows: etcd's text for each, and what it proves. Never knows: how an answer finds its class (`table.py`).
"""

from etcd_aio.errors.families import (
    FailedPreconditionError,
    InvalidArgumentError,
    LeaseError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    ServerCancelledError,
    ServerDeadlineExceededError,
    WatchError,
)
from etcd_aio.errors.retry_hint import RetryHint
from etcd_aio.errors.status import StatusCode


class EmptyKeyError(InvalidArgumentError):
    """The key is empty, where only a real one will do."""

    default_message = "etcdserver: key is not provided"


class KeyNotFoundError(InvalidArgumentError, KeyError):
    """A put with `ignore_value` or `ignore_lease` names a key that does not exist, so there is nothing to keep."""

    default_message = "etcdserver: key not found"


class ValueProvidedError(InvalidArgumentError):
    """A put with `ignore_value` carries a value."""

    default_message = "etcdserver: value is provided"


class LeaseProvidedError(InvalidArgumentError):
    """A put with `ignore_lease` carries a lease."""

    default_message = "etcdserver: lease is provided"


class TooManyOpsError(InvalidArgumentError):
    """A txn has more operations than the server's `--max-txn-ops` (128 unless set)."""

    default_message = "etcdserver: too many operations in txn request"


class DuplicateKeyError(InvalidArgumentError):
    """One branch of a txn writes the same key twice."""

    default_message = "etcdserver: duplicate key given in txn request"


class InvalidSortOptionError(InvalidArgumentError):
    """The sort order or its target is not one that the server knows."""

    default_message = "etcdserver: invalid sort option"


class InvalidClientAPIVersionError(InvalidArgumentError):
    """The version that the client sent of itself is not readable text."""

    default_message = "etcdserver: invalid client api version"


class RequestTooLargeError(InvalidArgumentError):
    """The request is larger than the server's `--max-request-bytes` (1.5 MiB unless set)."""

    default_message = "etcdserver: request is too large"


class TooManyRequestsError(ResourceExhaustedError):
    """The member has fallen too far behind in carrying out what is agreed, and takes no more for now."""

    default_message = "etcdserver: too many requests"
    retryable = True
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


class CompactedError(OutOfRangeError):
    """The revision was compacted: its history is gone.

    Attributes:
        compact_revision: the oldest revision that can still be watched; 0 when unknown, since only the answer to a
            watch carries it.
    """

    default_message = "etcdserver: mvcc: required revision has been compacted"
    is_definite = True

    def __init__(self, message: str = "", *, code: StatusCode | None = None, compact_revision: int = 0) -> None:
        super().__init__(message, code=code)
        self.compact_revision = compact_revision


class FutureRevisionError(OutOfRangeError):
    """The revision does not exist yet."""

    default_message = "etcdserver: mvcc: required revision is a future revision"
    is_definite = True


class NoSpaceError(ResourceExhaustedError):
    """The database has reached the server's `--quota-backend-bytes`: compact, defragment, disarm the alarm.

    It proves nothing: a write that found room when it was proposed, and none when it was carried out, is carried out
    and refused all the same. etcd says the same to those that it never looked at.
    """

    default_message = "etcdserver: mvcc: database space exceeded"


class LeaseNotFoundError(LeaseError, NotFoundError):
    """The lease does not exist: it was never granted, was revoked, or has expired."""

    default_message = "etcdserver: requested lease not found"
    is_definite = True


class LeaseExistsError(LeaseError, FailedPreconditionError):
    """A lease with this ID exists already."""

    default_message = "etcdserver: lease already exists"
    is_definite = True


class LeaseTTLTooLargeError(LeaseError, OutOfRangeError, ValueError):
    """The TTL is above what etcd allows, 9 000 000 000 seconds."""

    default_message = "etcdserver: too large lease TTL"
    is_definite = True


class EmptyWatcherRangeError(WatchError, InvalidArgumentError):
    """The watched range holds no key, since its end is not behind its start."""

    default_message = "mvcc: watcher range is empty"


class DuplicateWatchIDError(WatchError, InvalidArgumentError):
    """The stream has a watcher with this watch ID already."""

    default_message = "mvcc: duplicate watch ID provided on the WatchStream"


class WatchCancelledError(WatchError, ServerCancelledError):
    """The server ended the watch, or the stream of all watches, and gave no reason that means more."""

    default_message = "etcdserver: watch canceled"


class RequestCancelledError(ServerCancelledError):
    """The server cancelled the request while it was waiting for its outcome."""

    default_message = "etcdserver: request canceled"


class RequestDeadlineExceededError(ServerDeadlineExceededError):
    """The request's deadline passed on the server's side."""

    default_message = "etcdserver: context deadline exceeded"
