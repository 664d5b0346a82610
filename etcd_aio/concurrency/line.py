"""Line: a contender's key, and its wait for its turn. See `place.py` for the theory, and `own_key.py` for the key.

The calls, for a lock:

    enter    When the own key is missing, put it with the lease, and list a few keys; else get it, and list the same.
             If these are all, and no older one is named like a contender's, it holds: one round trip, without a sort
             and without values where etcd applies writes.
    look     List the keys that are not younger than the own one, youngest first; without values, which etcd 3.7 reads
             faster, unless `Place` needs the leases, which it leaves out then.
    wait     Watch the next key from now, then get it: a deletion between the two is not missed, and no old revision is
             named, so compaction cannot end the wait.
    leave    When the own key has its revision, delete it.
"""

from etcd_aio import RangeResult, op
from etcd_aio.concurrency.held import later_event
from etcd_aio.concurrency.options import E, HoldOptions
from etcd_aio.concurrency.own_key import OwnKey
from etcd_aio.concurrency.place import ENTRY_LIMIT, LineKeys, Listed, Place, PlaceState
from etcd_aio.errors import LeaseNotFoundError
from etcd_aio.lease import Loan


class Line(OwnKey[E]):
    """Acquisitions, one after the other: each is `stand` or `try_stand`, then `leave`.

    Args:
        options: how it is held.
        keys: where the keys of the line are.

    Attributes:
        value: of the own key, for the next acquisition.
        place: the place in the line, from `stand` on.
    """

    def __init__(self, options: HoldOptions[E], keys: LineKeys) -> None:
        super().__init__(options, keys.own)
        self._keys = keys
        self._listed = self._entry_range()
        self.value = b""
        self.place = Place(keys, 0)

    # Standing in line.

    async def stand(self, timeout: float | None) -> bool:
        """Enter the line, and wait until this place holds; then it is True.

        Args:
            timeout: seconds; None for no limit.

        Raises:
            LockTimeoutError: or what `subject.late` is: it did not come to hold in time.
            LockLostError: or what `subject.lost` is: its lease or its key was lost while it waited.
            EtcdError: no lease was granted, or the key could not be created.

        After an error or a cancellation the line is left.
        """
        async with self.waiting(timeout):
            await self._enter(waits=True)
            while self.place.state is not PlaceState.HELD:
                await self._advance()
        return True

    async def try_stand(self) -> bool:
        """Enter the line if it is empty, and stay if this place holds at once. If it is not empty, write nothing."""
        if await self._is_taken():
            return False
        async with self.waiting(None):
            is_in_line = await self._enter(waits=False)
            self.place.lists_leases = True  # no wait follows that would tell data from a contender
            while is_in_line and self.place.state is PlaceState.LOOKING:
                await self._advance()
        if is_in_line and self.place.state is PlaceState.HELD:
            return True
        await self.leave()
        return False

    async def resume(self, lease: int, revision: int) -> bool:
        """Take the place of an earlier process with the same lease, whose key is there and holds.

        Args:
            lease: the id of the lease.
            revision: the `create_revision` of that key.

        Raises:
            LockLostError: or what `subject.lost` is: the lease or the key is gone, or it does not hold.
            EtcdError: it could not be found out.

        After an error or a cancellation, the lease and the key are as they were.
        """
        own = await self._store.get(self._keys.key(lease))
        if own is None or (own.create_revision, own.lease) != (revision, lease):
            raise self.lost("its key is gone")
        async with self.waiting(None, abandons=True):
            try:
                loan = await self._source.adopt(lease)
            except LeaseNotFoundError as error:
                raise self.lost("its lease is gone", error) from error
            self._use(loan)
            self.revision = revision
            self.place.created(revision, (), limit=0)  # nothing was listed yet
            self.place.lists_leases = True  # no wait follows here, either
            while self.place.state is PlaceState.LOOKING:
                await self._advance()
            if self.place.state is not PlaceState.HELD:
                raise self.lost("another one is before it")
        return True

    async def _is_taken(self) -> bool:
        limit = 1
        keys = self._keys
        while True:
            result = await self._store.range(prefix=keys.before, limit=limit)
            if any(keys.has(kv) for kv in result.kvs):
                return True
            if len(result.kvs) < limit:
                return False
            limit *= 2

    async def _enter(self, *, waits: bool) -> bool:
        """Create the own key. Returns False if no lease is lent."""
        self.place = Place(self._keys, 0)
        result = await self.create(self.value, self._listed, waits=waits)
        if result is not None:
            self._created(result[self._listed])
        return result is not None

    def _use(self, loan: Loan) -> None:
        self.place = Place(self._keys, loan.id)
        self.place.move(PlaceState.ENTERING)
        super()._use(loan)

    def _entry_range(self) -> op.RangeOp:
        """The keys that are listed in the txn that creates the own one."""
        return op.range(prefix=self._keys.before, limit=ENTRY_LIMIT, keys_only=True)

    def _created(self, found: RangeResult) -> None:
        """The key is there: find out whether it holds already."""
        self.place.created(self.revision, found.kvs)

    async def _advance(self) -> None:
        await self.persist(self._look_or_wait)
        if self.place.state is PlaceState.LOST:
            lease = "its lease" if self.loan is None else f"its lease 0x{self.loan.id:x}"
            raise self.lost(f"its key is gone: it was deleted, or {lease} was revoked")

    async def _look_or_wait(self) -> None:
        ahead = self.place.ahead
        await (self._look() if ahead is None else self._wait(ahead))

    async def _look(self) -> None:
        place, keys = self.place, self._keys
        before = op.range(
            prefix=keys.before,
            max_create_revision=place.revision,
            sort_by="create_revision",
            sort_order="descend",
            limit=place.limit,
            keys_only=not place.lists_leases,
        )
        if keys.lists_own:
            kvs = (await self._store.do(before)).kvs
            place.looked(kvs, kvs[0] if kvs else None)
        else:
            get = op.get(place.key)
            result = await self._store.do(op.txn(then=[get, before]))
            place.looked(result[before].kvs, result[get])

    async def _wait(self, ahead: Listed) -> None:
        place = self.place
        async with self._store.watch(ahead.key, timeout=None) as watcher:
            place.checked(await self._store.get(ahead.key))
            while place.state is PlaceState.WAITING:
                event = await later_event(watcher, ahead.create_revision)
                place.checked(event.kv if event.is_put else None)

    # Leaving.

    async def leave(self, *, is_cancelled: bool = False) -> None:
        """Leave the line; see `OwnKey.leave`."""
        place = self.place
        if place.state is PlaceState.LOST:
            self.is_dirty = True  # the key may be there, without its lease
        elif place.state is not PlaceState.OUT:
            place.move(PlaceState.LEAVING)
        await super().leave(is_cancelled=is_cancelled)
        if place.state is not PlaceState.OUT:
            place.move(PlaceState.OUT)

    def leave_lost(self) -> None:
        """Leave the line in the background: what was held is lost."""
        super().leave_lost()
        self.place.move(PlaceState.LOST)

    def _reason_of_delay(self) -> str:
        ahead = self.place.ahead
        return super()._reason_of_delay() if ahead is None else f"the contender {ahead.key!r} is still before this one"
