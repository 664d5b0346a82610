"""LoopThread: the one daemon thread of a process with an event loop, in which all blocking clients have their calls.

Theory. The first client starts it, and the last one that is closed ends it. A call is put into a queue and wakes the
loop, unless another thread wakes it already: with many threads one wake-up serves several calls. A signal handler may
run in the midst of that, and raise, or make a call itself: then the loop is woken once more. The caller waits for a
lock of the call, so signal handlers run meanwhile.

A fork copies no thread. The child marks the copy of its parent's thread as forked, keeps it for ever, and does not
touch it: its sockets and its epoll instance are shared with the parent. The calls in it fail, since a fork may happen
within a call, by a signal handler or a function of the user. The next client of the child starts a new thread.

At exit the interpreter freezes daemon threads where they are. So the loop is stopped before, and what runs in it is
cancelled and gets a moment to end. Callers in daemon threads are not told at once, so that they print no tracebacks.
"""

import asyncio
import atexit
import logging
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from etcd_aio.base.aio import start_background_task
from etcd_aio.errors import BlockingInLoopError, ClientClosedError, ForkedError
from etcd_aio.portal.call import Call

T = TypeVar("T")

_log: Final = logging.getLogger("etcd_aio.sync")

_END_SECONDS: Final = 0.5  # for tasks that are cancelled as the thread ends: a key is deleted, a lease revoked
_JOIN_SECONDS: Final = 1.0  # for the thread; it is later only if a function of the user blocks the loop


class LoopThread:
    """The thread and its loop. Made by `hold` alone.

    Attributes:
        is_forked: whether this is the copy of a thread of the parent process.
        is_over: whether it ends, or has ended: it takes no calls any more.
        is_exiting: whether it ends with the interpreter.
        holders: those that need it.
        open: the calls that are not over.
        ident: the identifier of the thread.
    """

    def __init__(self) -> None:
        self.is_forked = self.is_over = self.is_exiting = False
        self.holders: set[Holder] = set()
        self.open: set[Call[Any]] = set()
        self._calls: deque[Call[Any]] = deque()
        self._waker = 0  # the thread that wakes the loop, which has not looked since
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="etcd_aio.loop", daemon=True)
        try:
            self._thread.start()
        except BaseException:  # there can be no more threads; or a signal handler has raised
            self.stop()
            raise
        self.ident = self._thread.ident

    def call(
        self,
        function: Callable[..., object],
        arguments: tuple[object, ...] = (),
        keywords: dict[str, object] | None = None,
        undo: Callable[[Any], object] | None = None,
    ) -> Any:
        """Run a function in the thread, and wait for its result; if that is a coroutine, for the coroutine's.

        Args:
            function: the function.
            arguments: its positional arguments.
            keywords: its keyword arguments.
            undo: is run in the thread with a result that the caller does not get, since it was interrupted.

        Raises:
            BlockingInLoopError: it was called by a function that runs in this thread.
            BaseException: what the function or the coroutine raises.
            ClientClosedError: the thread has ended.
            ForkedError: it is a thread of the parent process, maybe since a fork during the call.
            KeyboardInterrupt: or what else a signal handler raises; before, the coroutine is cancelled, and has ended.
        """
        if threading.get_ident() == self.ident:
            raise BlockingInLoopError("a blocking call was made by a function that runs in the client's event loop")
        call: Call[Any] = Call(function, arguments, keywords or {}, self, undo)
        try:
            return call.wait()
        finally:
            del call  # an error refers to this frame

    def submit(self, call: Call[Any]) -> None:
        """Have a call started, continued or cancelled by the loop. It fails if the thread has ended, or is forked."""
        self.open.add(call)
        self._calls.append(call)
        if not self.is_forked:
            self._wake()
        if self._is_closed or self.is_forked:
            self.refuse()

    def _wake(self) -> None:
        own = threading.get_ident()
        if self._waker and self._waker != own:
            return
        try:
            self._waker = own
            self._schedule()
        except BaseException:  # a signal handler has raised
            self._waker = 0
            self._schedule()
            raise

    def _schedule(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._take)
        except RuntimeError:  # the loop is closed
            self._is_closed = True

    def _take(self) -> None:
        """Start the calls that were submitted."""
        self._waker = 0  # before the look: what comes later wakes the loop again
        calls = self._calls
        while calls:
            calls.popleft().step()

    def refuse(self) -> None:
        """Let every call that is not over fail. The loop does not run."""
        for call in tuple(self.open):
            call.fail(ForkedError() if self.is_forked else ClientClosedError())

    # Life.

    def _run(self) -> None:
        try:
            while not self.is_over:
                try:
                    self._loop.run_forever()
                except BaseException:  # asyncio lets a SystemExit of a task out, such as that of a user's function
                    _log.exception("a function that runs in the event loop of the blocking clients raised")
            self._loop.run_until_complete(self._end())
        finally:
            self._loop.close()
            self._is_closed = True
            self.refuse()

    async def _end(self) -> None:
        """Cancel what runs in the loop, and let it end."""
        current = asyncio.current_task()
        tasks = {task for task in asyncio.all_tasks() if task is not current}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_SECONDS)
        closing = start_background_task(self._loop.shutdown_asyncgens(), name="etcd_aio.loop generators")
        await asyncio.wait({closing}, timeout=_END_SECONDS)

    def release(self, holder: "Holder") -> None:
        """The holder needs it no more. The last one ends the thread, and waits until it has ended."""
        with _Process.lock:
            self.holders.discard(holder)
            if self.holders or self.is_over or self.is_forked:
                return
            self.stop()
        self._join()

    def stop(self) -> None:
        """Let the thread end, soon."""
        self.is_over = True
        try:
            self._loop.call_soon_threadsafe(self._loop.stop)
        except RuntimeError:  # it has ended
            return

    def _join(self) -> None:
        if threading.get_ident() != self.ident:
            self._thread.join(_JOIN_SECONDS)

    def leave_at_exit(self) -> None:
        """The interpreter ends."""
        self.is_exiting = True
        try:
            for holder in list(self.holders):
                warnings.warn(f"unclosed {holder.text}", ResourceWarning, stacklevel=1)
        finally:  # a warning may be an error
            self.stop()
            self._join()


class Holder:
    """One user of the thread.

    Args:
        text: names it, for the warning if it does not release the thread.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class _Process:
    """The thread of this process, and the lock for finding and ending it.

    It is reentrant: a client that the garbage collector finds is closed in the midst of anything.
    """

    lock = threading.RLock()
    again = threading.RLock()
    thread: LoopThread | None = None
    forked: Final[list[LoopThread]] = []


def hold(holder: Holder) -> LoopThread:
    """Get the thread of this process, which is started for the first holder.

    Args:
        holder: is given to `release` when the thread is needed no more.
    """
    with _Process.lock:
        thread = _Process.thread
        if thread is None or thread.is_over:
            thread = _Process.thread = LoopThread()
        thread.holders.add(holder)
        return thread


def making_again() -> AbstractContextManager[object]:
    """The block in which a forked child makes objects again; one thread at a time."""
    return _Process.again


def _at_exit() -> None:
    thread = _Process.thread
    if thread is not None and not thread.is_over:
        thread.leave_at_exit()


def _on_fork() -> None:
    thread, _Process.thread = _Process.thread, None
    _Process.lock, _Process.again = threading.RLock(), threading.RLock()
    if thread is not None:
        thread.is_forked = True
        _Process.forked.append(thread)
        thread.refuse()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_on_fork)
