"""Errors about the member that was asked: it cannot serve this, or not now.

Knows: etcd's text for each, and what it proves. Never knows: how an answer finds its class (`table.py`). Three kinds
stand side by side: refusals before anything could run, timeouts whose outcome is open, and damage.
"""

from etcd_aio.errors.families import DataLossError, FailedPreconditionError, UnavailableError
from etcd_aio.errors.retry_hint import RetryHint
from etcd_aio.errors.status import StatusCode

# --- refused before it could run ---


class NoLeaderError(UnavailableError):
    """The member sees no leader.

    `retry_hint` and `is_definite` hold for a call that carried `hasleader` in its metadata: etcd then checks for a
    leader before anything else. Without it the same text can also come later, and proves no more than
    `UnavailableError` does.
    """

    default_message = "etcdserver: no leader"
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


class NotSupportedForLearnerError(FailedPreconditionError):
    """The member is a learner and leaves this call to the voters. etcd 3.5 sends it as UNAVAILABLE."""

    default_message = "etcdserver: rpc not supported for learner"
    retryable = True
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


class NotCapableError(FailedPreconditionError):
    """The member has only just started, and serves nothing yet. etcd 3.5 sends it as UNAVAILABLE."""

    default_message = "etcdserver: not capable"
    retryable = True
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


class ProposalDroppedError(UnavailableError):
    """The proposal was dropped before it entered the log: no leader, or one about to hand over. Sent as UNKNOWN."""

    default_code = StatusCode.UNKNOWN
    default_message = "raft proposal dropped"
    retry_hint = RetryHint.RETRY_ELSEWHERE
    is_definite = True


# --- the outcome is open ---


class LeaderChangedError(UnavailableError):
    """The leader changed while the request was waiting."""

    default_message = "etcdserver: leader changed"


class NotPrimaryLessorError(UnavailableError):
    """The member cannot renew leases, since it has lost its leadership or cannot prove it. Sent as UNKNOWN."""

    default_code = StatusCode.UNKNOWN
    default_message = "not a primary lessor"


class ServerStoppedError(UnavailableError):
    """The member is shutting down."""

    default_message = "etcdserver: server stopped"


class UnhealthyClusterError(UnavailableError):
    """The members are not connected well enough for a change of membership, or for a new leader."""

    default_message = "etcdserver: unhealthy cluster"


class RequestTimedOutError(UnavailableError, TimeoutError):
    """The member proposed the request and has not seen its outcome in time: it may be applied, or yet be."""

    default_message = "etcdserver: request timed out"


class TimeoutDueToLeaderFailError(RequestTimedOutError):
    """As `RequestTimedOutError`, and the leader was lost meanwhile."""

    default_message = "etcdserver: request timed out, possibly due to previous leader failure"


class TimeoutDueToConnectionLostError(RequestTimedOutError):
    """As `RequestTimedOutError`, and the member was cut off from the others meanwhile."""

    default_message = "etcdserver: request timed out, possibly due to connection lost"


class TimeoutWaitAppliedIndexError(RequestTimedOutError):
    """The member did not catch up with what is agreed in time to answer."""

    default_message = "etcdserver: request timed out, waiting for the applied index took too long"


class TimeoutLeaderTransferError(RequestTimedOutError):
    """The leadership did not move in time, but may still do so. Sent as UNKNOWN."""

    default_code = StatusCode.UNKNOWN
    default_message = "etcdserver: request timed out, leader transfer took too long"


# --- damage ---


class CorruptError(DataLossError):
    """The members' data differ, and the alarm CORRUPT is raised: writes are refused until it is disarmed."""

    default_message = "etcdserver: corrupt cluster"
