"""Cluster, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.admin.cluster`: do not edit.
"""

from collections.abc import Iterable
from typing import ClassVar

from etcd_aio.base import UNSET, RetryMode, Timeout
from etcd_aio.portal import Facade
from etcd_aio.types import (
    Member,
    MemberAddResult,
    MemberListResult,
    MemberPromoteResult,
    MemberRemoveResult,
    MemberUpdateResult,
)


class Cluster(Facade):
    """The cluster API: `client.cluster`.

    Every call takes `timeout` and `retry`, and raises, as the key-value calls do. A change is applied at most once,
    unless `retry="always"`: if its error has `maybe_applied`, look at `members()` before trying again. A change that
    Ctrl-C interrupts may have been applied. A member is given by its id or as a `Member`.

    etcd refuses a change that would risk the quorum, while too few members are connected, and for 5 seconds after a
    member has come up (`UnhealthyClusterError`, `MemberNotEnoughStartedError`).
    """

    _survives_fork: ClassVar[bool] = True

    def members(
        self, *, serializable: bool = False, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberListResult:
        """List the members.

        Args:
            serializable: let one member answer from its own state, which needs no quorum, and may be stale. Servers
                before etcd 3.5 always do.
        """
        return self._run(self._aio.members, serializable=serializable, timeout=timeout, retry=retry)

    def add(
        self, peer_urls: str | Iterable[str], *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberAddResult:
        """Add a voting member, which then has to be started with `--initial-cluster-state existing`.

        The member counts for the quorum from now on, whether it runs or not: a cluster of one cannot answer until it
        runs. `add_learner` is safer.

        Args:
            peer_urls: the URLs at which the other members will reach it: `http://host:port`, `https://host:port` or
                `unix://path`; several as a list or separated by commas.

        Returns:
            MemberAddResult: `member.id` is the new member's.

        Raises:
            InvalidRequestError: a URL is invalid. Nothing was sent.
            PeerURLExistsError: another member has one of the URLs.
        """
        return self._run(self._aio.add, peer_urls, timeout=timeout, retry=retry)

    def add_learner(
        self, peer_urls: str | Iterable[str], *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberAddResult:
        """Add a member without a vote, as `add` does: it copies the data, and counts for the quorum after `promote`.

        Raises:
            TooManyLearnersError: there are as many learners as etcd allows, 1 by default.
        """
        return self._run(self._aio.add_learner, peer_urls, timeout=timeout, retry=retry)

    def remove(
        self, member: int | Member, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberRemoveResult:
        """Remove a member. Its process ends soon after, and it can never come back with its data.

        Raises:
            MemberNotFoundError: there is no such member, or it was removed.
        """
        return self._run(self._aio.remove, member, timeout=timeout, retry=retry)

    def update(
        self,
        member: int | Member,
        peer_urls: str | Iterable[str],
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> MemberUpdateResult:
        """Change the peer URLs of a member, before it moves.

        Args:
            member: the member.
            peer_urls: all its new peer URLs, as in `add`.

        Raises:
            InvalidRequestError: a URL is invalid. Nothing was sent.
            MemberNotFoundError: there is no such member.
            PeerURLExistsError: another member has one of the URLs.
        """
        return self._run(self._aio.update, member, peer_urls, timeout=timeout, retry=retry)

    def promote(
        self, member: int | Member, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberPromoteResult:
        """Give a learner its vote.

        Raises:
            LearnerNotReadyError: the learner has not caught up with the leader yet: try again later.
            MemberNotLearnerError: the member has a vote already.
            MemberNotFoundError: there is no such member.
        """
        return self._run(self._aio.promote, member, timeout=timeout, retry=retry)
