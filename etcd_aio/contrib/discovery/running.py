"""Running: how many requests of an endpoint are under way, and waiting until none is."""

import asyncio
from typing import Final

from etcd_aio.base import wait_until, wake

DEFAULT_DRAIN: Final = 30.0
"""Seconds: as long as servers are usually given to shut down (Kubernetes' default)."""


class Running:
    """Counts the requests of an endpoint that are under way."""

    def __init__(self) -> None:
        self.running = 0
        self._idle: asyncio.Future[None] | None = None

    def began(self) -> None:
        """A request begins."""
        self.running += 1

    def ended(self) -> None:
        """A request has ended."""
        self.running -= 1
        if not self.running:
            wake(self._idle)

    async def wait_idle(self, seconds: float) -> None:
        """Wait until no request is under way, for so many seconds at most. For one task."""
        if not self.running:
            return
        loop = asyncio.get_running_loop()
        self._idle = loop.create_future()
        await wait_until(self._idle, loop.time() + seconds, None)
