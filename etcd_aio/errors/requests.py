"""Errors of a single request: its keys, operations, revisions, size, lease or watch."""

from etcd_aio.errors.attempt import RetryHint, StatusCode
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


class EmptyKeyError(InvalidArgumentError):
    """The key is empty."""

    default_message = "etcdserver: key is not provided"


class KeyNotFoundError(InvalidArgumentError, KeyError):
    """The key of a put with `ignore_value` or `ignore_lease` does not exist, so there is nothing to keep."""

    default_message = "etcdserver: key not found"


class ValueProvidedError(InvalidArgumentError):
    """A put with `ignore_value` has a value."""

    default_message = "etcdserver: value is provided"


class LeaseProvidedError(InvalidArgumentError):
    """A put with `ignore_lease` has a lease."""

    default_message = "etcdserver: lease is provided"


class TooManyOpsError(InvalidArgumentError):
    """A transaction has more operations than the server's `--max-txn-ops` (128 by default)."""

    default_message = "etcdserver: too many operations in txn request"


class DuplicateKeyError(InvalidArgumentError):
    """One branch of a transaction writes the same key twice."""

    default_message = "etcdserver: duplicate key given in txn request"


class InvalidSortOptionError(InvalidArgumentError):
    """The server does not know the sort order or its target."""

    default_message = "etcdserver: invalid sort option"


class InvalidClientAPIVersionError(InvalidArgumentError):
    """The server cannot read the API version that the client sent."""

    default_message = "etcdserver: invalid client api version"


class RequestTooLargeError(InvalidArgumentError):
    """The request is larger than the server's `--max-request-bytes` (1.5 MiB by default)."""

    default_message = "etcdserver: request is too large"


class TooManyRequestsError(ResourceExhaustedError):
    """The member is too far behind in applying the committed log, and rejects requests for now."""

    default_message = "etcdserver: too many requests"
    retryable = True
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


class CompactedError(OutOfRangeError):
    """The revision was compacted: its history is no longer available.

    Attributes:
        compact_revision: the oldest revision that can still be watched; 0 if unknown: only a watch learns it.
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

    The write may still have been applied: etcd sends the same answer if the quota is exceeded only while it applies.
    """

    default_message = "etcdserver: mvcc: database space exceeded"


class LeaseNotFoundError(LeaseError, NotFoundError):
    """The lease does not exist: it was never granted, was revoked, or has expired."""

    default_message = "etcdserver: requested lease not found"
    is_definite = True


class LeaseExistsError(LeaseError, FailedPreconditionError):
    """A lease with this ID already exists."""

    default_message = "etcdserver: lease already exists"
    is_definite = True


class LeaseTTLTooLargeError(LeaseError, OutOfRangeError, ValueError):
    """The TTL is above etcd's maximum, 9 000 000 000 seconds."""

    default_message = "etcdserver: too large lease TTL"
    is_definite = True


class EmptyWatcherRangeError(WatchError, InvalidArgumentError):
    """The watched range is empty: its end is not greater than its start."""

    default_message = "mvcc: watcher range is empty"


class DuplicateWatchIDError(WatchError, InvalidArgumentError):
    """The stream already has a watcher with this watch ID."""

    default_message = "mvcc: duplicate watch ID provided on the WatchStream"


class WatchCancelledError(WatchError, ServerCancelledError):
    """The server ended the watch, or the stream of all watches, without a more specific reason."""

    default_message = "etcdserver: watch canceled"


class RequestCancelledError(ServerCancelledError):
    """The server cancelled the request while waiting for its result."""

    default_message = "etcdserver: request canceled"


class RequestDeadlineExceededError(ServerDeadlineExceededError):
    """The request's deadline passed on the server."""

    default_message = "etcdserver: context deadline exceeded"
