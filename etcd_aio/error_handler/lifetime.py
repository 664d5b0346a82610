"""Lifetime: from a client's first use to its close, in one loop of one process.

Knows: open or closed, which loop, which process. Never knows: what the client is made of.
Using a client from another loop or a forked child cannot work (its sockets are the parent's), so it fails at once.
"""

import asyncio
import os
from typing import Final

from etcd_aio.aio import wait_until, wake
from etcd_aio.errors import ClientClosedError, ClientUsageError, ForkedError, WrongLoopError


class _Forks:
    """How often this process was forked from the one that loaded the library; cheaper to read than the process id."""

    generation = 0


def _on_fork() -> None:
    _Forks.generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_on_fork)

_UNBOUND: Final = None
_NO_LOOP: Final = (
    "no asyncio event loop runs here: etcd_aio runs on asyncio only (also through anyio's asyncio backend)"
)


class Lifetime:
    """The state that every call checks before anything else."""

    __slots__ = ("_forks", "_loop", "_sleepers", "is_closed")

    def __init__(self) -> None:
        self._forks = _Forks.generation
        self._loop: asyncio.AbstractEventLoop | None = _UNBOUND
        self._sleepers: set[asyncio.Future[None]] = set()
        self.is_closed = False

    def enter(self) -> bool:
        """Check that the client may be used here and now; True on its first use, which binds it to the running loop.

        Raises:
            ClientUsageError: no asyncio event loop runs here.
            ClientClosedError: the client was closed.
            ForkedError: the client was made before a fork.
            WrongLoopError: the client was used in another loop before.
        """
        if self.is_closed:
            raise ClientClosedError
        if self._forks != _Forks.generation:
            raise ForkedError
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise ClientUsageError(_NO_LOOP) from None
        if self._loop is loop:
            return False
        if self._loop is not _UNBOUND:
            raise WrongLoopError
        self._loop = loop
        return True

    @property
    def is_abandoned(self) -> bool:
        """Whether the client was used in this process and never closed."""
        return self.is_used and not self.is_closed and self._forks == _Forks.generation

    @property
    def is_used(self) -> bool:
        """Whether the client has been used, so that there may be something to close."""
        return self._loop is not _UNBOUND

    def close(self) -> bool:
        """Close; True the first time. Checks loop and process as `enter` does, but not a second close."""
        if self.is_closed:
            return False
        if self._forks != _Forks.generation:
            raise ForkedError
        if self._loop is not _UNBOUND and self._loop is not asyncio.get_running_loop():
            raise WrongLoopError
        self.is_closed = True
        for sleeper in self._sleepers:
            wake(sleeper)
        return True

    async def sleep(self, seconds: float) -> None:
        """Wait, but not beyond the close.

        Raises:
            ClientClosedError: the client was closed meanwhile.
        """
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        self._sleepers.add(sleeper)
        try:
            await wait_until(sleeper, loop.time() + seconds, None)
        finally:
            self._sleepers.discard(sleeper)
        if self.is_closed:
            raise ClientClosedError
