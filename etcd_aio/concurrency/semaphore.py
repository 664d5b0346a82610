"""Semaphore: so many permits, for tasks, processes and machines, in the order of arrival. See `permits.py`."""

from typing import ClassVar

from etcd_aio import Key, KeyValue, RangeResult, SortBy, SortOrder, op
from etcd_aio.arguments import whole_number
from etcd_aio.base import SOON, Pauses
from etcd_aio.calls import StoreCalls
from etcd_aio.concurrency.held import later_event
from etcd_aio.concurrency.line import Line
from etcd_aio.concurrency.lock import Lock
from etcd_aio.concurrency.options import HoldOptions
from etcd_aio.concurrency.permits import PermitRequest, PermitVerdict, is_free, is_marked, judge, judge_ends
from etcd_aio.concurrency.place import ENTRY_LIMIT, LineKeys, Listed, Place, PlaceState
from etcd_aio.errors import ClientUsageError, EtcdError, InvalidRequestError, LockLostError
from etcd_aio.lease import LeaseSource, OnLost
from etcd_aio.types import KeyLike


class PermitLine(Line[LockLostError]):
    """One acquisition of permits: a `Line` with another rule."""

    def __init__(self, options: HoldOptions[LockLostError], keys: LineKeys, request: PermitRequest) -> None:
        super().__init__(options, keys)
        self._request = request
        self._is_head = False
        # Keys of a look at each end of the line; more once data was found between the contenders.
        self._oldest, self._youngest = self._enough, 2

    async def _is_taken(self) -> bool:
        limit = self._enough
        while True:
            found = await self._store.do(self._range(limit))
            if not is_free(self._mine(found), self._request):
                return True
            if not found.more:
                return False
            limit *= 2

    @property
    def _enough(self) -> int:
        """Keys that pass the limit in any case, if none is data."""
        return self._request.limit + 1

    def _range(self, limit: int, revision: int = 0, order: SortOrder = SortOrder.ASCEND) -> op.RangeOp:
        return op.range(
            prefix=self._keys.before,
            sort_by=SortBy.CREATE_REVISION,
            sort_order=order,
            limit=limit,
            max_create_revision=revision,
        )

    def _entry_range(self) -> op.RangeOp:
        return op.range(prefix=self._keys.before, limit=ENTRY_LIMIT)

    def _created(self, found: RangeResult) -> None:
        self.place.revision = self.revision
        is_held = not found.more and self._judge(found).is_held
        self.place.move(PlaceState.HELD if is_held else PlaceState.LOOKING)

    async def _look(self) -> None:
        place = self.place
        verdict = await self._verdict(place)
        if not verdict.is_there:
            place.move(PlaceState.LOST)
        elif verdict.is_held:
            place.move(PlaceState.HELD)
            self._source.run(self._mark(place), f"mark of {self._subject.what}")
        else:
            place.ahead, self._is_head = verdict.ahead, verdict.is_head
            place.move(PlaceState.WAITING)

    async def _verdict(self, place: Place) -> PermitVerdict:
        """Look at both ends of the line; at more of them while data stands between the contenders."""
        while True:
            first = self._range(self._oldest, place.revision)
            last = self._range(self._youngest, place.revision, SortOrder.DESCEND)
            result = await self._store.do(op.txn(then=[first, last]))
            oldest, youngest = result[first], result[last]
            if not oldest.more:
                return self._judge(oldest)
            verdict = judge_ends(self._mine(oldest), self._mine(youngest), place.key, place.revision, self._request)
            if verdict is not None:
                return verdict
            self._oldest, self._youngest = 2 * self._oldest, 4 * self._youngest

    async def _wait(self, ahead: Listed) -> None:
        place = self.place
        if self._is_head:
            async with self._store.watch(prefix=self._keys.before, filters=("no_put",), timeout=None) as watcher:
                place.vanished()
                await self._look()
                while place.state is PlaceState.WAITING:
                    await anext(watcher)
                    place.vanished()
                    await self._look()
            return
        async with self._store.watch(ahead.key, timeout=None) as watcher:
            kv = await self._store.get(ahead.key)
            place.checked(None if kv is None or is_marked(kv) else kv)
            while place.state is PlaceState.WAITING:
                event = await later_event(watcher, ahead.create_revision)
                place.checked(event.kv if event.is_put and not is_marked(event.kv) else None)

    async def _mark(self, place: Place) -> None:
        """Wake the next waiter, which cannot know otherwise that this one holds now."""
        value = self._request.value(is_held=True)
        mark = op.put(place.key, value, ignore_lease=True)
        txn = op.txn(when=[Key(place.key).create_revision == place.revision], then=[mark])
        pauses = Pauses(SOON)
        while place.state is PlaceState.HELD:
            try:
                await self._store.do(txn, retry="always")
            except ClientUsageError:  # the client is closed
                return
            except EtcdError:
                await pauses.wait()
            else:
                return

    def _judge(self, found: RangeResult) -> PermitVerdict:
        return judge(self._mine(found), self.place.key, self.place.revision, self._request)

    def _mine(self, found: RangeResult) -> list[KeyValue]:
        return [kv for kv in found.kvs if self._keys.has(kv)]


class Semaphore(Lock):
    """Permits of a semaphore: `async with client.semaphore("gpu", limit=3) as permit:`.

    It is used as a `Lock`. At any time the permits that are held are at most `limit`. Requests are served in the order
    of arrival, so a large one at the head is not overtaken by small ones. `fencing_token` orders the holders, but does
    not exclude the others: several hold at the same time.

    All contenders must name the same limit: one with another limit than the oldest gets a `LockError`. Its key stands
    until it has found that out, and those that came after it wait for so long. The name cannot be that of a lock.
    """

    usage: ClassVar[str] = "a semaphore cannot be awaited: write `async with client.semaphore(...) as permit:`"

    _kind: ClassVar[str] = "semaphore"

    def __init__(
        self,
        store: StoreCalls,
        source: LeaseSource,
        name: KeyLike,
        *,
        limit: int,
        permits: int = 1,
        ttl: int,
        timeout: float | None = None,
        margin: float | None = None,
        on_lost: OnLost = "cancel",
    ) -> None:
        whole_number(limit, "limit", minimum=1)
        if whole_number(permits, "permits", minimum=1) > limit:
            raise InvalidRequestError(f"permits must be at most the limit of {limit}, got {permits}")
        super().__init__(store, source, name, ttl=ttl, timeout=timeout, margin=margin, on_lost=on_lost)
        self._request = PermitRequest(limit, permits)

    @property
    def limit(self) -> int:
        """The permits that there are."""
        return self._request.limit

    @property
    def permits(self) -> int:
        """The permits that this acquires."""
        return self._request.permits

    def _key_value(self) -> bytes:
        return self._request.value(is_held=False)

    def _new_line(self) -> Line[LockLostError]:
        return PermitLine(self._options, self._keys, self._request)
