"""Replicator: keeps a replica in sync with the store: loads a range, watches it, and resyncs after a compaction.

Loading begins with a watch from now on a stream of its own, and reads the range after it: the store is at revision C
when the watch is there, the range is read at R, and R >= C, so the watch has every later change. No old revision is
asked for, so no compaction can come in between, and the watch is never behind. The stream is the cache's own, since a
mark comes only if all watches of a stream are up to date.

A watch that ends because its history is compacted leads to a new load too. The content before tells what is gone, so
the watch need not remember the keys a second time, as it would have to by itself.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, Generic, TypeVar

from etcd_aio import EtcdError, Event, KeyRange, KeyValue, Watcher, op
from etcd_aio.base import STEADY, UNSET, Backoff, Pauses, Timeout, log_for
from etcd_aio.cache.decoder import Decoder
from etcd_aio.cache.state import CacheState, Replica, whole_revisions
from etcd_aio.cache.steps import PART, ContentStep, StoreReplaced, let_go
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import CompactedError, FutureRevisionError, NoAvailableEndpointsError, StoreRolledBackError
from etcd_aio.types import range_arguments, shown_keys

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.cache")

_LARGE: Final = 2 * PART  # events of a step beyond which it is staged
# After these the range is read again: once without a pause.
_AT_ONCE: Final = (CompactedError, StoreReplaced, StoreRolledBackError)
_UNREACHABLE: Final = Backoff(initial=0.1, multiplier=2.0, maximum=0.5, jitter=0.2)  # costs no server anything
_streams: Final = count(1)


class Replicator(Generic[T]):
    """Keeps a replica like the store.

    Args:
        store: the client.
        keys: the range.
        replica: the copy.
        decoder: of its values; None if they are not decoded.
        clock: of the age.
        max_outage: seconds without any member to watch on, after which the replica lags behind.
        on_step: called when the content has changed.
        on_moved: called when the revision, or what is known of marks, has changed.
        on_replaced: called when the store is found to be another one.

    Attributes:
        loads: how often the range was loaded.
        events: how many events were applied.
    """

    def __init__(
        self,
        store: StoreCalls,
        keys: KeyRange,
        replica: Replica[T],
        decoder: Decoder[T] | None,
        *,
        clock: Callable[[], float],
        max_outage: float,
        on_step: Callable[[ContentStep], None],
        on_moved: Callable[[], None],
        on_replaced: Callable[[], None],
    ) -> None:
        self._store = store
        self._log = log_for(logger, store)
        self._keys = keys
        self._what = f"cache {shown_keys(keys.key, keys.range_end)}"
        self._replica = replica
        self._decoder = decoder
        self._clock = clock
        self._max_outage = max_outage
        self._on_step = on_step
        self._on_moved = on_moved
        self._on_replaced = on_replaced
        self._probe = _probe_of(keys)
        self._stream = f"cache {next(_streams)}"
        self._watcher: Watcher | None = None
        self._since_pause = 0  # events
        self._has_history = False  # whether a watch from the next revision goes on behind the content
        self._was_reached = False  # whether a member has answered in this outage
        self.loads = 0
        self.events = 0

    # Calls of the cache.

    async def run(self) -> None:
        """Follow the store until this is cancelled.

        Raises:
            EtcdError: the first load has failed, or an error that would come again, such as a denied permission.
        """
        pauses = Pauses()
        while True:
            try:
                watcher = await (self._resume() if self._has_history else self._load())
                self._was_reached = False
                pauses.reset()
                await self._follow(watcher)
            except (EtcdError, StoreReplaced) as error:
                # The first load may find the store rolled back, which is no replacement of a store that was followed.
                is_loading = self._replica.state is CacheState.LOADING
                if isinstance(error, StoreReplaced) or (isinstance(error, StoreRolledBackError) and not is_loading):
                    await self.replaced(str(error))
                else:
                    self._fell_behind(error)
                if isinstance(error, NoAvailableEndpointsError):
                    pauses.backoff = _UNREACHABLE
                    await self._until_reachable(pauses.next())
                elif pauses.failures or not isinstance(error, _AT_ONCE):
                    pauses.backoff = STEADY
                    await pauses.wait()
                else:
                    pauses.failures += 1
            finally:
                await self._leave()

    async def _until_reachable(self, seconds: float) -> None:
        """Pause, but only until a member answers: a watch that has given up does not notice its return.

        A member may answer and still have no leader to watch with, so one answer in an outage ends a pause.
        """
        deadline = self._clock() + seconds
        if not self._was_reached:
            try:
                await self._store.range(self._keys.key, count_only=True, serializable=True, timeout=seconds)
            except EtcdError:
                pass
            else:
                self._was_reached = True
                return
        await asyncio.sleep(max(0.0, deadline - self._clock()))

    async def replaced(self, why: str) -> None:
        """The store is another one than the one that was followed. It is loaded again by `run`."""
        if self._replica.state is CacheState.CLOSED:
            return
        level = logging.DEBUG if self._replica.state is CacheState.BROKEN else logging.ERROR  # one line for each store
        self._log.log(
            level,
            "%s: the store was replaced, such as restored from a backup; the range is loaded again: %s",
            self._what,
            why,
        )
        self._replica.store_replaced()
        self._has_history = False
        self._on_replaced()
        await self._leave()

    async def ask_mark(self) -> None:
        """Ask the watch for a mark, if there is a watch."""
        if self._watcher is not None:
            with suppress(EtcdError, StopAsyncIteration):  # of a watch that has ended; `run` has the same
                await self._watcher.request_progress()

    async def read_revision(self, timeout: float | None) -> int:
        """The revision of the store, by a linearizable read; the replica's age is counted from it.

        Raises:
            PermissionDeniedError: the user may not read the whole range.
            EtcdError: as every read.
        """
        replica = self._replica
        epoch, seen = replica.epoch, replica.revision
        sent = self._clock()
        revision = (await self._store.do(self._probe, timeout=timeout)).header.revision
        if epoch == replica.epoch and replica.is_exact:
            if revision < seen:
                await self.replaced(f"it is at revision {revision}, and was at {seen} before")
            else:
                replica.probed(sent, revision)
        return revision

    # Watching.

    async def _leave(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            await watcher.aclose()

    async def _watch(self, start_revision: int, timeout: Timeout) -> Watcher:
        key, range_end, from_key = range_arguments(self._keys)
        watcher = self._store.watch(
            key,
            range_end=range_end,
            from_key=from_key,
            start_revision=start_revision,
            max_outage=self._max_outage,
            stream=self._stream,
            timeout=timeout,
        )
        await watcher.__aenter__()
        self._watcher = watcher
        return watcher

    async def _resume(self) -> Watcher:
        """Watch behind the content again."""
        epoch = self._replica.epoch
        self._replica.forget_passing()
        watcher = await self._watch(self._replica.revision + 1, None)
        if self._replica.state is CacheState.LAGGING:
            # A watch of the future would wait in a store that went back.
            await self.read_revision(None)
            if self._replica.state is CacheState.LAGGING:
                self._replica.resume()
                self._log_recovery()
                self._on_moved()
        if epoch != self._replica.epoch:
            await self._leave()  # `replaced` cannot end a watch that is not there yet
        return watcher

    async def _follow(self, watcher: Watcher) -> None:
        """Apply what a watch brings, until it ends. It is closed when the store is found to be another one."""
        replica = self._replica
        async for batch in watcher.batches():
            if batch.events:
                epoch, parts = replica.epoch, deque(whole_revisions(replica.new_events(batch), PART))
                del batch  # or all events would be freed at once, when the next batch is there
                while parts and epoch == replica.epoch:
                    await self._apply(parts.popleft())
            else:
                before = replica.revision, replica.has_marks
                replica.mark(batch)
                if (replica.revision, replica.has_marks) != before:
                    self._on_moved()

    async def _apply(self, events: tuple[Event, ...]) -> None:
        replica = self._replica
        if len(events) > _LARGE and events[0].kv.mod_revision > replica.revision:
            await self._apply_many(list(events))
            return
        epoch, decoded = replica.epoch, await self._decode(_lasting_puts(events))
        if epoch == replica.epoch:
            step = replica.apply(events, decoded)
            self.events += len(events)
            self._on_step(step)
            self._since_pause += len(events)
            if self._since_pause >= PART:  # a watch that has more does not wait by itself
                self._since_pause = 0
                await asyncio.sleep(0)

    async def _apply_many(self, events: list[Event]) -> None:
        replica = self._replica
        epoch, staging = replica.epoch, replica.stage()
        for begin in range(0, len(events), PART):
            part = events[begin : begin + PART]
            staging.add(part, await self._decode(_lasting_puts(part)))
            await asyncio.sleep(0)
        await _in_turns(staging.build())
        if epoch != replica.epoch:
            return
        tree, values = replica.tree, replica.values
        self.events += len(events)
        self._on_step(replica.apply_staged(staging, tuple(events)))
        replaced = (tree.values, values) if tree is not replica.tree else ()
        del staging
        await _in_turns(let_go(replaced, events))

    def _fell_behind(self, error: EtcdError) -> None:
        """The watch has ended, or a load has failed.

        Raises:
            EtcdError: the error, if it would come again, or nothing was loaded yet.
        """
        replica = self._replica
        is_compacted = isinstance(error, CompactedError)
        is_outage = error.retryable or isinstance(error, NoAvailableEndpointsError | FutureRevisionError)
        if not is_compacted and (replica.state is CacheState.LOADING or not is_outage):
            raise error
        if is_compacted:
            self._has_history = False
        level = logging.DEBUG if replica.state is CacheState.LAGGING else logging.WARNING  # one line an outage
        self._log.log(level, "%s is behind the store, and tries to reach it again: %s", self._what, error)
        replica.fall_behind()

    def _log_recovery(self) -> None:
        self._log.info("%s is up to date with the store again, from revision %d", self._what, self._replica.revision)

    # Loading.

    async def _load(self) -> Watcher:
        replica = self._replica
        # The first load is a call of the application, and later ones are not.
        timeout: Timeout = UNSET if replica.state is CacheState.LOADING else None
        watcher = await self._watch(0, timeout)
        epoch = replica.epoch
        base = replica.new_base()
        key, range_end, from_key = range_arguments(self._keys)
        sent = self._clock()
        scan = self._store.scan(key, range_end=range_end, from_key=from_key, page_size=PART, timeout=timeout)
        try:
            async for page in scan.pages():
                changed = base.changed(page.kvs)
                await _in_turns(base.add(page.kvs, changed, await self._decode(changed)))
                await asyncio.sleep(0)  # the next page may be here already
        finally:
            await scan.aclose()
        await _in_turns(base.finish())
        if epoch != replica.epoch:
            raise StoreReplaced("the store was replaced again while it was loaded")
        tree, values = replica.tree, replica.values
        is_recovery = replica.state is not CacheState.LOADING
        step = replica.loaded(base, scan.revision, sent)
        if is_recovery:
            self._log_recovery()
        self._has_history = True
        self.loads += 1
        self._on_step(step)
        unused = (tree.values, values) if tree is not replica.tree else (base.tree.values, base.decoded or {})
        del step, base
        await _in_turns(let_go(unused, []))
        return watcher

    async def _decode(self, kvs: Iterable[KeyValue]) -> dict[bytes, T]:
        return {} if self._decoder is None else await self._decoder.decode_all(kvs)


def _probe_of(keys: KeyRange) -> op.TxnOp:
    """A linearizable read of the revision, for a user who may read the whole range.

    etcd checks the permissions for both branches of a txn, and runs one of them: here the empty one, as there is
    nothing to compare. To read the range, even one key of it, it would count all its keys each time.
    """
    key, range_end, from_key = range_arguments(keys)
    return op.txn(otherwise=[op.range(key, range_end=range_end, from_key=from_key, count_only=True)])


def _lasting_puts(events: Sequence[Event]) -> Iterator[KeyValue]:
    """The puts of the keys that are there after some events, from their last creations on, the newest first.

    If the value of one cannot be decoded, that of the one before is kept, as if each had come alone.
    """
    last: dict[bytes, Event] = {}
    for event in reversed(events):
        kv = event.kv
        newest = last.setdefault(kv.key, event)
        if event.is_put and newest.is_put and kv.create_revision == newest.kv.create_revision:
            yield kv


async def _in_turns(parts: Iterable[None]) -> None:
    """Do a piece of work part by part, in one turn of the loop each."""
    for _ in parts:
        await asyncio.sleep(0)
