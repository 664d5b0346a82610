"""HashRing: a consistent-hash assignment of keys to members. Pure.

Each member has points on a ring of 2**64 numbers, and a key belongs to the member of the first point at or after the
hash of the key. If a member joins, only keys that it gets change their member; if one leaves, only the keys that it
had. All processes, platforms and releases compute the same points and the same hashes: members of a group must agree
without a word, so these are a part of the format, as keys in etcd are.

The points of a member are computed once, and taken over by the rings after it. To merge those of all members would
block the event loop for seconds if there are many. So the ring is cut into about as many arcs as a member has points,
and an arc is merged when it is first asked for: that takes one step for each member, whatever the number of points.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from hashlib import blake2b
from struct import Struct
from typing import Final, TypeAlias

from etcd_aio.arguments import to_bytes, whole_number
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import EmptyGroupError, InvalidRequestError
from etcd_aio.types import KeyLike

DEFAULT_REPLICAS: Final = 64
"""Points of each member: the largest share is then about a third above the mean."""

POINTS_AT_ONCE: Final = 4096
"""Points that are computed in one turn of the loop: one or two milliseconds."""

_MOST_REPLICAS: Final = 4096  # more makes shares hardly more even, and takes memory
_RING_BITS: Final = 64
_HASH: Final = Struct(">Q")
_POINTS: Final = Struct(f">{blake2b.MAX_DIGEST_SIZE // _HASH.size}Q")  # of one digest
_POINTS_IN_A_DIGEST: Final = blake2b.MAX_DIGEST_SIZE // _HASH.size

_Arc: TypeAlias = tuple[tuple[int, ...], tuple[str, ...]]
"""The points of an arc, sorted, and whose they are."""


def points_of(name: str, replicas: int) -> tuple[int, ...]:
    """The points of a member."""
    found: list[int] = []
    encoded = name.encode()
    for number in range(-(-replicas // _POINTS_IN_A_DIGEST)):
        found += _POINTS.unpack(blake2b(encoded, salt=number.to_bytes(8, "big")).digest())
    return tuple(found[:replicas])


def hash_of(key: bytes) -> int:
    """The place of a key on the ring."""
    place: int = _HASH.unpack(blake2b(key, digest_size=_HASH.size).digest())[0]
    return place


def sorted_points(name: str, replicas: int) -> "array[int]":
    """The points of a member, sorted, in 8 bytes each."""
    return array("Q", sorted(points_of(name, replicas)))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class HashRing:
    """The member that each key belongs to, for one set of members: `HashRing(["host-1", "host-2"]).owner("user/42")`.

    Two rings of the same names, replicas and epoch are equal.

    Args:
        names: the names of the members.
        replicas: points of each member. Default: 64; the largest share is then about a third above the mean. All
            members must use the same number.
        epoch: the revision of etcd since which the members are these. Default: 0, none.

    Attributes:
        members: the names, sorted.
        replicas: points of each member.
        epoch: the revision of etcd since which the members are these. Of two rings of a group the one with the larger
            epoch is not older, and rings with the same epoch are equal: so it serves as a fencing token. See
            `Ring.epoch`.

    Raises:
        InvalidRequestError, TypeError: an argument is invalid.
    """

    members: tuple[str, ...]
    replicas: int
    epoch: int
    _of_member: "Mapping[str, array[int]]" = field(compare=False)
    _arcs: dict[int, _Arc] = field(compare=False)
    _shift: int = field(compare=False)

    def __init__(self, names: Collection[str], *, replicas: int = DEFAULT_REPLICAS, epoch: int = 0) -> None:
        if isinstance(names, str):
            raise TypeError("names must be several: write [name]")
        if whole_number(replicas, "replicas", minimum=1) > _MOST_REPLICAS:
            raise InvalidRequestError(f"replicas must be at most {_MOST_REPLICAS}, got {replicas}")
        self._fill(names, replicas, whole_number(epoch, "epoch"), {})

    def _fill(self, names: Iterable[str], replicas: int, epoch: int, known: "Mapping[str, array[int]]") -> None:
        members = tuple(sorted(set(names)))
        fields = {
            "members": members,
            "replicas": replicas,
            "epoch": epoch,
            "_of_member": {name: known.get(name) or sorted_points(name, replicas) for name in members},
            "_arcs": {},
            "_shift": _RING_BITS - (replicas - 1).bit_length(),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def replaced(
        self, names: Collection[str], epoch: int, known: "Mapping[str, array[int]] | None" = None
    ) -> "HashRing":
        """The ring of other members, or of the same since another epoch.

        Args:
            names: the names of the members. The points of those that stay are taken over.
            epoch: the revision of etcd since which the members are these.
            known: the points of others, as of `sorted_points`.
        """
        new = object.__new__(HashRing)
        new._fill(names, self.replicas, whole_number(epoch, "epoch"), {**(known or {}), **self._of_member})
        if new.members == self.members:
            object.__setattr__(new, "_arcs", self._arcs)
        return new

    def __repr__(self) -> str:
        return f"<HashRing of {len(self.members)} members epoch={self.epoch}>"

    def owner(self, key: KeyLike) -> str:
        """The name of the member that a key belongs to.

        Args:
            key: any text or bytes; it need not be a key of etcd.

        Raises:
            EmptyGroupError: there is no member.
            TypeError: the key is neither str nor bytes-like.
        """
        place = hash_of(to_bytes(key, "key"))
        if not self.members:
            raise EmptyGroupError
        points, owners = self._arc(place >> self._shift)
        at = bisect_left(points, place)
        return owners[at] if at < len(owners) else next(self._from(place))

    def owners(self, key: KeyLike, count: int) -> tuple[str, ...]:
        """The names of several members for a key: its owner, then those that would be its owner next, as for copies.

        Args:
            key: any text or bytes.
            count: how many. Fewer if there are fewer members.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
        """
        whole_number(count, "count", minimum=1)
        place = hash_of(to_bytes(key, "key"))
        count = min(count, len(self.members))
        found: dict[str, None] = {}
        if count:
            for name in self._from(place):
                found[name] = None
                if len(found) == count:
                    break
        return tuple(found)

    def _from(self, place: int) -> Iterator[str]:
        """The owners of the points from a place on, round the ring without an end."""
        number = place >> self._shift
        points, owners = self._arc(number)
        yield from owners[bisect_left(points, place) :]
        last = (1 << _RING_BITS - self._shift) - 1
        while True:
            number = number + 1 if number < last else 0
            yield from self._arc(number)[1]

    def _arc(self, number: int) -> _Arc:
        arc = self._arcs.get(number)
        if arc is None:
            first, end = number << self._shift, (number + 1) << self._shift
            owner_of: dict[int, str] = {}
            for name, points in self._of_member.items():
                # Equal points of two members are so rare that it only matters that all decide alike: the first name.
                for at in range(bisect_left(points, first), len(points)):
                    if (point := points[at]) >= end:
                        break
                    owner_of.setdefault(point, name)
            found = tuple(sorted(owner_of))
            self._arcs[number] = arc = found, tuple(map(owner_of.__getitem__, found))
        return arc
