"""Errors of the cluster: its members, the transfer of its leadership and its downgrade.

etcd checks these conditions before it changes anything, so all of these errors are definite.
"""

from etcd_aio.errors.families import (
    DowngradeError,
    FailedPreconditionError,
    InvalidArgumentError,
    MembershipError,
    NotFoundError,
)


class MemberExistsError(MembershipError, FailedPreconditionError):
    """A member with this ID already exists."""

    default_message = "etcdserver: member ID already exist"
    is_definite = True


class PeerURLExistsError(MembershipError, FailedPreconditionError):
    """Another member already has one of these peer URLs."""

    default_message = "etcdserver: Peer URLs already exists"
    is_definite = True


class MemberNotEnoughStartedError(MembershipError, FailedPreconditionError):
    """The change would leave the cluster without a quorum: too few members are running."""

    default_message = "etcdserver: re-configuration failed due to not enough started members"
    is_definite = True


class MemberBadURLsError(MembershipError, InvalidArgumentError):
    """The member's peer URLs are invalid."""

    default_message = "etcdserver: given member URLs are invalid"


class MemberNotFoundError(MembershipError, NotFoundError):
    """No member has this ID, or the member was removed."""

    default_message = "etcdserver: member not found"
    is_definite = True


class MemberNotLearnerError(MembershipError, FailedPreconditionError):
    """The member to promote is already a voting member."""

    default_message = "etcdserver: can only promote a learner member"
    is_definite = True


class LearnerNotReadyError(MembershipError, FailedPreconditionError):
    """The learner is not yet in sync with the leader: promote it later."""

    default_message = "etcdserver: can only promote a learner member which is in sync with leader"
    retryable = True
    is_definite = True


class TooManyLearnersError(MembershipError, FailedPreconditionError):
    """The cluster already has as many learners as the server's `--max-learners` allows (1 by default)."""

    default_message = "etcdserver: too many learner members in cluster"
    is_definite = True


class ClusterIDMismatchError(MembershipError, FailedPreconditionError):
    """The members to compare belong to different clusters."""

    default_message = "etcdserver: cluster ID mismatch"
    is_definite = True


class NotRaftLeaderError(FailedPreconditionError):
    """Only the leader can do this, such as transferring its leadership, and the member is not the leader."""

    default_message = "etcdserver: not leader"
    is_definite = True


class BadLeaderTransfereeError(FailedPreconditionError):
    """The new leader does not exist, or is a learner."""

    default_message = "etcdserver: bad leader transferee"
    is_definite = True


class WrongDowngradeVersionFormatError(DowngradeError, InvalidArgumentError):
    """The target version has an invalid format."""

    default_message = "etcdserver: wrong downgrade target version format"


class InvalidDowngradeTargetVersionError(DowngradeError, InvalidArgumentError):
    """The target version is not one minor version below the cluster's."""

    default_message = "etcdserver: invalid downgrade target version"


class ClusterVersionUnavailableError(DowngradeError, FailedPreconditionError):
    """The members have not yet agreed on the cluster's version. etcd 3.5 sends it as UNAVAILABLE."""

    default_message = "etcdserver: cluster version not found during downgrade"
    is_definite = True


class DowngradeInProcessError(DowngradeError, FailedPreconditionError):
    """Another downgrade is in progress."""

    default_message = "etcdserver: cluster has a downgrade job in progress"
    is_definite = True


class NoInflightDowngradeError(DowngradeError, FailedPreconditionError):
    """No downgrade is in progress that could be cancelled."""

    default_message = "etcdserver: no inflight downgrade job"
    is_definite = True
