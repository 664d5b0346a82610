"""Threads: asyncio waits for blocking calls, each in a thread; cancellation interrupts the thread as Ctrl-C would."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from inspect import isawaitable
from queue import SimpleQueue
from typing import Any, Final
from weakref import WeakKeyDictionary

import etcd_aio.portal as portal
from etcd_aio.base.aio import resolve
from etcd_aio.portal.call import Call

LOST: Final = "lost"
"""The message of the cancellation of a task whose block is lost."""


AGAIN: "Final[WeakKeyDictionary[asyncio.Task[Any], asyncio.Handle]]" = WeakKeyDictionary()
"""What cancels such a task in its next call, since it has found the loss by its last one."""


class Interrupted(BaseException):
    """Stands for KeyboardInterrupt, which only the main thread gets."""


class _Current(threading.local):
    work: "Work | None" = None


_current = _Current()
_idle: "list[_Worker]" = []
_wait = Call.wait
_beside = ThreadPoolExecutor(1, "tests.blocking beside")


class _Worker(threading.Thread):
    """A thread that runs one piece of work after the other. It is a daemon: what hangs does not hold up the end."""

    def __init__(self) -> None:
        super().__init__(name="tests.blocking", daemon=True)
        self.inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            self.inbox.get()()
            _idle.append(self)


class Work:
    """A blocking function in a thread.

    Args:
        function: the function.
        arguments: its arguments.

    Attributes:
        outcome: the result of the function, and the exception that it has raised instead.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function = function
        self._arguments = arguments
        self._loop = asyncio.get_running_loop()
        self.user = _user()
        self.outcome: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()
        self._lock = threading.Lock()
        self._is_interrupted = False
        self._call: Call[Any] | None = None
        self._inner: Future[Any] | None = None

    def run(self) -> None:
        """Run it, in the thread."""
        _current.work = self
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = (self._function(*self._arguments), None)
        except BaseException as error:
            outcome = (None, error)
        _current.work = None
        try:
            self._loop.call_soon_threadsafe(resolve, self.outcome, outcome)
        except RuntimeError:  # the test has ended
            return

    def interrupt(self) -> None:
        """Do to the thread what Ctrl-C does to the main thread."""
        with self._lock:
            self._is_interrupted = True
            if self._inner is not None:
                self._inner.cancel()
            elif self._call is not None:
                self._call._inbox.append(_Interruption())  # type: ignore[arg-type]
                thread: Any = self._call._thread
                with suppress(RuntimeError):  # the loop has ended, and has told the call
                    thread._loop.call_soon_threadsafe(self._call._signal)

    def waits_for(self, call: Call[Any] | None) -> None:
        """The thread begins or ends to wait for a call."""
        with self._lock:
            if self._is_interrupted and call is not None:
                raise Interrupted
            self._call = call

    def result_of(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """In the thread: the result of a function of the test, which may be a coroutine of the test's loop."""
        result = function(*arguments)
        if not isawaitable(result):
            return result
        with self._lock:
            if self._is_interrupted:
                raise Interrupted
            self._inner = inner = asyncio.run_coroutine_threadsafe(_awaited(result), self._loop)
        try:
            return inner.result()
        except FutureCancelledError:
            raise Interrupted from None
        finally:
            with self._lock:
                self._inner = None


class _User(threading.Thread):
    """Stands for the thread that a task of the test would be."""


_users: "WeakKeyDictionary[asyncio.Task[Any], _User]" = WeakKeyDictionary()


def _user() -> _User | None:
    task = asyncio.current_task()
    if task is None:
        return None
    found = _users.get(task)
    if found is None:
        found = _users[task] = _User(name=task.get_name())
    return found


def current_thread() -> threading.Thread:
    """Stands for `threading.current_thread`: what a task calls is called by one thread."""
    work = _current.work
    user = work.user if work is not None else _user() if asyncio._get_running_loop() is not None else None
    return user or threading.current_thread()


def _cancel_again(task: "asyncio.Task[Any]") -> None:
    del AGAIN[task]
    task.cancel(LOST)


class _Interruption:
    def run(self, call: Call[Any]) -> None:
        raise Interrupted


async def _awaited(result: Any) -> Any:
    return await result


def install() -> None:
    """Have blocking calls made so: interruptible, and by one thread for each task."""
    Call.wait = _interruptible_wait  # type: ignore[method-assign]
    portal.block.current_thread = portal.call.current_thread = current_thread  # type: ignore[attr-defined]


def _interruptible_wait(self: Call[Any]) -> Any:
    """Stands for `Call.wait`."""
    work = _current.work
    if work is None or work._call is not None:
        return _wait(self)
    work.waits_for(self)
    try:
        return _wait(self)
    finally:
        work.waits_for(None)


def blocking(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the test, as a blocking one.

    Args:
        function: it may be a coroutine function, which then runs in the test's loop.
    """
    loop = asyncio.get_running_loop()

    def run(*arguments: Any) -> Any:
        work = _current.work
        if work is not None:
            return work.result_of(function, arguments)
        result = function(*arguments)
        if isawaitable(result):
            return asyncio.run_coroutine_threadsafe(_awaited(result), loop).result()
        return result

    return run


def beside(function: Callable[[], Any]) -> Any:
    """Run a function in a thread while this one waits, whatever loop runs in it."""
    return _beside.submit(function).result()


async def in_thread(function: Callable[..., Any], *arguments: Any, undo: Callable[[Any], object] | None = None) -> Any:
    """Run a blocking function in a thread, and wait for it.

    Args:
        function: the function.
        arguments: its arguments.
        undo: is called with a result that the caller does not get, since it was cancelled.
    """
    work = Work(contextvars.copy_context().run, (function, *arguments))
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.inbox.put(work.run)
    cancelled: asyncio.CancelledError | None = None
    while not work.outcome.done():
        try:
            await asyncio.wait({work.outcome})
        except asyncio.CancelledError as error:
            cancelled = error
            work.interrupt()
    result, raised = work.outcome.result()
    if cancelled is not None:
        if raised is None and undo is not None:
            undo(result)
        task = asyncio.current_task()
        if cancelled.args != (LOST,) or raised is None or isinstance(raised, Interrupted) or task is None:
            for note in getattr(raised, "__notes__", ()):
                cancelled.add_note(note)
            raise cancelled
        task.uncancel()  # it finds the loss by this call, and is cancelled in its next one
        AGAIN[task] = asyncio.get_running_loop().call_soon(_cancel_again, task)
    if raised is not None:
        try:
            raise raised
        finally:
            del raised
    return result
