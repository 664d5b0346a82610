"""etcd's error table: one row for each text that a server answers with.

Knows: which class an exact text belongs to, and which one a status does when its text is unknown. Never knows: how a
text is cleaned before it is looked up (`translate.py`). No other text in the project decides anything about an answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from etcd_aio.errors import auth, availability, cluster, families, requests
from etcd_aio.errors.families import ServerError
from etcd_aio.errors.status import StatusCode


@dataclass(frozen=True, slots=True)
class Row:
    """One text and what it means.

    Attributes:
        error: the class.
        code: the status that the text comes with.
        message: the text, whole, as the server sends it.
    """

    error: type[ServerError]
    code: StatusCode
    message: str


def _own_row(error: type[ServerError]) -> Row:
    """The row of the text that a class stands for: the class itself holds it."""
    if error.default_code is None:
        raise TypeError(f"{error.__name__} has no status")
    return Row(error, error.default_code, error.default_message)


ROWS: Final[tuple[Row, ...]] = (
    # Keys, txns, revisions, leases, watches; each part in the order of etcd's own list.
    _own_row(requests.EmptyKeyError),
    _own_row(requests.KeyNotFoundError),
    _own_row(requests.ValueProvidedError),
    _own_row(requests.LeaseProvidedError),
    _own_row(requests.TooManyOpsError),
    _own_row(requests.DuplicateKeyError),
    _own_row(requests.InvalidClientAPIVersionError),
    _own_row(requests.InvalidSortOptionError),
    _own_row(requests.CompactedError),
    _own_row(requests.FutureRevisionError),
    _own_row(requests.NoSpaceError),
    _own_row(requests.LeaseNotFoundError),
    _own_row(requests.LeaseExistsError),
    _own_row(requests.LeaseTTLTooLargeError),
    _own_row(requests.WatchCancelledError),
    _own_row(requests.RequestTooLargeError),
    _own_row(requests.TooManyRequestsError),
    _own_row(requests.RequestCancelledError),
    _own_row(requests.RequestDeadlineExceededError),
    # Members, leadership, downgrade.
    _own_row(cluster.MemberExistsError),
    _own_row(cluster.PeerURLExistsError),
    _own_row(cluster.MemberNotEnoughStartedError),
    _own_row(cluster.MemberBadURLsError),
    _own_row(cluster.MemberNotFoundError),
    _own_row(cluster.MemberNotLearnerError),
    _own_row(cluster.LearnerNotReadyError),
    _own_row(cluster.TooManyLearnersError),
    _own_row(cluster.ClusterIDMismatchError),
    _own_row(cluster.NotRaftLeaderError),
    _own_row(cluster.BadLeaderTransfereeError),
    _own_row(cluster.WrongDowngradeVersionFormatError),
    _own_row(cluster.InvalidDowngradeTargetVersionError),
    _own_row(cluster.ClusterVersionUnavailableError),
    _own_row(cluster.DowngradeInProcessError),
    _own_row(cluster.NoInflightDowngradeError),
    # Authentication.
    _own_row(auth.RootUserNotExistError),
    _own_row(auth.RootRoleNotExistError),
    _own_row(auth.UserAlreadyExistsError),
    _own_row(auth.UserEmptyError),
    _own_row(auth.UserNotFoundError),
    _own_row(auth.RoleAlreadyExistsError),
    _own_row(auth.RoleNotFoundError),
    _own_row(auth.RoleEmptyError),
    _own_row(auth.AuthenticationFailedError),
    _own_row(auth.PermissionNotGivenError),
    _own_row(families.PermissionDeniedError),
    _own_row(auth.RoleNotGrantedError),
    _own_row(auth.PermissionNotGrantedError),
    _own_row(auth.AuthNotEnabledError),
    _own_row(auth.InvalidTokenError),
    _own_row(auth.InvalidAuthManagementError),
    _own_row(auth.AuthOldRevisionError),
    # Availability.
    _own_row(availability.NoLeaderError),
    _own_row(availability.LeaderChangedError),
    _own_row(availability.NotCapableError),
    _own_row(availability.ServerStoppedError),
    _own_row(availability.RequestTimedOutError),
    _own_row(availability.TimeoutDueToLeaderFailError),
    _own_row(availability.TimeoutDueToConnectionLostError),
    _own_row(availability.TimeoutWaitAppliedIndexError),
    _own_row(availability.UnhealthyClusterError),
    _own_row(availability.CorruptError),
    _own_row(availability.NotSupportedForLearnerError),
    # Texts that etcd forgot to put into its list, so that they come bare and as UNKNOWN, or as a watch's cancel reason.
    _own_row(availability.ProposalDroppedError),
    _own_row(availability.NotPrimaryLessorError),
    _own_row(availability.TimeoutLeaderTransferError),
    _own_row(requests.EmptyWatcherRangeError),
    _own_row(requests.DuplicateWatchIDError),
    # Second texts of classes above.
    Row(auth.AuthOldRevisionError, StatusCode.UNKNOWN, "auth: revision in header is old"),
    # What etcd 3.4 and 3.5 say to whoever may not hash or copy a member's database.
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
"""Every known text, once. A class may have several; the one it carries itself is its `default_message`."""

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
