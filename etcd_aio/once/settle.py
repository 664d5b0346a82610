"""Settler: finds out what became of writes that were given up, without doing them."""

import asyncio
import logging
from typing import Final, TypeAlias

from etcd_aio.base import ATTEMPT_SECONDS, STEADY, Pauses, log_for, start_background_task
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import ClientUsageError, CompactedError, StoreRolledBackError
from etcd_aio.once.guarded import found_slot, settle_slot
from etcd_aio.once.slot import Slot, SlotState
from etcd_aio.once.slots import SlotPool
from etcd_aio.once.write_verdicts import Applied, Fate, judge, judge_history

logger: Final = logging.getLogger("etcd_aio.once")

_CLOSE_SECONDS: Final = 2.0

Settling: TypeAlias = asyncio.Task[Applied | Fate]
"""The task that settles one slot. Its result is never `Fate.IN_HISTORY`."""


class Settler:
    """Settles slots in background tasks, each until it is answered or the client is closed.

    Args:
        store: the client.
        pool: gets each slot back when it is settled.

    Attributes:
        applied: how many writes were found applied.
        not_applied: how many were found not applied; no copy of them is applied any more.
    """

    def __init__(self, store: StoreCalls, pool: SlotPool) -> None:
        self._store = store
        self._pool = pool
        self._settlings: dict[Settling, Slot] = {}
        self.applied = 0
        self.not_applied = 0

    def __len__(self) -> int:
        return len(self._settlings)

    def settle(self, slot: Slot, state: SlotState) -> Settling:
        """Settle a slot whose write has no answer (`UNSETTLED`), or which is not as this client left it (`HISTORY`)."""
        slot.move(state)
        settling = start_background_task(self._settle(slot), name="etcd_aio once settle")
        self._settlings[settling] = slot
        settling.add_done_callback(self._on_done)
        return settling

    async def finish(self) -> None:
        """Wait until all slots are settled, 2 seconds at most. By now their lease is revoked."""
        if self._settlings:
            await asyncio.wait(tuple(self._settlings), timeout=_CLOSE_SECONDS)

    def stop(self) -> None:
        """Give up what is not settled; log the keys of its slots."""
        if self._settlings:
            keys = ", ".join(repr(slot.key) for slot in self._settlings.values())
            text = "exactly-once: the outcome of %d writes is not known: %s"
            log_for(logger, self._store).warning(text, len(self._settlings), keys)
        for settling in self._settlings:
            settling.cancel()

    async def _settle(self, slot: Slot) -> Applied | Fate:
        pauses = Pauses(STEADY)
        while True:
            try:
                if slot.state is SlotState.UNSETTLED:
                    verdict = await self._delete(slot)
                else:
                    verdict = await self._read_history(slot)
            except ClientUsageError:  # the client is closed
                return Fate.UNKNOWN
            except Exception:  # of any kind, as of an application's backend: the next look may tell
                await pauses.wait()
            else:
                if verdict is not Fate.IN_HISTORY:
                    return verdict

    async def _delete(self, slot: Slot) -> Applied | Fate:
        """Delete the slot, so that no copy is applied any more, unless one was."""
        result = await self._store.do(settle_slot(slot), timeout=ATTEMPT_SECONDS, retry="always")
        if result:
            slot.move(SlotState.GONE)
            return Fate.NOT_APPLIED
        verdict = judge(slot.number, found_slot(result))
        if isinstance(verdict, Applied):
            slot.move(SlotState.FREE, verdict.revision)
        else:
            slot.move(SlotState.HISTORY)
        return verdict

    async def _read_history(self, slot: Slot) -> Applied | Fate:
        """Read the first change of the slot after the write began."""
        verdict: Applied | Fate = Fate.UNKNOWN
        try:
            async with self._store.watch(slot.key, start_revision=slot.revision + 1, timeout=None) as watcher:
                verdict = judge_history(slot.number, await anext(watcher))
        except (CompactedError, StoreRolledBackError):
            pass
        slot.move(SlotState.GONE)
        return verdict

    def _on_done(self, settling: Settling) -> None:
        slot = self._settlings.pop(settling)
        if settling.cancelled() or settling.exception() is not None:
            return
        verdict = settling.result()
        if isinstance(verdict, Applied):
            self.applied += 1
        elif verdict is Fate.NOT_APPLIED:
            self.not_applied += 1
        if slot.state in (SlotState.FREE, SlotState.GONE):
            self._pool.put_back(slot)
