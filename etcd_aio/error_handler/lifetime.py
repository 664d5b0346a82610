"""The lifetime of a client: from its first use to its close, in one event loop of one process.

Another loop or a forked child cannot use the client (its sockets belong to the parent), so their calls fail at once.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Final

from etcd_aio.base.aio import Waiters
from etcd_aio.errors import ClientClosedError, ClientUsageError, ForkedError, WrongLoopError


class _Forks:
    """Counts the forks since the library was loaded. Reading the counter is cheaper than asking for the process id."""

    generation = 0


def _on_fork() -> None:
    _Forks.generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_on_fork)

_NO_LOOP: Final = (
    "no asyncio event loop runs here: etcd_aio runs on asyncio only (also through anyio's asyncio backend)"
)


class Lifetime:
    """The state that every call checks first.

    Args:
        on_first_use: starts the client; called once, in its loop.
    """

    def __init__(self, on_first_use: Callable[[], object] = lambda: None) -> None:
        self._on_first_use = on_first_use
        self._forks = _Forks.generation
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sleepers = Waiters()
        self.is_closed = False

    def enter(self) -> asyncio.AbstractEventLoop:
        """Check that the client may be used here and now, and return the running loop. The first use starts the client.

        Raises:
            ClientUsageError: no asyncio event loop is running.
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
        if self._loop is not loop:
            if self._loop is not None:
                raise WrongLoopError
            self._loop = loop
            self._on_first_use()
        return loop

    @property
    def is_abandoned(self) -> bool:
        """Whether the client was used in this process and never closed."""
        return self.is_used and not self.is_closed and self._forks == _Forks.generation

    @property
    def is_used(self) -> bool:
        """Whether the client was used, so that there may be something to close."""
        return self._loop is not None

    def time(self) -> float:
        """The instant on the clock of the client's loop, which need not be running; 0 before the first use."""
        return 0.0 if self._loop is None else self._loop.time()

    def close(self) -> bool:
        """Close, and return True the first time. Loop and process are checked as in `enter`."""
        if self.is_closed:
            return False
        if self._forks != _Forks.generation:
            raise ForkedError
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise WrongLoopError
        self.is_closed = True
        self._sleepers.close()
        return True

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds, or until the close.

        Raises:
            ClientClosedError: the client was closed during the wait.
        """
        await self._sleepers.wait(asyncio.get_running_loop().time() + seconds)
