"""Interruption: a wait that ends when its deadline passes, or when what it needs is lost."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from etcd_aio.base import TaskCanceller
from etcd_aio.errors import EtcdError


class Interruption:
    """A block that waits: a reason to end it becomes a cancellation of its task, and that cancellation an error.

    A block that ends by an error or a cancellation is left: an acquisition that has failed leaves no key behind.

    Args:
        timeout: seconds until it interrupts by itself; None for never.
        late: makes the error of that.
        leave: called at the end of a block that has failed, with whether its task is cancelled.
    """

    __slots__ = ("_canceller", "_is_over", "_late", "_leave", "_timer", "error")

    def __init__(
        self, timeout: float | None, late: Callable[[], EtcdError], leave: Callable[[bool], Awaitable[None]]
    ) -> None:
        self._canceller = TaskCanceller()
        self._is_over = False
        self._late = late
        self._leave = leave
        self.error: EtcdError | None = None
        loop = asyncio.get_running_loop()
        self._timer = None if timeout is None else loop.call_later(timeout, self._on_time)

    def interrupt(self, error: EtcdError) -> None:
        """Cancel the task, for this reason; the first one counts."""
        if self.error is None and not self._is_over:
            self.error = error
            self._canceller.cancel()

    def _on_time(self) -> None:
        if self.error is None and not self._is_over:
            self.interrupt(self._late())

    def check(self) -> None:
        """Raise the reason of an interruption that could not cancel the task, since the task itself caused it."""
        if self.error is not None:
            raise self.error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        raised = exc or self.error
        if raised is None:
            return
        try:
            await self._leave(isinstance(raised, asyncio.CancelledError))
        except BaseException as another:  # a cancellation too
            self._leave_with(another)
            raise
        self._leave_with(raised)

    def _leave_with(self, raised: BaseException) -> None:
        """Take the cancellation back and raise its reason, unless the task was cancelled for another reason too.

        An error that came at the same time, since the lease is lost for example, becomes the cause.
        """
        error = self.error
        if error is None:
            self._canceller.leave()
        elif isinstance(raised, EtcdError):
            self._canceller.leave()
            raise error from (error.__cause__ or (raised if raised is not error else None))
        else:
            self._canceller.leave_with(error, raised)
