"""`ServerError` with its families: one for each gRPC status, and one for each topic.

etcd's own errors are leaves of this tree, in `requests.py`, `auth.py`, `cluster.py` and `availability.py`. Each has one
family by status and at most one by topic. The builtin bases let callers catch an error without knowing etcd.

    ServerError
    ├─ by gRPC status
    │   ├─ InvalidArgumentError(ValueError)     empty key, too many operations, request too large, ...
    │   ├─ OutOfRangeError                      compacted, future revision, lease TTL too large
    │   ├─ NotFoundError(LookupError)           lease, member
    │   ├─ AlreadyExistsError                   (etcd answers FAILED_PRECONDITION instead)
    │   ├─ FailedPreconditionError              already exists, not supported for learner, auth not enabled, ...
    │   ├─ ResourceExhaustedError               no space, too many requests
    │   ├─ PermissionDeniedError(PermissionError)
    │   ├─ UnauthenticatedError                 invalid token
    │   ├─ NotSupportedByServerError(NotImplementedError)
    │   ├─ UnavailableError                     no leader, leader changed, request timed out, stopped, ...
    │   ├─ ServerDeadlineExceededError(TimeoutError)
    │   ├─ ServerCancelledError                 watch cancelled, request cancelled
    │   ├─ DataLossError                        corrupt cluster
    │   └─ AbortedError, InternalServerError, UnknownServerError
    └─ by topic
        ├─ AuthError                            users, roles, passwords, tokens
        ├─ LeaseError                           leases
        ├─ WatchError                           watches
        ├─ MembershipError                      members and learners
        └─ DowngradeError                       downgrades of the cluster's version
"""

from typing import ClassVar

from etcd_aio.errors.attempt import RetryHint, StatusCode
from etcd_aio.errors.base import EtcdError


class ServerError(EtcdError):
    """Base class for the errors that etcd answers with. `code` is the status of the answer, `message` its text.

    Where the client itself rejects an argument that etcd would reject (an empty key), it raises the same class before
    anything is sent; `attempts` and `endpoint` are empty then.

    Rely on the class rather than on `code`: releases of etcd send some errors with different statuses.

    Attributes:
        retry_hint: whether another attempt can help; for use by the error handler.
        is_definite: True if the answer proves that the request has changed nothing and never will.
    """

    default_message = "the server gave no reason"
    retry_hint: ClassVar[RetryHint] = RetryHint.RAISE
    is_definite: ClassVar[bool] = False


# --- by gRPC status ---
# A family is also the class of every answer with its status and an unknown text. Only four families are definite then:
# they reject the request itself. The others depend on the state of the cluster, and the answering server or proxy may
# have seen a state that this very request caused.


class InvalidArgumentError(ServerError, ValueError):
    """The request is invalid, whatever the state of the cluster."""

    default_code = StatusCode.INVALID_ARGUMENT
    is_definite = True


class OutOfRangeError(ServerError):
    """A number in the request is outside the range that the cluster has or allows."""

    default_code = StatusCode.OUT_OF_RANGE


class NotFoundError(ServerError, LookupError):
    """A resource named in the request does not exist."""

    default_code = StatusCode.NOT_FOUND


class AlreadyExistsError(ServerError):
    """The resource to create already exists. etcd's own answers of this kind are `FailedPreconditionError`."""

    default_code = StatusCode.ALREADY_EXISTS


class FailedPreconditionError(ServerError):
    """The cluster is not in the state that the request requires."""

    default_code = StatusCode.FAILED_PRECONDITION


class ResourceExhaustedError(ServerError):
    """A limit was reached. It may be the size of the reply, after the request was executed."""

    default_code = StatusCode.RESOURCE_EXHAUSTED


class UnavailableError(ServerError):
    """The member cannot serve now. It may have executed the request."""

    default_code = StatusCode.UNAVAILABLE
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class ServerDeadlineExceededError(ServerError, TimeoutError):
    """A deadline passed on the server: its own, or the call's before the client noticed."""

    default_code = StatusCode.DEADLINE_EXCEEDED
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class ServerCancelledError(ServerError):
    """The server cancelled the call, without a request of the client."""

    default_code = StatusCode.CANCELLED
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class AbortedError(ServerError):
    """The call was aborted because of a concurrent one."""

    default_code = StatusCode.ABORTED
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class InternalServerError(ServerError):
    """An internal error of the server or of a proxy. Retried, as etcd's Go client does."""

    default_code = StatusCode.INTERNAL
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class UnknownServerError(ServerError):
    """An error without a specific status; etcd reports most unexpected errors like this."""

    default_code = StatusCode.UNKNOWN


class DataLossError(ServerError):
    """Data was lost or corrupted, and cannot be recovered."""

    default_code = StatusCode.DATA_LOSS


class NotSupportedByServerError(ServerError, NotImplementedError):
    """The server does not have this RPC or option: it is too old or not etcd, or a proxy does not pass it on.

    Attributes:
        feature: the missing feature, such as "Maintenance/Downgrade"; empty if unknown.
        needs: the first release of etcd that has it, such as "3.5"; empty if every supported one has.
    """

    default_code = StatusCode.UNIMPLEMENTED
    is_definite = True

    def __init__(
        self, message: str = "", *, code: StatusCode | None = None, feature: str = "", needs: str = ""
    ) -> None:
        text = message or self.default_message
        if feature:
            what = f"needs etcd {needs} or newer" if needs else "is not served here"
            text = f"{feature} {what}: {text}"
        super().__init__(text, code=code)
        self.feature = feature
        self.needs = needs


# --- by topic ---


class AuthError(ServerError):
    """Base class for errors of authentication, users, roles and permissions."""


class LeaseError(ServerError):
    """Base class for lease errors."""


class WatchError(ServerError):
    """Base class for watch errors."""


class MembershipError(ServerError):
    """Base class for errors of cluster membership."""


class DowngradeError(ServerError):
    """Base class for errors of a downgrade of the cluster's version."""


# --- by gRPC status, with the topic authentication ---


class UnauthenticatedError(AuthError):
    """The call has no valid credentials."""

    default_code = StatusCode.UNAUTHENTICATED
    retry_hint = RetryHint.REFRESH_TOKEN
    is_definite = True


class PermissionDeniedError(AuthError, PermissionError):
    """The user may not do this: etcd's `permission denied`, and any other answer with the status PERMISSION_DENIED."""

    default_code = StatusCode.PERMISSION_DENIED
    default_message = "etcdserver: permission denied"
    is_definite = True
