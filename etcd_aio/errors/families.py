"""What a server answers instead of a result: the root, the gRPC families and the topics.

Knows: what each gRPC status proves when its message is unknown. Never knows: etcd's own errors, which are leaves of
this tree in `requests.py`, `auth.py`, `cluster.py` and `availability.py`, or how an answer finds its class
(`translate.py`).

A leaf has one gRPC family, which says how the call was refused, and at most one topic, which says what it was about.
The builtins are there for callers that do not know etcd.

    ServerError
    ├─ by gRPC status
    │   ├─ InvalidArgumentError(ValueError)     empty key, too many operations, request too large, ...
    │   ├─ OutOfRangeError                      compacted, future revision, lease TTL too large
    │   ├─ NotFoundError(LookupError)           lease, member
    │   ├─ AlreadyExistsError                   (etcd answers FAILED_PRECONDITION instead)
    │   ├─ FailedPreconditionError              exists already, not supported for learner, auth not enabled, ...
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

from etcd_aio.errors.base import EtcdError
from etcd_aio.errors.retry_hint import RetryHint
from etcd_aio.errors.status import StatusCode


class ServerError(EtcdError):
    """etcd answered with an error. `code` is the status that it sent, `message` its text.

    An argument that etcd would refuse with such an error (an empty key) is refused with the same class before anything
    is sent, so that there is one class to catch. `attempts` is empty then, and `endpoint` too.

    The code is not always the one that the class stands for: releases of etcd differ about some. The class goes by the
    text, so it is the better of the two to judge by.

    Attributes:
        retry_hint: what may be done about it.
        is_definite: True if the answer proves that the request has changed nothing and never will. Without proof it is
            False.
    """

    default_message = "the server gave no reason"
    retry_hint: ClassVar[RetryHint] = RetryHint.RAISE
    is_definite: ClassVar[bool] = False


# --- by gRPC status ---
# A family is also the class of every answer with its status and a message that the table does not hold. Only four of
# them prove anything then: they refuse the request for what it is. The rest depends on the state of the cluster, and
# whoever answers (a proxy in between, a later release) may have met a state that this very request brought about.


class InvalidArgumentError(ServerError, ValueError):
    """The request cannot be right, whatever the state of the cluster."""

    default_code = StatusCode.INVALID_ARGUMENT
    is_definite = True


class OutOfRangeError(ServerError):
    """A number in the request lies outside of what the cluster has or allows."""

    default_code = StatusCode.OUT_OF_RANGE


class NotFoundError(ServerError, LookupError):
    """What the request names does not exist."""

    default_code = StatusCode.NOT_FOUND


class AlreadyExistsError(ServerError):
    """What the request would create exists. etcd's own answers of this kind are `FailedPreconditionError`."""

    default_code = StatusCode.ALREADY_EXISTS


class FailedPreconditionError(ServerError):
    """The cluster is not in the state that the request needs."""

    default_code = StatusCode.FAILED_PRECONDITION


class ResourceExhaustedError(ServerError):
    """A limit was met. It may have been the reply that was too large, after the request was carried out."""

    default_code = StatusCode.RESOURCE_EXHAUSTED


class UnavailableError(ServerError):
    """The member cannot serve now. Whether it carried out the request is not known."""

    default_code = StatusCode.UNAVAILABLE
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class ServerDeadlineExceededError(ServerError, TimeoutError):
    """The member gave up waiting: its own deadline passed, or it noticed the caller's before the caller did."""

    default_code = StatusCode.DEADLINE_EXCEEDED
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class ServerCancelledError(ServerError):
    """The server cancelled the call, though nobody here asked it to."""

    default_code = StatusCode.CANCELLED
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class AbortedError(ServerError):
    """The call lost against a concurrent one."""

    default_code = StatusCode.ABORTED
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class InternalServerError(ServerError):
    """Something broke inside the server, or between it and the call. etcd's Go client goes on after it, so do we."""

    default_code = StatusCode.INTERNAL
    retryable = True
    retry_hint = RetryHint.RETRY_IF_REPEATABLE


class UnknownServerError(ServerError):
    """The server's error has no status of its own: etcd hands most unforeseen errors over like this."""

    default_code = StatusCode.UNKNOWN


class DataLossError(ServerError):
    """Data was lost or damaged beyond repair."""

    default_code = StatusCode.DATA_LOSS


class NotSupportedByServerError(ServerError, NotImplementedError):
    """The server does not have this RPC or this option: it is older than the feature, or a proxy stands before it.

    Attributes:
        feature: what is missing, such as "Maintenance/Downgrade"; empty if that is not known.
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
    """It was about authentication, users, roles or permissions."""


class LeaseError(ServerError):
    """It was about a lease."""


class WatchError(ServerError):
    """It was about a watch."""


class MembershipError(ServerError):
    """It was about the members of the cluster."""


class DowngradeError(ServerError):
    """It was about a downgrade of the cluster's version."""


# --- families that are about authentication by their nature ---


class UnauthenticatedError(AuthError):
    """The call carries no valid proof of who makes it."""

    default_code = StatusCode.UNAUTHENTICATED
    retry_hint = RetryHint.REFRESH_TOKEN
    is_definite = True


class PermissionDeniedError(AuthError, PermissionError):
    """The user may not do this: etcd's `permission denied`, and any other answer with the status PERMISSION_DENIED."""

    default_code = StatusCode.PERMISSION_DENIED
    default_message = "etcdserver: permission denied"
    is_definite = True
