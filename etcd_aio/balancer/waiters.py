"""Tasks that wait for a change, each until its own deadline."""

import asyncio

from etcd_aio.aio import resolve, wait_until
from etcd_aio.errors import ClientClosedError


class Waiters:
    """The tasks that wait for one kind of change."""

    __slots__ = ("_futures", "_is_closed")

    def __init__(self) -> None:
        self._futures: set[asyncio.Future[bool]] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._futures)

    async def wait(self, deadline: float) -> bool:
        """Wait for the next `wake`; False if `deadline` came first.

        Raises:
            ClientClosedError: the client is closed, or was closed meanwhile.
        """
        if self._is_closed:
            raise ClientClosedError
        loop = asyncio.get_running_loop()
        if loop.time() >= deadline:
            return False
        future: asyncio.Future[bool] = loop.create_future()
        self._futures.add(future)
        try:
            has_changed = await wait_until(future, deadline, late=False)
        finally:
            self._futures.discard(future)
        if self._is_closed:
            raise ClientClosedError
        return has_changed

    def wake(self) -> None:
        """Wake every task that waits."""
        for future in tuple(self._futures):
            resolve(future, True)

    def close(self) -> None:
        """Wake every task that waits with `ClientClosedError`, and every later one at once."""
        self._is_closed = True
        self.wake()
