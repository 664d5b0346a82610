"""Combiner: calls of this process that change the same state are made together, by one txn.

Each txn makes all others fail that depend on the state that it changes. So while one is under way the next calls wait,
and then as many as fit are sent together. After a conflict the txn is made anew, together with what waits by then. What
is sent for no caller ends.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from etcd_aio import EtcdError
from etcd_aio.base import REMEMBERED, Contention, check_loop, start_background_task, wait_until
from etcd_aio.base import resolve as resolve_future
from etcd_aio.dataclass import dataclass

W = TypeVar("W")
T = TypeVar("T")


@dataclass(slots=True, eq=False, repr=False)
class CombinedCall(Generic[W, T]):
    """One call that waits.

    Attributes:
        work: what it is to do.
        deadline: by which it must be resolved.
        is_sent: whether a txn with it was sent, which did not conflict.
    """

    work: W
    deadline: float
    is_sent: bool
    _future: "asyncio.Future[T | Exception | None]"

    @property
    def has_ended(self) -> bool:
        """Whether it has its outcome, or its caller waits no longer."""
        return self._future.done()

    def resolve(self, outcome: T | Exception) -> None:
        """Give it its outcome, if it has not ended."""
        resolve_future(self._future, outcome)


class Combiner(Generic[W, T]):
    """The calls that change one state.

    Args:
        what: the state, for names of tasks.
        send: sends one txn for calls, and resolves them; returns False after a conflict. It may read first: then calls
            that have ended meanwhile have raised that they were not sent, and must be left out.
        forget: what is known of the state may be old, after an error or a cancellation.
        failed: the error of one call, by that of the txn.
        fitting: how many of the works that wait are sent at once. Default: all.
    """

    def __init__(
        self,
        what: str,
        send: Callable[[list[CombinedCall[W, T]]], Awaitable[bool]],
        forget: Callable[[], None],
        *,
        failed: Callable[[EtcdError, W], EtcdError] = lambda error, work: error,
        fitting: Callable[[Sequence[W]], int] = len,
    ) -> None:
        self._what = what
        self._send = send
        self._forget = forget
        self._failed = failed
        self._fitting = fitting
        self._waiting: list[CombinedCall[W, T]] = []
        self._sending: list[CombinedCall[W, T]] = []
        self._task: asyncio.Task[None] | None = None
        self._contention = Contention()
        self._ended_at = 0.0

    async def call(self, work: W, deadline: float, late: Callable[[bool], EtcdError]) -> T:
        """Make a call.

        Args:
            work: what it is to do.
            deadline: the instant of the loop by which it ends.
            late: makes the error of a call whose time is over, by whether it was sent.

        Raises:
            EtcdError: of `late`, or of the txn.
        """
        loop = asyncio.get_running_loop()
        if self._task is not None:
            check_loop(self._task)
        future: asyncio.Future[T | Exception | None] = loop.create_future()
        call = CombinedCall(work, deadline, False, future)
        self._waiting.append(call)
        if self._task is None:
            self._task = start_background_task(self._run(), name=f"etcd_aio {self._what}")
        try:
            outcome = await wait_until(future, deadline, late=None)
        finally:
            self._leave(call)
        if outcome is None:
            raise late(call.is_sent)
        if isinstance(outcome, Exception):
            raise outcome.with_traceback(None)  # it may be the error of several calls
        return outcome

    def _leave(self, call: CombinedCall[W, T]) -> None:
        """A caller has its outcome, or waits no longer: what is sent for no caller ends, and so does a pause."""
        call._future.cancel()
        if self._task is None or any(not each.has_ended for each in (*self._sending, *self._waiting)):
            return
        if self._sending:
            self._forget()
        self._task.cancel()
        self._task, self._sending, self._waiting = None, [], []
        self._ended_at = asyncio.get_running_loop().time()

    # The task.

    async def _run(self) -> None:
        """Send what waits, batch after batch, until nothing waits."""
        clock, conflicts = asyncio.get_running_loop().time, 0
        if clock() > self._ended_at + REMEMBERED:
            self._contention = Contention()
        contention = self._contention
        await self._pause(contention.before_change(random.random))
        while self._collect():
            began = clock()
            try:
                has_ended = await self._send(self._sending)
            except Exception as error:  # also of the application's backend, which the callers must see
                self._forget()
                for call in self._sending:
                    call.resolve(self._failed(error, call.work) if isinstance(error, EtcdError) else error)
                has_ended = True
            contention.measured(clock() - began)
            if has_ended:
                self._sending = []
                contention.succeeded(conflicts)
                conflicts = 0
                wait = contention.before_change(random.random) if self._waiting else 0.0
            else:
                for call in self._sending:
                    call.is_sent = False
                conflicts += 1
                wait = contention.after_conflict(conflicts, random.random)
            await self._pause(wait)
        self._task, self._ended_at = None, clock()

    async def _pause(self, seconds: float) -> None:
        """Wait; afterwards what is known of the state is old, and a read costs the members less than a txn in vain."""
        if seconds:
            await asyncio.sleep(seconds)
            self._forget()

    def _collect(self) -> bool:
        """Choose what is sent next: as many of the first calls as fit. Returns whether there is anything."""
        waiting = [call for call in (*self._sending, *self._waiting) if not call.has_ended]
        count = self._fitting([call.work for call in waiting]) if waiting else 0
        self._sending, self._waiting = waiting[:count], waiting[count:]
        return bool(self._sending)
