"""Ring: which member of a group each key belongs to, kept up to date in memory.

The members are read from a cache of the group, so each assignment is that of etcd at one revision. Members that have
not seen the newest one yet assign by an older one: for a moment two of them may hold the same key to be theirs. The
epoch tells which of them is newer.

Theory of the epoch. It has to grow with each join and leave that happened, also if the members are the same again
behind them: the one that was there in between has larger epochs in its writes. So it is the revision of the newest
event of this kind, and not that at which a difference was seen. Who reads the members anew cannot know that event: a
key that is gone leaves nothing behind. Then the epoch is the revision R of the read, which is at least that of the
event, and less than that of the next one. In both cases, with e the epoch:

    no join or leave is in (e, the revision of the content], so the members are the same in all of it

Let a ring have the epoch e and another one f > e. If the first one's content reaches f, its members were the same up to
there, so both are equal; else it is older. And f = e: both have the members of that revision.

A cache that validates its content by a read may be past members that came and went before it has their events. Until
these are there, a moment later, the epoch is too small, so writes with it may be refused.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, ClassVar, Final

from etcd_aio import KeyLike, KeyRange
from etcd_aio.cache import Derived, KeySetChanges
from etcd_aio.calls import StoreCalls
from etcd_aio.recipes.group.hash_ring import POINTS_AT_ONCE, HashRing, sorted_points
from etcd_aio.recipes.group.members import GroupMember, member_name, members_of
from etcd_aio.types import shown_key

if TYPE_CHECKING:
    from array import array

logger: Final = logging.getLogger("etcd_aio.groups")


class Ring(Derived[HashRing, HashRing]):
    """The keys divided among the members of a group: `async with group.ring() as ring:`.

    Entering reads the members, and computes their points with a pause after each few thousand; from then on they follow
    etcd. In an outage the last ones stay, also while the user may not read the group. After the end no assignment can
    be read, and `changes()` raises `CacheError`: nothing must be divided by it any more.

    `changes()` gives the present assignment, then one after each member that joins or leaves. If the members are the
    same again by then, it differs by its epoch alone. Any number of tasks may use one object.
    """

    usage: ClassVar[str] = "a ring cannot be awaited: write `async with group.ring() as ring:`"
    _noun: ClassVar[str] = "a ring"
    _stays: ClassVar[bool] = False

    def __init__(self, store: StoreCalls, prefix: bytes, replicas: int) -> None:
        super().__init__(store, KeyRange.of(prefix=prefix), what=f"members of {shown_key(prefix[:-1])}", logger=logger)
        self._prefix = prefix
        self._hashes = HashRing((), replicas=replicas)
        self._members: dict[str, GroupMember] = {}
        self._known: dict[str, array[int]] = {}  # points that are not in `_hashes` yet
        self._joins_and_leaves: KeySetChanges | None = None  # of the cache

    def _follower(self) -> KeySetChanges:
        followed = self._cache.key_set_changes(lambda key: member_name(key, self._prefix) is not None)
        self._joins_and_leaves = followed
        return followed

    async def _prepare(self) -> None:
        self._known = await self._points()

    async def _points(self) -> "dict[str, array[int]]":
        """The points of the members, computed in turns of the loop."""
        found: dict[str, array[int]] = {}
        replicas, count = self._hashes.replicas, 0
        for member in members_of(self._cache.range().values(), self._prefix):
            found[member.name] = sorted_points(member.name, replicas)
            count += replicas
            if count >= POINTS_AT_ONCE:
                count = 0
                await asyncio.sleep(0)
        return found

    def _epoch(self) -> int:
        return 0 if self._joins_and_leaves is None else self._joins_and_leaves.revision

    def _version(self) -> object:
        return self._cache.content_version, self._epoch()

    def _make(self) -> HashRing:
        members = members_of(self._cache.range().values(), self._prefix)
        self._members = {member.name: member for member in members}
        known, self._known = self._known, {}
        # A store that was replaced may have other members at the same revision.
        if (self._epoch(), *self._members) != (self._hashes.epoch, *self._hashes.members):
            self._hashes = self._hashes.replaced(self._members, self._epoch(), known)
        return self._hashes

    # State.

    @property
    def assignment(self) -> HashRing:
        """The present assignment. It is a plain read from memory, and does not change; it is made at the first use.

        Raises:
            CacheError: the block was left, or the client is closed.
            ClientUsageError: the block was not entered.
        """
        return self._read()

    @property
    def epoch(self) -> int:
        """The revision of etcd since which the members are these: that of the present `assignment`.

        It grows with each join and leave, also if the members are the same again behind them. Of two members the one
        with the larger epoch is not older, and those with equal epochs assign alike: so it serves as a fencing token.

        Rings that follow the same join or leave have the same epoch from then on. One that has to read the members
        anew, on entering and after a compaction in an outage, takes the revision of that read, until the next join or
        leave: so let all tasks of a process share one ring.

        If a store is restored from a backup, its revisions go back, and the epochs do. What was written to this store
        with an epoch went back too. Other systems, and members that have not noticed yet, have larger ones: they are
        right again if the backup was restored with `--bump-revision` of `etcdutl snapshot restore`.

        Raises:
            CacheError: as `assignment`.
        """
        return self.assignment.epoch

    @property
    def members(self) -> tuple[GroupMember, ...]:
        """The present members, sorted by name.

        Raises:
            CacheError: as `assignment`.
        """
        names = self.assignment.members
        return tuple(self._members[name] for name in names)

    def owner(self, key: KeyLike) -> GroupMember:
        """The member that a key belongs to.

        Args:
            key: any text or bytes; it need not be a key of etcd.

        Raises:
            EmptyGroupError: there is no member.
            TypeError: the key is neither str nor bytes-like.
            CacheError: as `assignment`.
        """
        name = self.assignment.owner(key)  # this reads the members anew, if need be
        return self._members[name]

    def owners(self, key: KeyLike, count: int) -> tuple[GroupMember, ...]:
        """Several members for a key: its owner, then those that would be its owner next, as for copies.

        Args:
            key: any text or bytes.
            count: how many. Fewer if there are fewer members.

        Raises:
            InvalidRequestError, TypeError: an argument is invalid.
            CacheError: as `assignment`.
        """
        names = self.assignment.owners(key, count)
        return tuple(self._members[name] for name in names)
