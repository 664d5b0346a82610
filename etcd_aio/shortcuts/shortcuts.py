"""All shortcuts of a client, and what they share: the blocks that end with the client."""

import asyncio
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from etcd_aio.base.aio import start_background_task
from etcd_aio.shortcuts.locks import LockShortcuts
from etcd_aio.shortcuts.recipes import RecipeShortcuts
from etcd_aio.shortcuts.services import ServiceShortcuts
from etcd_aio.shortcuts.stores import StoreShortcuts

if TYPE_CHECKING:
    from etcd_aio.lease import LeasePool
    from etcd_aio.recipes import Turnstile
    from etcd_aio.shortcuts.client_like import Block

_CLOSE_SECONDS: Final = 0.5
"""Seconds that exactly-once blocks, caches and revocations get to end when the client is closed: as locks."""


class Shortcuts(LockShortcuts, StoreShortcuts, ServiceShortcuts, RecipeShortcuts):
    """The shortcuts of a client."""

    _blocks: "WeakSet[Block] | None" = None
    _lines: "Turnstile | None" = None
    _closings: "list[asyncio.Task[None]] | None" = None

    def _blocks_to_close(self) -> "WeakSet[Block]":
        """The blocks that closing the client ends."""
        if self._blocks is None:
            self._blocks = WeakSet()
        return self._blocks

    def _turnstile(self) -> "Turnstile":
        """The turnstile of the transactions of this store; its own, since other stores have other names for keys."""
        if self._lines is None:
            from etcd_aio.recipes import Turnstile

            self._lines = Turnstile()
        return self._lines

    async def _close_layers(self, pool: "LeasePool | None", endings: AbstractSet[asyncio.Task[None]]) -> None:
        """End what the layers above have under way, while the client still works; within half a second.

        Args:
            pool: the leases that are lent, if any was.
            endings: tasks that are ending something already; those that come while this waits, too.
        """
        from anyio import CancelScope  # where there is something to end

        ends = asyncio.get_running_loop().time() + _CLOSE_SECONDS
        if self._closings is None:  # a second close waits for those of the first
            blocks = tuple(self._blocks or ())
            self._closings = [start_background_task(block.aclose(), name="etcd_aio close") for block in blocks]
        try:
            with CancelScope(shield=True):  # a scope of anyio waits for this; a cancellation by asyncio ends the wait
                if pool is not None:
                    await pool.aclose()
                for tasks in (self._closings, endings):  # the former may add to the latter
                    while waiting := [task for task in tasks if not task.done()]:
                        left = ends - asyncio.get_running_loop().time()
                        if left <= 0:
                            return
                        await asyncio.wait(waiting, timeout=left)
        finally:
            for closing in self._closings:
                closing.cancel()
