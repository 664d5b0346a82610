"""Watches of many kinds, one after the other, recorded as whole messages."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from etcd_aio import EtcdError, KeyValue, Store, WatchBatch, Watcher
from etcd_aio.errors import CompactedError
from etcd_aio.types.keys import prefix_end
from etcd_aio.watch import DEFAULT_MAX_PENDING
from tests.evidence import model
from tests.evidence.recorder import Recorder
from tests.evidence.traffic import KEYS, STEM, Shared

_PROGRESS_SECONDS: Final = 0.25
_ENTER_SECONDS: Final = 20.0
_LITTLE: Final = 2_000  # bytes that a slow consumer lets pend, before its watch is cancelled on the server for a while
_SLOW_SECONDS: Final = 1.5
_NEAR: Final = 100  # revisions before and after the present one at which watches begin, as in etcd's own tests


@dataclass(slots=True)
class Ending:
    """Tells the watchers when to stop.

    Attributes:
        revision: the last one of the history, which they must reach; 0 as long as it goes on.
    """

    revision: int = 0


@dataclass(frozen=True, slots=True)
class Wish:
    """What a watch asks for."""

    key: str
    is_prefix: bool
    revision: int
    prev_kv: bool
    progress: bool
    fragment: bool
    resync: bool
    is_slow: bool


@dataclass(slots=True)
class Follower:
    """Follows keys by one watch after the other.

    Args:
        store: a client, or a store that wraps it.
        stem: of the keys in that store.
        hidden: what that store takes away from the keys: the prefix of a namespace.
        shared: with the workers.
        ending: when to stop.
        random: chooses.
        lasting: whether it has one watch from the first revision to the last, unless a compaction ends it.
    """

    store: Store
    stem: str
    hidden: str
    shared: Shared
    ending: Ending
    random: Random
    lasting: bool = False
    watches: int = 0
    reconnects: int = 0
    pauses: int = 0
    resyncs: int = 0
    compactions: int = 0
    _floor: int = 2
    _content: dict[bytes, KeyValue] = field(default_factory=dict)

    @property
    def _recorder(self) -> Recorder:
        return self.shared.recorder

    async def run(self) -> None:
        """Watch until the ending is reached."""
        is_over = False
        while not is_over:
            wish = self._wish()
            try:
                is_over = await self._follow(wish)
            except CompactedError as error:
                self.compactions += 1
                self._floor = max(self._floor, error.compact_revision)
            except EtcdError:
                await asyncio.sleep(0.1)

    def _wish(self) -> Wish:
        chance = self.random.random
        if self.lasting:
            return Wish(self.stem, True, self._floor, True, True, False, False, False)
        is_prefix = chance() < 0.7
        near = max(2, self.shared.revision + self.random.randint(-_NEAR, _NEAR))
        revision = self.random.choice((0, near, self._floor, self.shared.revision + 1))
        resync = is_prefix and chance() < 0.3
        key = self.stem if is_prefix else f"{self.stem}{self.random.randrange(KEYS)}"
        is_slow = not resync and chance() < 0.4
        return Wish(key, is_prefix, revision, chance() < 0.6, chance() < 0.5, chance() < 0.3, resync, is_slow)

    async def _follow(self, wish: Wish) -> bool:
        """Make one watch, for a while. Returns whether it has reached the ending."""
        responses: list[model.Json] = []
        loop = asyncio.get_running_loop()
        until = None if self.lasting else loop.time() + self.random.uniform(0.5, 8.0)
        began = wish.revision
        if wish.resync:
            began = await self._list() + 1
        keys: dict[str, Any] = _below(wish.key) if wish.is_prefix else {"key": wish.key}
        watcher = self.store.watch(
            **keys,
            start_revision=began,
            prev_kv=wish.prev_kv,
            progress_notify=wish.progress,
            fragment=wish.fragment or None,
            on_compaction="resync" if wish.resync else "raise",
            max_pending=_LITTLE if wish.is_slow or wish.resync else DEFAULT_MAX_PENDING,
            timeout=_ENTER_SECONDS,
        )
        self.watches += 1
        try:
            async with watcher:
                # If the revision before the first one was compacted on entering, the client could not list its keys,
                # and does not report which of them are gone.
                knows_first = self.shared.oldest < began
                if wish.resync:
                    await self._fall_behind(watcher)
                while until is None or loop.time() < until or self.ending.revision:
                    if wish.is_slow and not self.ending.revision:
                        await asyncio.sleep(self.random.uniform(0.0, _SLOW_SECONDS))
                    batch = await _next(watcher)
                    if batch is None:
                        continue
                    self._note(batch)
                    if any(event.is_resync for event in batch):
                        # The watch before it and the watch behind it are two, and between them is what was compacted.
                        self._write(wish, began, responses)
                        self._resynced(batch.revision, is_shown=knows_first)
                        began, responses = batch.revision + 1, []
                    elif batch or not batch.may_be_early:
                        events = [model.watch_event(event, prefix=self.hidden) for event in batch]
                        responses.append(model.watch_response(events, batch.revision, self._recorder.now()))
                    self._floor = max(self._floor, batch.revision - _NEAR)
                    if 0 < self.ending.revision <= batch.revision:
                        return True
                return False
        finally:
            self.reconnects += watcher.statistics().reconnects
            self.pauses += watcher.statistics().pauses
            self._write(wish, began, responses)

    async def _fall_behind(self, watcher: Watcher) -> None:
        """Take nothing until the watch is cancelled for that, and a compaction has perhaps passed it."""
        loop = asyncio.get_running_loop()
        until = loop.time() + 2 * _SLOW_SECONDS
        while not watcher.statistics().pauses and loop.time() < until:  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.05)
        compactions = len(self.shared.compacted)
        while len(self.shared.compacted) == compactions and loop.time() < until:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)

    async def _list(self) -> int:
        """Read all keys, as the consumer of a watch does that begins behind them."""
        found = await self.store.range(**_below(self.stem))
        self._content = {kv.key: kv for kv in found.kvs}
        return found.revision

    def _note(self, batch: WatchBatch) -> None:
        for event in batch:
            if event.is_put:
                self._content[event.kv.key] = event.kv
            else:
                self._content.pop(event.kv.key, None)

    def _resynced(self, revision: int, *, is_shown: bool) -> None:
        """A difference has replaced what was compacted: all that was told is now the state of its revision."""
        self.resyncs += 1
        if not is_shown:
            return
        kvs = (model.key_value(kv, prefix=self.hidden) for _, kv in sorted(self._content.items()))
        keys = model.options(STEM, prefix_end(STEM.encode()).decode())
        self._recorder.snapshot("resync of a watch", keys, model.found(kvs), revision)

    def _write(self, wish: Wish, began: int, responses: list[model.Json]) -> None:
        asked = model.watch_request(
            self.hidden + wish.key, began, is_prefix=wish.is_prefix, progress=wish.progress, prev_kv=wish.prev_kv
        )
        self._recorder.watch(asked, responses)


def _below(stem: str) -> dict[str, Any]:
    """The keys that begin so; in a namespace that is the whole of it, the stem is empty."""
    return {"prefix": stem} if stem else {"all_keys": True}


async def _next(watcher: Watcher) -> WatchBatch | None:
    """The next batch; None if there is none within a while, and then a report of progress is asked for."""
    try:
        async with asyncio.timeout(_PROGRESS_SECONDS):
            return await watcher.next_batch()
    except TimeoutError:
        with suppress(EtcdError):
            await watcher.request_progress()
        return None
