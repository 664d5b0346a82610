"""Portal: the way of one blocking client, and of what is made by it, into the loop's thread."""

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from etcd_aio.errors import BlockingInLoopError
from etcd_aio.portal.call import Call
from etcd_aio.portal.loop_thread import Holder, LoopThread, hold


class Portal:
    """The use of the loop's thread by one client.

    Args:
        text: names the client, for the warning if it is not closed.
        allow_in_loop: whether calls may block a thread in which an event loop runs.

    Attributes:
        thread: the thread.
    """

    __slots__ = ("_allows_in_loop", "_holder", "thread")

    def __init__(self, text: str, *, allow_in_loop: bool = False) -> None:
        self._allows_in_loop = allow_in_loop
        self._holder = Holder(text)
        self.thread: LoopThread = hold(self._holder)

    @property
    def is_forked(self) -> bool:
        """Whether this is a child process, and the client was made by its parent."""
        return self.thread.is_forked

    @property
    def is_closed(self) -> bool:
        """Whether the client needs the thread no more."""
        return self._holder not in self.thread.holders

    def check(self) -> None:
        """Check that a call may block this thread.

        Raises:
            BlockingInLoopError: an event loop runs in it.
        """
        if not self._allows_in_loop and asyncio._get_running_loop() is not None:
            raise BlockingInLoopError

    def call(
        self,
        function: Callable[..., object],
        arguments: tuple[object, ...] = (),
        keywords: dict[str, object] | None = None,
        undo: Callable[[Any], object] | None = None,
    ) -> Any:
        """Run a function in the loop's thread, as `LoopThread.call` does.

        Raises:
            BlockingInLoopError: an event loop runs in this thread.
            ForkedError: the client was made before a fork.
        """
        self.check()
        return self.thread.call(function, arguments, keywords, undo)

    def close(self) -> None:
        """The client needs the thread no more."""
        self.thread.release(self._holder)

    def soon(self, function: Callable[[], object]) -> None:
        """Run a function in the loop's thread, without waiting for it, unless the thread has ended."""
        self.thread.submit(Call(function, (), {}, self.thread))

    def abandon(self, text: str, close: Callable[[], Awaitable[object]]) -> None:
        """The client was collected without being closed: warn, and close it in the background.

        Args:
            text: names it.
            close: closes it, in the loop's thread.
        """
        if self.thread.is_forked or self.thread.is_over or self._holder not in self.thread.holders:
            return
        self.leave_soon(close)
        warnings.warn(f"unclosed {text}", ResourceWarning, stacklevel=3)  # at last: it may be an error

    def leave_soon(self, close: Callable[[], Awaitable[object]]) -> None:
        """Close the client in the background, where nothing can wait for that.

        Args:
            close: closes it, in the loop's thread.
        """
        thread, holder = self.thread, self._holder

        async def leave() -> None:
            try:
                await close()
            finally:
                thread.release(holder)

        self.soon(leave)
