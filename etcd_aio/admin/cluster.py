"""`client.cluster`: the calls about the members of the cluster."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from etcd_aio import methods, pb
from etcd_aio.arguments import flag, split_host_port
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import InvalidRequestError
from etcd_aio.types import (
    Member,
    MemberAddResult,
    MemberListResult,
    MemberPromoteResult,
    MemberRemoveResult,
    MemberUpdateResult,
)

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

MemberLike: TypeAlias = int | Member
"""A member as users write it: its id, or the `Member` of a listing."""

_MAX_UINT64 = 2**64 - 1


class Cluster:
    """The cluster API: `client.cluster`.

    Every call takes `timeout` and `retry`, and raises, as the key-value calls do. A change is applied at most once,
    unless `retry="always"`: if its error has `maybe_applied`, look at `members()` before trying again. A cancelled
    change may have been applied. A member is given by its id or as a `Member`.

    etcd refuses a change that would risk the quorum, while too few members are connected, and for 5 seconds after a
    member has come up (`UnhealthyClusterError`, `MemberNotEnoughStartedError`).
    """

    def __init__(self, invoker: "Invoker") -> None:
        self._invoker = invoker

    async def members(
        self, *, serializable: bool = False, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberListResult:
        """List the members.

        Args:
            serializable: let one member answer from its own state, which needs no quorum, and may be stale. Servers
                before etcd 3.5 always do.
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
        return await self._add(peer_urls, False, timeout, retry)

    async def add_learner(
        self, peer_urls: str | Iterable[str], *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberAddResult:
        """Add a member without a vote, as `add` does: it copies the data, and counts for the quorum after `promote`.

        Raises:
            TooManyLearnersError: there are as many learners as etcd allows, 1 by default.
        """
        return await self._add(peer_urls, True, timeout, retry)

    async def remove(
        self, member: MemberLike, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberRemoveResult:
        """Remove a member. Its process ends soon after, and it can never come back with its data.

        Raises:
            MemberNotFoundError: there is no such member, or it was removed.
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
        """Change the peer URLs of a member, before it moves.

        Args:
            member: the member.
            peer_urls: all its new peer URLs, as in `add`.

        Raises:
            InvalidRequestError: a URL is invalid. Nothing was sent.
            MemberNotFoundError: there is no such member.
            PeerURLExistsError: another member has one of the URLs.
        """
        request = pb.MemberUpdateRequest(id=member_id(member), peer_urls=check_peer_urls(peer_urls))
        return await self._invoker.unary(methods.MEMBER_UPDATE, request, timeout=timeout, retry=retry)

    async def promote(
        self, member: MemberLike, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> MemberPromoteResult:
        """Give a learner its vote.

        Raises:
            LearnerNotReadyError: the learner has not caught up with the leader yet: try again later.
            MemberNotLearnerError: the member has a vote already.
            MemberNotFoundError: there is no such member.
        """
        request = pb.MemberPromoteRequest(id=member_id(member))
        return await self._invoker.unary(methods.MEMBER_PROMOTE, request, timeout=timeout, retry=retry)

    async def _add(
        self, peer_urls: str | Iterable[str], is_learner: bool, timeout: Timeout, retry: RetryMode | None
    ) -> MemberAddResult:
        request = pb.MemberAddRequest(peer_urls=check_peer_urls(peer_urls), is_learner=is_learner)
        return await self._invoker.unary(methods.MEMBER_ADD, request, timeout=timeout, retry=retry)


def member_id(member: MemberLike, what: str = "member") -> int:
    """Return the id of a member, checked: 0 is no member."""
    found = member.id if isinstance(member, Member) else member
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"{what} must be a member id (an int) or a Member, got {type(member).__name__}")
    if not 0 < found <= _MAX_UINT64:
        raise InvalidRequestError(f"{what} must be a member id between 1 and 2^64 - 1, got {found}")
    return found


def check_peer_urls(peer_urls: str | Iterable[str]) -> list[str]:
    """Return the URLs of a list or of one comma-separated text, checked and without duplicates.

        http://host:port     https://host:port     unix://path     unixs://path

    etcd checks the same, but notices a wrong host or port only when the member does not come up, when the cluster
    already needs one more vote. Errors repeat no credentials.
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
