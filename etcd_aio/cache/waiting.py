"""RevisionWaiters: the tasks that wait until a cache has a revision."""

import asyncio
import copy
from typing import Any

from etcd_aio import EtcdError
from etcd_aio.base import resolve, wait_until
from etcd_aio.cache.state import Replica


def raised_again(error: Exception) -> Exception:
    """The error for one of several tasks that raise it: raising adds a traceback."""
    if not isinstance(error, EtcdError):
        return error  # a bug, perhaps of a class that cannot be copied
    one = copy.copy(error)
    one.__cause__ = error.__cause__
    return one


class RevisionWaiters:
    """Tasks that wait for a revision, each until its own deadline.

    Args:
        replica: whose revision they wait for.
    """

    def __init__(self, replica: Replica[Any]) -> None:
        self._replica = replica
        self._waiting: dict[int, set[asyncio.Future[bool]]] = {}
        self._reason: Exception | None = None

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def are_waiting(self) -> bool:
        """Whether any task waits."""
        return bool(self._waiting)

    def has(self, revision: int) -> bool:
        """Whether the cache has this revision, of the store that it follows.

        Raises:
            Exception: the cache has ended.
        """
        if self._reason is not None:
            raise raised_again(self._reason)
        return self._replica.is_exact and self._replica.revision >= revision

    async def wait(self, revision: int, deadline: float) -> bool:
        """Wait for a revision. False if the deadline came first, or if the store was replaced meanwhile.

        Raises:
            Exception: the cache has ended.

        Cancellation leaves nothing behind.
        """
        epoch = self._replica.epoch
        loop = asyncio.get_running_loop()
        while not self.has(revision):
            if epoch != self._replica.epoch or loop.time() >= deadline:
                return False
            waiter: asyncio.Future[bool] = loop.create_future()
            self._waiting.setdefault(revision, set()).add(waiter)
            try:
                await wait_until(waiter, deadline, False)
            finally:
                others = self._waiting.get(revision)
                if others is not None:
                    others.discard(waiter)
                    if not others:
                        del self._waiting[revision]
        return epoch == self._replica.epoch

    def moved(self) -> None:
        """The cache has another revision or state."""
        if self._waiting and self._replica.is_exact:
            reached = self._replica.revision
            for revision in [revision for revision in self._waiting if revision <= reached]:
                self._wake(revision)

    def restart(self) -> None:
        """The store was replaced: the revisions mean nothing any more."""
        for revision in tuple(self._waiting):
            self._wake(revision)

    def close(self, reason: Exception) -> None:
        """The cache has ended: all raise the reason, also later ones."""
        self._reason = reason
        self.restart()

    def _wake(self, revision: int) -> None:
        for waiter in self._waiting.pop(revision):
            resolve(waiter, True)
