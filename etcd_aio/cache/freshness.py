"""Freshness: brings a cache up to date for the tasks that wait for it, which share the reads that this takes.

A task asks for the revision of the store by a read that is sent after its call (`probe.py`), and waits until the cache
has that revision (`waiting.py`). An event does that, or a mark, which is asked for together with the read; if neither
comes, `catch_up.py` sees to it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from etcd_aio import EtcdError, KeyRange
from etcd_aio.base import NEVER, Unwinding, time_left
from etcd_aio.cache.catch_up import CatchUp
from etcd_aio.cache.probe import SharedProbe
from etcd_aio.cache.replicator import Replicator
from etcd_aio.cache.state import Replica
from etcd_aio.cache.waiting import RevisionWaiters
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import CacheTimeoutError, PermissionDeniedError
from etcd_aio.types import shown_keys

_PROBE_SECONDS: Final = 2.0  # a member that takes longer is in trouble, and the next read goes to another one
_PAUSE: Final = 0.1  # seconds before a failed probe is repeated


class Freshness:
    """Brings a cache up to date.

    Args:
        store: the client.
        keys: the range.
        replica: what is to be up to date.
        replicator: what keeps it like the store.
        timeout: seconds for a single read, at most.
        on_denied: called with the error if the user may not read the range any more.
    """

    def __init__(
        self,
        store: StoreCalls,
        keys: KeyRange,
        replica: Replica[Any],
        replicator: Replicator[Any],
        *,
        timeout: float | None,
        on_denied: Callable[[Exception], None],
    ) -> None:
        self._what = f"cache {shown_keys(keys.key, keys.range_end)}"
        self._replica = replica
        self._replicator = replicator
        self._on_denied = on_denied
        self._timeout = _PROBE_SECONDS if timeout is None else min(timeout, _PROBE_SECONDS)
        self.waiters = RevisionWaiters(replica)
        self.probe = SharedProbe(self._read_revision)
        self.catch_up = CatchUp(
            store,
            keys,
            replica,
            self.waiters,
            ask=replicator.ask_mark,
            on_moved=self.moved,
            on_denied=on_denied,
            timeout=self._timeout,
        )

    def moved(self) -> None:
        """The cache has another revision or state."""
        self.waiters.moved()
        self.catch_up.moved()

    def close(self, reason: Exception) -> Unwinding:
        """The cache has ended: all tasks that wait raise the reason."""
        self.waiters.close(reason)
        return [*self.probe.close(reason), *self.catch_up.close()]

    async def wait_current(self, deadline: float) -> None:
        """Wait until the cache has every write that was finished before this call.

        Raises:
            CacheTimeoutError: it had not by the deadline.
            EtcdError: the store cannot be read, or the cache has ended.
        """
        failure: EtcdError | None = None
        revision: int | None = None
        while True:
            try:
                revision = await self.probe.revision(deadline)
            except PermissionDeniedError as error:
                self._on_denied(error)
                raise
            except EtcdError as error:
                if not error.retryable:
                    raise
                failure = error
                await asyncio.sleep(min(_PAUSE, time_left(deadline, asyncio.get_running_loop().time())))
            else:
                if revision is not None and await self._reaches(revision, deadline):
                    return
            self._check_time(deadline, revision, failure)

    async def wait_revision(self, revision: int, deadline: float) -> None:
        """Wait until the cache has a revision.

        Raises:
            CacheTimeoutError: it had not by the deadline.
            EtcdError: the cache has ended.
        """
        while not self.waiters.has(revision):
            await self._replicator.ask_mark()
            if not await self._reaches(revision, deadline):
                self._check_time(deadline, revision, None)

    async def keep(self, period: float) -> None:
        """Keep the age of the cache below the period and a round trip, until this is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            with suppress(Exception):  # also of the application's policy: the age grows, and says it
                await self.wait_current(NEVER)
            await asyncio.sleep(max(0.0, began + period - loop.time()))

    async def _reaches(self, revision: int, deadline: float) -> bool:
        if self.waiters.has(revision):
            return True
        self.catch_up.start()
        return await self.waiters.wait(revision, deadline)

    async def _read_revision(self) -> int:
        await self._replicator.ask_mark()
        revision = await self._replicator.read_revision(self._timeout)
        self.moved()
        return revision

    def _check_time(self, deadline: float, wanted: int | None, failure: EtcdError | None) -> None:
        """Raise `CacheTimeoutError` at the deadline.

        Args:
            deadline: on the clock of the loop.
            wanted: the revision that was waited for; None if the store did not tell it.
            failure: of the last read, if one failed.
        """
        if asyncio.get_running_loop().time() < deadline:
            return
        replica = self._replica
        missed = "the store's revision could not be read" if wanted is None else f"revision {wanted} did not arrive"
        raise CacheTimeoutError(
            f"{self._what}: {missed} in time; it is at revision {replica.revision} and {replica.state.value}"
        ) from failure
