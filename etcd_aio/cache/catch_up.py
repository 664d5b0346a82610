"""CatchUp: brings a cache to a revision that tasks wait for, by progress requests and reads, if no event does.

It asks the watch for a mark again and again, at growing distances. Where marks do not count, or none has come for a
second, it asks the store by a linearizable read whether there is anything newer: a validation; see `state.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from etcd_aio import KeyRange
from etcd_aio.base import Unwinding, start_background_task, wait_until, wake
from etcd_aio.cache.state import Replica
from etcd_aio.cache.waiting import RevisionWaiters
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import PermissionDeniedError
from etcd_aio.types import range_arguments

_FIRST_WAIT: Final = 0.002  # seconds: a member that lags behind the leader is there with its next message
_LONGEST_WAIT: Final = 0.1  # etcd serves watches that are behind as often
_STARVED: Final = 1.0  # seconds without a mark: behind a gRPC proxy none ever comes


class CatchUp:
    """Runs while tasks wait.

    Args:
        store: the client.
        keys: the range.
        replica: what is to catch up.
        waiters: the tasks that wait for it.
        ask: asks the watch for a mark.
        on_moved: called when a validation has moved the revision on.
        on_denied: called with the error if the user may not read the range any more.
        timeout: seconds for a validation.

    Attributes:
        validations: how many were sent.
    """

    def __init__(
        self,
        store: StoreCalls,
        keys: KeyRange,
        replica: Replica[Any],
        waiters: RevisionWaiters,
        *,
        ask: Callable[[], Awaitable[None]],
        on_moved: Callable[[], None],
        on_denied: Callable[[Exception], None],
        timeout: float | None,
    ) -> None:
        self._store = store
        self._keys = keys
        self._replica = replica
        self._waiters = waiters
        self._ask = ask
        self._on_moved = on_moved
        self._on_denied = on_denied
        self._timeout = timeout
        self._task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._pause = _FIRST_WAIT
        self.validations = 0

    def start(self) -> None:
        """A task is going to wait, and a mark was asked for."""
        if self._pause > _FIRST_WAIT:
            self._pause = _FIRST_WAIT
            wake(self._waiter)
        if self._task is None:
            self._task = start_background_task(self._run(), name="etcd_aio cache catch-up")

    def moved(self) -> None:
        """The revision, or what is known of marks, has changed."""
        wake(self._waiter)

    def close(self) -> Unwinding:
        """End."""
        return () if self._task is None or not self._task.cancel() else (self._task,)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        replica = self._replica
        revision, since, self._pause = -1, 0.0, _FIRST_WAIT
        try:
            while self._waiters.are_waiting:
                if replica.revision != revision:
                    revision, since = replica.revision, loop.time()
                self._waiter = loop.create_future()
                if not replica.has_marks or loop.time() - since >= _STARVED:
                    since = loop.time()
                    await self._validate()
                    if replica.revision != revision:
                        continue
                pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_WAIT)
                await wait_until(self._waiter, loop.time() + pause, None)
                if self._waiters.are_waiting:
                    await self._ask()
        finally:
            self._task = None

    async def _validate(self) -> None:
        replica = self._replica
        if not replica.is_exact:
            return
        epoch, revision = replica.epoch, replica.revision
        self.validations += 1
        key, range_end, from_key = range_arguments(self._keys)
        try:
            found = await self._store.range(
                key,
                range_end=range_end,
                from_key=from_key,
                limit=1,
                keys_only=True,
                min_mod_revision=revision + 1,
                timeout=self._timeout,
            )
        except PermissionDeniedError as error:
            self._on_denied(error)
            return
        except Exception:
            return  # the callers' probes meet the same error, and say it
        if epoch != replica.epoch:
            return
        if replica.validated(found.revision, found.count, has_newer=bool(found.kvs)):
            self._on_moved()
