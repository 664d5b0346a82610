"""Ring: which member of a group each key belongs to, kept up to date in memory.

The members are read from a cache of the group, so each assignment is that of etcd at one revision, which is its epoch.
Members that have not seen the newest revision yet assign by an older one: for a moment two of them may hold the same
key to be theirs. The epoch tells which of them is newer.
"""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import ClassVar, Self

from etcd_aio import KeyLike, KeyRange, KeyValue, Store
from etcd_aio.cache import Cache, CacheChanges
from etcd_aio.call_options import UNSET, Timeout
from etcd_aio.errors import ClientUsageError
from etcd_aio.not_awaitable import NotAwaitable
from etcd_aio.recipes.hash_ring import HashRing
from etcd_aio.recipes.members import GroupMember, members_of
from etcd_aio.reprs import when_constructed


class Ring(NotAwaitable):
    """The keys divided among the members of a group: `async with group.ring() as ring:`.

    Entering reads the members; from then on they follow etcd. In an outage the last ones stay. Any number of tasks may
    use one object.
    """

    usage: ClassVar[str] = "a ring cannot be awaited: write `async with group.ring() as ring:`"

    def __init__(self, store: Store, prefix: bytes, replicas: int) -> None:
        self._prefix = prefix
        self._hashes = HashRing((), replicas=replicas)
        self._cache: Cache[KeyValue] = Cache(store, KeyRange.of(prefix=prefix))
        self._members: dict[str, GroupMember] = {}
        self._is_entered = False
        self._version = -1  # of the content that the members were read from

    @when_constructed
    def __repr__(self) -> str:
        return f"<Ring of {self._cache!r}>"

    async def __aenter__(self) -> Self:
        """Read the members.

        Raises:
            EtcdError: they could not be read.
            ClientUsageError: it was entered before, or the client is closed.

        Cancellation leaves nothing behind.
        """
        await self._cache.__aenter__()
        self._is_entered = True
        return self

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
        cache = self._cache
        if not self._is_entered:
            raise ClientUsageError("not entered: write `async with group.ring() as ring:`")
        if cache.content_version == self._version:
            len(cache)  # raises if it has ended
            return self._hashes
        self._members = {member.name: member for member in members_of(cache.range().values(), self._prefix)}
        if self._version < 0 or self._members.keys() != set(self._hashes.members):
            self._hashes = self._hashes.replaced(self._members, cache.revision)
        self._version = cache.content_version
        return self._hashes

    @property
    def epoch(self) -> int:
        """The revision of etcd at which the members were these: that of the present `assignment`.

        Of two members the one with the larger epoch is newer, so it serves as a fencing token.

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
        than the changes misses some in between; the newest one always comes.

        Raises:
            CacheError: as `assignment`.
        """
        _ = self.assignment  # raises, if there is none
        return RingChanges(self, self._cache.changes())


class RingChanges(AsyncIterator[HashRing]):
    """The assignments of a ring; made by `Ring.changes`. Cancelling a step loses nothing."""

    def __init__(self, ring: Ring, changes: CacheChanges) -> None:
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
