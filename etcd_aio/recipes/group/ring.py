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
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

from etcd_aio import KeyLike, KeyRange, KeyValue
from etcd_aio.base import UNSET, NotAwaitable, Timeout, when_constructed
from etcd_aio.cache import Cache, KeySetChanges
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import ClientUsageError
from etcd_aio.recipes.group.hash_ring import POINTS_AT_ONCE, HashRing, sorted_points
from etcd_aio.recipes.group.members import GroupMember, member_name, members_of

if TYPE_CHECKING:
    from array import array


class Ring(NotAwaitable):
    """The keys divided among the members of a group: `async with group.ring() as ring:`.

    Entering reads the members; from then on they follow etcd. In an outage the last ones stay. Any number of tasks may
    use one object.
    """

    usage: ClassVar[str] = "a ring cannot be awaited: write `async with group.ring() as ring:`"

    def __init__(self, store: StoreCalls, prefix: bytes, replicas: int) -> None:
        self._prefix = prefix
        self._hashes = HashRing((), replicas=replicas)
        self._cache: Cache[KeyValue] = Cache(store, KeyRange.of(prefix=prefix))
        self._members: dict[str, GroupMember] = {}
        self._joins_and_leaves: KeySetChanges | None = None  # from entering on
        self._version = -1  # of the content that the members were read from

    @when_constructed
    def __repr__(self) -> str:
        return f"<Ring of {self._cache!r}>"

    async def __aenter__(self) -> Self:
        """Read the members, and compute their points, with a pause after each few thousand.

        Raises:
            EtcdError: they could not be read.
            ClientUsageError: it was entered before, or the client is closed.

        Cancellation leaves nothing behind.
        """
        await self._cache.__aenter__()
        try:
            self._joins_and_leaves = self._follow()
            self._assign(await self._points())
        except BaseException:  # a cancellation too
            await self._cache.aclose()
            raise
        return self

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

    def _follow(self) -> KeySetChanges:
        return self._cache.key_set_changes(lambda key: member_name(key, self._prefix) is not None)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the watch. Leaving does this. Safe to repeat."""
        await self._cache.aclose()

    # State.

    @property
    def assignment(self) -> HashRing:
        """The present assignment. It is a plain read from memory, and does not change; it is made at the first use.

        Raises:
            CacheError: the block was left, or has ended: the client is closed, or the user may not read the group any
                more.
            ClientUsageError: the block was not entered.
        """
        followed = self._joins_and_leaves
        if followed is None:
            raise ClientUsageError("not entered: write `async with group.ring() as ring:`")
        if self._cache.content_version != self._version or followed.revision != self._hashes.epoch:
            self._assign({})
        else:
            len(self._cache)  # raises if it has ended
        return self._hashes

    def _assign(self, known: "Mapping[str, array[int]]") -> None:
        cache, followed = self._cache, self._joins_and_leaves
        self._members = {member.name: member for member in members_of(cache.range().values(), self._prefix)}
        self._version = cache.content_version
        assert followed is not None  # noqa: S101 - it was entered
        # A store that was replaced may have other members at the same revision.
        if (followed.revision, *sorted(self._members)) != (self._hashes.epoch, *self._hashes.members):
            self._hashes = self._hashes.replaced(self._members, followed.revision, known)

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

    @property
    def age(self) -> float:
        """Seconds: every change that was made longer ago is seen. It grows in an outage. See `Cache.age`."""
        return self._cache.age

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

    async def wait_current(self, *, timeout: Timeout = UNSET) -> None:
        """Wait until every change is seen that was made before this call.

        Args:
            timeout: seconds. Default: 5.

        Raises:
            EtcdTimeoutError: it was not seen in time.
            CacheError: as `assignment`.

        Cancellation leaves nothing behind.
        """
        await self._cache.wait_current(timeout=timeout)

    def changes(self) -> "RingChanges":
        """Follow the assignments: `async for assignment in ring.changes():`.

        The present one comes at once, then one after each member that joins or leaves. Only a consumer that is slower
        than the changes misses some in between; the newest one always comes. If the members are the same again by then,
        it differs by its epoch alone.

        Raises:
            CacheError: as `assignment`.
        """
        _ = self.assignment  # raises, if there is none
        return RingChanges(self, self._follow())


class RingChanges(AsyncIterator[HashRing]):
    """The assignments of a ring; made by `Ring.changes`. Cancelling a step loses nothing."""

    def __init__(self, ring: Ring, changes: KeySetChanges) -> None:
        self._ring = ring
        self._changes = changes
        self._told: HashRing | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> HashRing:
        while True:
            if self._told is not None:
                await anext(self._changes)
            assignment = self._ring.assignment
            if assignment != self._told:
                self._told = assignment
                return assignment

    async def aclose(self) -> None:
        """End the iteration. Safe to repeat."""
        await self._changes.aclose()
