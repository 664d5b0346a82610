"""etcd's error table: the class of every text that etcd sends, and the class of a status whose text is unknown.

No other text in the project decides anything about a server's answer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from etcd_aio.errors import auth, availability, cluster, families, requests
from etcd_aio.errors.attempt import StatusCode, sanitize
from etcd_aio.errors.families import NotSupportedByServerError, ServerError

# A status as Go prints it. A watch's cancel reason contains one, and each proxy may add another.
_PRINTED_STATUS: Final = re.compile(r"(?:rpc error: code = (\w+|Code\(\d+\)) desc = )+")

_GO_NAMES: Final = {code.name.title().replace("_", ""): code for code in StatusCode} | {
    "Canceled": StatusCode.CANCELLED
}


@dataclass(frozen=True, slots=True)
class Row:
    """One text and its error class.

    Attributes:
        error: the class.
        code: the status that etcd sends with the text.
        message: the complete text.
    """

    error: type[ServerError]
    code: StatusCode
    message: str


_CLASSES: Final[tuple[type[ServerError], ...]] = (
    # Keys, transactions, revisions, leases, watches; each group in the order of etcd's own list.
    requests.EmptyKeyError,
    requests.KeyNotFoundError,
    requests.ValueProvidedError,
    requests.LeaseProvidedError,
    requests.TooManyOpsError,
    requests.DuplicateKeyError,
    requests.InvalidClientAPIVersionError,
    requests.InvalidSortOptionError,
    requests.CompactedError,
    requests.FutureRevisionError,
    requests.NoSpaceError,
    requests.LeaseNotFoundError,
    requests.LeaseExistsError,
    requests.LeaseTTLTooLargeError,
    requests.WatchCancelledError,
    requests.RequestTooLargeError,
    requests.TooManyRequestsError,
    requests.RequestCancelledError,
    requests.RequestDeadlineExceededError,
    # Members, leadership, downgrade.
    cluster.MemberExistsError,
    cluster.PeerURLExistsError,
    cluster.MemberNotEnoughStartedError,
    cluster.MemberBadURLsError,
    cluster.MemberNotFoundError,
    cluster.MemberNotLearnerError,
    cluster.LearnerNotReadyError,
    cluster.TooManyLearnersError,
    cluster.ClusterIDMismatchError,
    cluster.NotRaftLeaderError,
    cluster.BadLeaderTransfereeError,
    cluster.WrongDowngradeVersionFormatError,
    cluster.InvalidDowngradeTargetVersionError,
    cluster.ClusterVersionUnavailableError,
    cluster.DowngradeInProcessError,
    cluster.NoInflightDowngradeError,
    # Authentication.
    auth.RootUserNotExistError,
    auth.RootRoleNotExistError,
    auth.UserAlreadyExistsError,
    auth.UserEmptyError,
    auth.UserNotFoundError,
    auth.RoleAlreadyExistsError,
    auth.RoleNotFoundError,
    auth.RoleEmptyError,
    auth.AuthenticationFailedError,
    auth.PermissionNotGivenError,
    families.PermissionDeniedError,
    auth.RoleNotGrantedError,
    auth.PermissionNotGrantedError,
    auth.AuthNotEnabledError,
    auth.InvalidTokenError,
    auth.InvalidAuthManagementError,
    auth.AuthOldRevisionError,
    # Availability.
    availability.NoLeaderError,
    availability.LeaderChangedError,
    availability.NotCapableError,
    availability.ServerStoppedError,
    availability.RequestTimedOutError,
    availability.TimeoutDueToLeaderFailError,
    availability.TimeoutDueToConnectionLostError,
    availability.TimeoutWaitAppliedIndexError,
    availability.UnhealthyClusterError,
    availability.CorruptError,
    availability.NotSupportedForLearnerError,
    # Texts that are not in etcd's list, so they come as UNKNOWN, or as a watch's cancel reason.
    availability.ProposalDroppedError,
    availability.NotPrimaryLessorError,
    availability.TimeoutLeaderTransferError,
    requests.EmptyWatcherRangeError,
    requests.DuplicateWatchIDError,
)


def _own_row(error: type[ServerError]) -> Row:
    """The row for the text that a class itself has as `default_message`."""
    if error.default_code is None:
        raise TypeError(f"{error.__name__} has no status")
    return Row(error, error.default_code, error.default_message)


ROWS: Final[tuple[Row, ...]] = (
    *map(_own_row, _CLASSES),
    # Further texts of the classes above.
    Row(auth.AuthOldRevisionError, StatusCode.UNKNOWN, "auth: revision in header is old"),
    # Answers of etcd 3.4 and 3.5 to Hash and Snapshot without permission.
    Row(auth.UserEmptyError, StatusCode.UNKNOWN, "auth: user name is empty"),
    Row(auth.InvalidTokenError, StatusCode.UNKNOWN, "auth: invalid auth token"),
    Row(families.PermissionDeniedError, StatusCode.UNKNOWN, "auth: permission denied"),
    Row(
        auth.AuthenticationFailedError,
        StatusCode.UNKNOWN,
        "auth: authentication failed, password was given for no password user",
    ),
    Row(availability.ServerStoppedError, StatusCode.UNKNOWN, "raft: stopped"),
    Row(requests.RequestCancelledError, StatusCode.UNKNOWN, "etcdserver: request cancelled"),
    Row(requests.RequestCancelledError, StatusCode.CANCELLED, "context canceled"),
    Row(requests.RequestDeadlineExceededError, StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded"),
)
"""Every known text, once. A class may have several; its own is its `default_message`."""

BY_MESSAGE: Final[Mapping[str, Row]] = MappingProxyType({row.message: row for row in ROWS})
"""The row of each text."""

BY_CODE: Final[Mapping[StatusCode, type[ServerError]]] = MappingProxyType(
    {
        StatusCode.CANCELLED: families.ServerCancelledError,
        StatusCode.UNKNOWN: families.UnknownServerError,
        StatusCode.INVALID_ARGUMENT: families.InvalidArgumentError,
        StatusCode.DEADLINE_EXCEEDED: families.ServerDeadlineExceededError,
        StatusCode.NOT_FOUND: families.NotFoundError,
        StatusCode.ALREADY_EXISTS: families.AlreadyExistsError,
        StatusCode.PERMISSION_DENIED: families.PermissionDeniedError,
        StatusCode.RESOURCE_EXHAUSTED: families.ResourceExhaustedError,
        StatusCode.FAILED_PRECONDITION: families.FailedPreconditionError,
        StatusCode.ABORTED: families.AbortedError,
        StatusCode.OUT_OF_RANGE: families.OutOfRangeError,
        StatusCode.UNIMPLEMENTED: families.NotSupportedByServerError,
        StatusCode.INTERNAL: families.InternalServerError,
        StatusCode.UNAVAILABLE: families.UnavailableError,
        StatusCode.DATA_LOSS: families.DataLossError,
        StatusCode.UNAUTHENTICATED: families.UnauthenticatedError,
    }
)
"""The family of each status that is an error."""


def server_error(code: StatusCode | None, message: str, *, feature: str = "", needs: str = "") -> ServerError:
    """The error for a server's status and text.

    The text decides, and the status only if the text is unknown: releases of etcd send the same text with different
    statuses. A printed status before the text (`rpc error: code = ... desc = ...`, as in a watch's cancel reason) is
    removed and used as the status; of several the innermost one.

    Args:
        code: the status; None if the text came without one, as a watch's cancel reason does.
        message: the text. The error keeps it sanitized and at most `MAX_MESSAGE_BYTES` long.
        feature: the RPC or option, for the error that the server does not have it.
        needs: the first release of etcd that has it, if not all do.

    Returns:
        The error. Its code is the status; without one, the status that belongs to the text.
    """
    printed = _PRINTED_STATUS.match(message)
    if printed is not None:
        code = _GO_NAMES.get(printed[1], code)
        message = message[printed.end() :]
    if code is StatusCode.OK:
        code = StatusCode.UNKNOWN  # an error must not have the status OK
    row = BY_MESSAGE.get(message)
    if row is not None:
        return row.error(message, code=row.code if code is None else code)
    if code is None:
        code = StatusCode.UNKNOWN
    if code is StatusCode.UNIMPLEMENTED:
        return NotSupportedByServerError(sanitize(message), code=code, feature=feature, needs=needs)
    return BY_CODE[code](sanitize(message), code=code)
