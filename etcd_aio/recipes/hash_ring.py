"""HashRing: a consistent-hash assignment of keys to members. Pure.

Each member has points on a ring of 2**64 numbers, and a key belongs to the member of the first point at or after the
hash of the key. If a member joins, only keys that it gets change their member; if one leaves, only the keys that it
had. All processes, platforms and releases compute the same points and the same hashes: members of a group must agree
without a word, so these are a part of the format, as keys in etcd are.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Final

from etcd_aio.errors import EmptyGroupError, InvalidRequestError
from etcd_aio.types import KeyLike, to_bytes, whole_number

DEFAULT_REPLICAS: Final = 64
"""Points of each member: the largest share is then about a third above the mean."""

_MOST_REPLICAS: Final = 4096  # more makes shares hardly more even, and takes memory
_POINT_BYTES: Final = 8
_POINTS_IN_A_HASH: Final = blake2b.MAX_DIGEST_SIZE // _POINT_BYTES


def points_of(name: str, replicas: int) -> tuple[int, ...]:
    """The points of a member."""
    found: list[int] = []
    encoded = name.encode()
    for number in range(-(-replicas // _POINTS_IN_A_HASH)):
        digest = blake2b(encoded, salt=number.to_bytes(8, "big")).digest()
        found += (int.from_bytes(digest[at : at + _POINT_BYTES], "big") for at in range(0, len(digest), _POINT_BYTES))
    return tuple(islice(found, replicas))


def hash_of(key: bytes) -> int:
    """The place of a key on the ring."""
    return int.from_bytes(blake2b(key, digest_size=_POINT_BYTES).digest(), "big")


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class HashRing:
    """Which member each key belongs to, for one set of members: `HashRing(["host-1", "host-2"]).owner("user/42")`.

    Two rings of the same names, replicas and epoch are equal.

    Args:
        names: the names of the members.
        replicas: points of each member. Default: 64; the largest share is then about a third above the mean. All
            members must use the same number.
        epoch: the revision of etcd at which the members were these. Default: 0, none.

    Attributes:
        members: the names, sorted.
        replicas: points of each member.
        epoch: the revision of etcd at which the members were these. Of two rings of a group the one with the larger
            epoch is newer, and rings with the same epoch are equal: so it serves as a fencing token.

    Raises:
        InvalidRequestError, TypeError: an argument is invalid.
    """

    members: tuple[str, ...]
    replicas: int
    epoch: int
    _points: tuple[int, ...]
    _owners: tuple[str, ...]
    _of_member: Mapping[str, tuple[int, ...]]

    def __init__(self, names: Collection[str], *, replicas: int = DEFAULT_REPLICAS, epoch: int = 0) -> None:
        if isinstance(names, str):
            raise TypeError("names must be several: write [name]")
        self._fill(names, checked_replicas(replicas), whole_number(epoch, "epoch"), {})

    def _fill(self, names: Collection[str], replicas: int, epoch: int, known: Mapping[str, tuple[int, ...]]) -> None:
        members = tuple(sorted(set(names)))
        of_member = {name: known.get(name) or points_of(name, replicas) for name in members}
        # Equal points of two members are so rare that it only matters that all decide alike: the first name has them.
        owner_of = {point: name for name in reversed(members) for point in of_member[name]}
        points = tuple(sorted(owner_of))
        fields = {
            "members": members,
            "replicas": replicas,
            "epoch": epoch,
            "_points": points,
            "_owners": tuple(map(owner_of.__getitem__, points)),
            "_of_member": of_member,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def replaced(self, names: Collection[str], epoch: int) -> "HashRing":
        """The ring of other members; the points of those that stay are taken over."""
        new = object.__new__(HashRing)
        new._fill(names, self.replicas, whole_number(epoch, "epoch"), self._of_member)
        return new

    def __repr__(self) -> str:
        return f"<HashRing of {len(self.members)} members epoch={self.epoch}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HashRing):
            return NotImplemented
        return (self.members, self.replicas, self.epoch) == (other.members, other.replicas, other.epoch)

    def __hash__(self) -> int:
        return hash((self.members, self.replicas, self.epoch))

    def owner(self, key: KeyLike) -> str:
        """The name of the member that a key belongs to.

        Args:
            key: any text or bytes; it need not be a key of etcd.

        Raises:
            EmptyGroupError: there is no member.
            TypeError: the key is neither str nor bytes-like.
        """
        place = hash_of(to_bytes(key, "key"))
        if not self._points:
            raise EmptyGroupError
        return self._owners[bisect_left(self._points, place) % len(self._points)]

    def owners(self, key: KeyLike, count: int) -> tuple[str, ...]:
        """The names of several members for a key: its owner, then those that would be its owner next, as for copies.

        Args:
            key: any text or bytes.
            count: how many. Fewer if there are fewer members.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
        """
        whole_number(count, "count", minimum=1)
        at = bisect_left(self._points, hash_of(to_bytes(key, "key")))
        count = min(count, len(self.members))
        found: dict[str, None] = {}
        while len(found) < count:
            found[self._owners[at % len(self._owners)]] = None
            at += 1
        return tuple(found)


def checked_replicas(replicas: int) -> int:
    """The number of points, if it is one.

    Raises:
        InvalidRequestError, TypeError: it is none.
    """
    if whole_number(replicas, "replicas", minimum=1) > _MOST_REPLICAS:
        raise InvalidRequestError(f"replicas must be at most {_MOST_REPLICAS}, got {replicas}")
    return replicas
