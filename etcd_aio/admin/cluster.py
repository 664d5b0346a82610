"""`client.cluster`: the calls about the members of the cluster."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from etcd_aio import methods, pb
from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import InvalidRequestError
from etcd_aio.types import (
    Member,
    MemberAddResult,
    MemberListResult,
    MemberPromoteResult,
    MemberRemoveResult,
    MemberUpdateResult,
    flag,
    split_host_port,
)

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

MemberLike: TypeAlias = int | Member
"""A member as users write it: its id, or the `Member` of a listing."""

_MAX_UINT64 = 2**64 - 1


class Cluster:
    """The cluster API: `client.cluster`.

    Every call takes `timeout` and `retry`, and raises, as the key-value calls do. A change is never sent twice unless
    `retry="always"` says so: if its error has `maybe_applied`, look at `members()` before trying again.

    etcd refuses what would risk the quorum: a change while too few members are connected (`UnhealthyClusterError`,
    `MemberNotEnoughStartedError`; also for 5 seconds after a member came up).
    """

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker

    async def members(
        self, *, serializable: bool = False, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberListResult:
        """List the members.

        Args:
            serializable: take what the asked member knows, which may be old, but needs no quorum. Before etcd 3.5 every
                answer is of that kind.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            MemberListResult: iterate over it.

        Raises:
            EtcdError: as every call.
        """
        is_local = flag(serializable, "serializable")
        return await self._invoker.unary(
            methods.MEMBER_LIST,
            pb.MemberListRequest(linearizable=not is_local),
            timeout=timeout,
            retry=retry,
            needs_leader=not is_local,
        )

    async def add(
        self, peer_urls: str | Iterable[str], *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberAddResult:
        """Add a voting member, which then has to be started with `--initial-cluster-state existing`.

        It counts for the quorum from now on, whether it runs or not: of a cluster of one, nothing is left to answer
        until it does. `add_learner` is safer.

        Args:
            peer_urls: where the other members will reach it: `http://host:port` or `https://host:port` (`unix://` too);
                several as a list or separated by commas.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            MemberAddResult: `member.id` is the new member's.

        Raises:
            InvalidRequestError: a URL cannot be right. Nothing was sent.
            PeerURLExistsError: another member has one of the URLs.
            EtcdError: as every call.

        Cancellation: the member may be added all the same.
        """
        return await self._add(peer_urls, False, timeout, retry)

    async def add_learner(
        self, peer_urls: str | Iterable[str], *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberAddResult:
        """Add a member without a vote: it copies the data first, and has no part in the quorum until `promote`.

        Args:
            peer_urls: as with `add`.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            MemberAddResult: `member.id` is the new member's.

        Raises:
            InvalidRequestError: a URL cannot be right. Nothing was sent.
            PeerURLExistsError: another member has one of the URLs.
            TooManyLearnersError: there are as many learners as etcd allows, 1 by default.
            EtcdError: as every call.

        Cancellation: the member may be added all the same.
        """
        return await self._add(peer_urls, True, timeout, retry)

    async def remove(
        self, member: MemberLike, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberRemoveResult:
        """Remove a member. It ends by itself soon after, and can never come back with its data.

        Args:
            member: which one.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            MemberNotFoundError: there is no such member, or it was removed.
            EtcdError: as every call.

        Cancellation: the member may be removed all the same.
        """
        request = pb.MemberRemoveRequest(id=member_id(member))
        return await self._invoker.unary(methods.MEMBER_REMOVE, request, timeout=timeout, retry=retry)

    async def update(
        self,
        member: MemberLike,
        peer_urls: str | Iterable[str],
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
    ) -> MemberUpdateResult:
        """Tell the cluster where a member is to be reached from now on. Do it before the member moves.

        Args:
            member: which one.
            peer_urls: all its new peer URLs, as with `add`.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            InvalidRequestError: a URL cannot be right. Nothing was sent.
            MemberNotFoundError: there is no such member.
            PeerURLExistsError: another member has one of the URLs.
            EtcdError: as every call.

        Cancellation: the member may be updated all the same.
        """
        request = pb.MemberUpdateRequest(id=member_id(member), peer_urls=check_peer_urls(peer_urls))
        return await self._invoker.unary(methods.MEMBER_UPDATE, request, timeout=timeout, retry=retry)

    async def promote(
        self, member: MemberLike, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberPromoteResult:
        """Give a learner its vote.

        Args:
            member: which one.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Raises:
            LearnerNotReadyError: it has not caught up with the leader yet: try again later.
            MemberNotLearnerError: it has a vote already.
            MemberNotFoundError: there is no such member.
            EtcdError: as every call.

        Cancellation: the learner may be promoted all the same.
        """
        request = pb.MemberPromoteRequest(id=member_id(member))
        return await self._invoker.unary(methods.MEMBER_PROMOTE, request, timeout=timeout, retry=retry)

    async def _add(
        self, peer_urls: str | Iterable[str], is_learner: bool, timeout: Timeout, retry: RetryMode | None
    ) -> MemberAddResult:
        request = pb.MemberAddRequest(peer_urls=check_peer_urls(peer_urls), is_learner=is_learner)
        return await self._invoker.unary(methods.MEMBER_ADD, request, timeout=timeout, retry=retry)


def member_id(member: MemberLike, what: str = "member") -> int:
    """The id of a member.

    Raises:
        InvalidRequestError: it is 0, which is no member, or does not fit 64 bits.
        TypeError: it is neither an int nor a `Member`.
    """
    found = member.id if isinstance(member, Member) else member
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"{what} must be a member id (an int) or a Member, got {type(member).__name__}")
    if not 0 < found <= _MAX_UINT64:
        raise InvalidRequestError(f"{what} must be a member id between 1 and 2^64 - 1, got {found}")
    return found


def check_peer_urls(peer_urls: str | Iterable[str]) -> list[str]:
    """The URLs as they are sent: from a list of them, or one comma-separated text; duplicates are dropped.

        http://host:port     https://host:port     unix://path     unixs://path

    etcd checks the same, but finds a wrong host or port only when the member does not come up, and the cluster has one
    more vote to reach by then.

    Raises:
        InvalidRequestError: there is no URL, or one of them is wrong. The message repeats no credentials.
        TypeError: one of them is not a str.
    """
    texts = peer_urls.split(",") if isinstance(peer_urls, str) else list(peer_urls)
    if not texts:
        raise InvalidRequestError("a member needs at least one peer URL")
    return list(dict.fromkeys(_check_peer_url(text) for text in texts))


def _check_peer_url(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a peer URL must be str, got {type(text).__name__}")
    url = text.strip()
    if not url:
        raise InvalidRequestError("a peer URL must not be empty")
    if not url.isprintable() or any(character.isspace() for character in url):
        raise InvalidRequestError("a peer URL must not contain white space or control characters")
    scheme, separator, rest = url.partition("://")
    match scheme.lower() if separator else "":
        case "unix" | "unixs":
            if not rest.strip("/"):
                raise InvalidRequestError(f"peer URL {url!r} has no path")
        case "http" | "https":
            if "@" in rest:
                raise InvalidRequestError("a peer URL must not carry credentials")
            if any(mark in rest for mark in "/?#"):
                raise InvalidRequestError(f"peer URL {url!r} has more than host and port")
            try:
                _, port = split_host_port(rest)
            except ValueError as error:
                raise InvalidRequestError(f"peer URL {url!r} {error}") from None
            if port is None:
                raise InvalidRequestError(f"peer URL {url!r} has no port between 1 and 65535")
        case _:
            raise InvalidRequestError("a peer URL begins with http://, https://, unix:// or unixs://")
    return url
