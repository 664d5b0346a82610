"""Leader watch: keeps up with who leads, for the policy that wants to know.

Knows: when it may have changed, and how to ask again. Never knows: how a leader is found, or what an RPC is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from etcd_aio.aio import start_background_task
from etcd_aio.backoff import Backoff
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.closing import TwoPartClose, Unwinding

FindLeader: TypeAlias = Callable[[tuple[SubConnection, ...]], Awaitable[SubConnection | None]]
"""Asks members which of them leads; None if none of them does, as far as they know."""

LOOK_BACKOFF: Final = Backoff(initial=0.1, multiplier=2.0, maximum=1.0, jitter=0.2)
"""Waits between two looks while no leader is found: an election takes about a second."""


class LeaderWatch(TwoPartClose):
    """One task, while the leader is being looked for.

    Args:
        ready: the READY sub-connections.
        find: see `FindLeader`.
        on_leader: told who leads after every look.
        random: returns a number in [0, 1), for jitter.
    """

    def __init__(
        self,
        ready: Callable[[], tuple[SubConnection, ...]],
        find: FindLeader,
        on_leader: Callable[[SubConnection | None], None],
        random: Callable[[], float],
    ) -> None:
        self._ready = ready
        self._find = find
        self._on_leader = on_leader
        self._random = random
        self._task: asyncio.Task[None] | None = None
        self._is_due = False
        self._is_closed = False

    def look(self) -> None:
        """It may have changed: find out."""
        self._is_due = True
        if self._task is None and not self._is_closed:
            self._task = start_background_task(self._looking(), name="etcd_aio leader")

    def close(self) -> Unwinding:
        """End the task."""
        task = self._task
        if task is None:
            self._is_closed = True
            return ()
        if not self._is_closed:
            self._is_closed = True
            task.cancel()
        return (task,)

    async def _looking(self) -> None:
        looks = 0
        try:
            while self._is_due and self._ready():
                self._is_due = False
                leader = await self._find(self._ready())
                self._on_leader(leader)
                if leader is None:
                    self._is_due = True
                    await asyncio.sleep(LOOK_BACKOFF.wait(looks, self._random))
                    looks += 1
        finally:
            self._task = None
