"""Results of the calls about members, as frozen values."""

from collections.abc import Collection, Iterator

from etcd_aio.dataclass import dataclass
from etcd_aio.types.kv import Header


@dataclass(frozen=True, slots=True)
class Member:
    """One member of the cluster.

    Attributes:
        id: the member's id, which etcd's own tools show in hexadecimal.
        name: the member's name; empty until it has started for the first time.
        peer_urls: the URLs for other members.
        client_urls: the URLs for clients that it advertises; empty until it has started for the first time.
        is_learner: whether it is a learner, which has no vote yet.
    """

    id: int = 0
    name: str = ""
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()
    is_learner: bool = False

    @property
    def is_started(self) -> bool:
        """Whether the member has ever started; it may be down now. A member has no name before its first start."""
        return bool(self.name)


@dataclass(frozen=True, slots=True)
class MemberListResult(Collection[Member]):
    """The members of the cluster. It has length, iteration and `in`.

    Attributes:
        header: the metadata of the response.
        members: the members, in no particular order.
    """

    header: Header
    members: tuple[Member, ...] = ()

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)

    def __contains__(self, item: object) -> bool:
        return item in self.members


@dataclass(frozen=True, slots=True)
class MemberAddResult:
    """A member was added.

    Attributes:
        header: the metadata of the response.
        member: the new member; before it starts it has only an id and peer URLs.
        members: all members after the change.
    """

    header: Header
    member: Member
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberRemoveResult:
    """A member was removed.

    Attributes:
        header: the metadata of the response.
        members: those that are left.
    """

    header: Header
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberUpdateResult:
    """A member has other peer URLs.

    Attributes:
        header: the metadata of the response.
        members: all members after the change.
    """

    header: Header
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberPromoteResult:
    """A learner has a vote.

    Attributes:
        header: the metadata of the response.
        members: all members after the change.
    """

    header: Header
    members: tuple[Member, ...] = ()
