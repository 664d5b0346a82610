"""Errors of availability: the member cannot serve the request, or not now."""

from etcd_aio.errors.attempt import RetryHint, StatusCode
from etcd_aio.errors.families import DataLossError, FailedPreconditionError, UnavailableError

# --- rejected before the request could run ---


class NoLeaderError(UnavailableError):
    """The member has no leader.

    `retry_hint` and `is_definite` hold for a call that carried `hasleader` in its metadata: etcd then checks for a
    leader before anything else. Without it the same text can also come later, and proves no more than
    `UnavailableError` does.
    """

    default_message = "etcdserver: no leader"
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


class NotSupportedForLearnerError(FailedPreconditionError):
    """The member is a learner, and only voting members serve this call. etcd 3.5 sends it as UNAVAILABLE."""

    default_message = "etcdserver: rpc not supported for learner"
    retryable = True
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


class NotCapableError(FailedPreconditionError):
    """The member has just started and does not serve yet. etcd 3.5 sends it as UNAVAILABLE."""

    default_message = "etcdserver: not capable"
    retryable = True
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


class ProposalDroppedError(UnavailableError):
    """Raft dropped the proposal: there is no leader, or it is handing over. Sent as UNKNOWN."""

    default_code = StatusCode.UNKNOWN
    default_message = "raft proposal dropped"
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


# --- the request may have been applied ---


class LeaderChangedError(UnavailableError):
    """The leader changed during the request."""

    default_message = "etcdserver: leader changed"


class NotPrimaryLessorError(UnavailableError):
    """The member cannot renew leases: it is no longer the leader, or cannot confirm it. Sent as UNKNOWN."""

    default_code = StatusCode.UNKNOWN
    default_message = "not a primary lessor"


class ServerStoppedError(UnavailableError):
    """The member is shutting down."""

    default_message = "etcdserver: server stopped"


class UnhealthyClusterError(UnavailableError):
    """Too few members are connected to each other for a change of membership or of the leader."""

    default_message = "etcdserver: unhealthy cluster"


class RequestTimedOutError(UnavailableError, TimeoutError):
    """The member did not see the result of the request in time. It may have been applied, or may still be."""

    default_message = "etcdserver: request timed out"


class TimeoutDueToLeaderFailError(RequestTimedOutError):
    """The request timed out, and the leader was lost meanwhile."""

    default_message = "etcdserver: request timed out, possibly due to previous leader failure"


class TimeoutDueToConnectionLostError(RequestTimedOutError):
    """The request timed out, and the member lost its connection to the others meanwhile."""

    default_message = "etcdserver: request timed out, possibly due to connection lost"


class TimeoutWaitAppliedIndexError(RequestTimedOutError):
    """The member did not apply the committed log in time to answer."""

    default_message = "etcdserver: request timed out, waiting for the applied index took too long"


class TimeoutLeaderTransferError(RequestTimedOutError):
    """The leadership was not transferred in time, but still may be. Sent as UNKNOWN."""

    default_code = StatusCode.UNKNOWN
    default_message = "etcdserver: request timed out, leader transfer took too long"


# --- data corruption ---


class CorruptError(DataLossError):
    """The members' data differ and the alarm CORRUPT is raised: writes are rejected until it is disarmed."""

    default_message = "etcdserver: corrupt cluster"
