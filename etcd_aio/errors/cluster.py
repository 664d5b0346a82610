"""Errors about the cluster itself: its members, its leader's transfer and its downgrade.

Knows: etcd's text for each, and what it proves. Never knows: how an answer finds its class (`table.py`). All of these
are refusals: etcd checks them before it changes anything, so they are definite.
"""

from etcd_aio.errors.families import (
    DowngradeError,
    FailedPreconditionError,
    InvalidArgumentError,
    MembershipError,
    NotFoundError,
)


class MemberExistsError(MembershipError, FailedPreconditionError):
    """A member with this ID exists already."""

    default_message = "etcdserver: member ID already exist"
    is_definite = True


class PeerURLExistsError(MembershipError, FailedPreconditionError):
    """Another member has one of these peer URLs already."""

    default_message = "etcdserver: Peer URLs already exists"
    is_definite = True


class MemberNotEnoughStartedError(MembershipError, FailedPreconditionError):
    """Too few members are running for the change to leave a quorum."""

    default_message = "etcdserver: re-configuration failed due to not enough started members"
    is_definite = True


class MemberBadURLsError(MembershipError, InvalidArgumentError):
    """The member's peer URLs are not URLs that etcd accepts."""

    default_message = "etcdserver: given member URLs are invalid"


class MemberNotFoundError(MembershipError, NotFoundError):
    """No member has this ID, or it was removed."""

    default_message = "etcdserver: member not found"
    is_definite = True


class MemberNotLearnerError(MembershipError, FailedPreconditionError):
    """The member to promote votes already."""

    default_message = "etcdserver: can only promote a learner member"
    is_definite = True


class LearnerNotReadyError(MembershipError, FailedPreconditionError):
    """The learner has not caught up with the leader yet: promote it later."""

    default_message = "etcdserver: can only promote a learner member which is in sync with leader"
    retryable = True
    is_definite = True


class TooManyLearnersError(MembershipError, FailedPreconditionError):
    """The cluster has as many learners as the server's `--max-learners` allows (1 unless set)."""

    default_message = "etcdserver: too many learner members in cluster"
    is_definite = True


class ClusterIDMismatchError(MembershipError, FailedPreconditionError):
    """The members that were to be compared belong to different clusters."""

    default_message = "etcdserver: cluster ID mismatch"
    is_definite = True


class NotRaftLeaderError(FailedPreconditionError):
    """The member does not lead, and only the leader can do this, such as moving its leadership."""

    default_message = "etcdserver: not leader"
    is_definite = True


class BadLeaderTransfereeError(FailedPreconditionError):
    """The member that is to lead does not exist, or is a learner."""

    default_message = "etcdserver: bad leader transferee"
    is_definite = True


class WrongDowngradeVersionFormatError(DowngradeError, InvalidArgumentError):
    """The target is not written like a version."""

    default_message = "etcdserver: wrong downgrade target version format"


class InvalidDowngradeTargetVersionError(DowngradeError, InvalidArgumentError):
    """The target is not one minor version below the cluster's."""

    default_message = "etcdserver: invalid downgrade target version"


class ClusterVersionUnavailableError(DowngradeError, FailedPreconditionError):
    """The members have not agreed on the cluster's version yet. etcd 3.5 sends it as UNAVAILABLE."""

    default_message = "etcdserver: cluster version not found during downgrade"
    is_definite = True


class DowngradeInProcessError(DowngradeError, FailedPreconditionError):
    """Another downgrade is under way."""

    default_message = "etcdserver: cluster has a downgrade job in progress"
    is_definite = True


class NoInflightDowngradeError(DowngradeError, FailedPreconditionError):
    """There is no downgrade to cancel."""

    default_message = "etcdserver: no inflight downgrade job"
    is_definite = True
