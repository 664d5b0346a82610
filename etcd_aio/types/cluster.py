"""Results of the calls about members, as frozen values."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from etcd_aio.types.kv import Header


@dataclass(frozen=True, slots=True)
class Member:
    """One member of the cluster.

    Attributes:
        id: its id, which etcd's own tools show in hexadecimal.
        name: its name; empty until it has started for the first time.
        peer_urls: where other members reach it.
        client_urls: where clients reach it, as it says itself; empty until it has started for the first time.
        is_learner: whether it only listens, and has no vote yet.
    """

    id: int = 0
    name: str = ""
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()
    is_learner: bool = False

    @property
    def is_started(self) -> bool:
        """Whether it has started ever; it may be down now. One that was added and has not come up yet has no name."""
        return bool(self.name)


@dataclass(frozen=True, slots=True)
class MemberListResult(Collection[Member]):
    """The members of the cluster. It has length, iteration and `in`.

    Attributes:
        header: who answered.
        members: the members, in no order.
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
        header: who answered.
        member: the new one; it has an id and peer URLs, and nothing else before it starts.
        members: all members there are now.
    """

    header: Header
    member: Member
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberRemoveResult:
    """A member was removed.

    Attributes:
        header: who answered.
        members: those that are left.
    """

    header: Header
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberUpdateResult:
    """A member has other peer URLs.

    Attributes:
        header: who answered.
        members: all members there are now.
    """

    header: Header
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberPromoteResult:
    """A learner has a vote.

    Attributes:
        header: who answered.
        members: all members there are now.
    """

    header: Header
    members: tuple[Member, ...] = ()
