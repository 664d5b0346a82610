"""Call: one blocking call, from the thread that waits to the loop's thread, and back.

Theory. The caller waits for the call's lock, which the loop releases when there is something to do for the caller: the
call is over, or a function of the user is to be run in the caller's thread. What there is to do is written before the
lock is released, and looked at after it is acquired. So nothing is missed, and a release too many does no harm.

If a signal handler raises while the caller waits, as Ctrl-C does, the task is cancelled, and the caller waits until it
has ended; only then is the exception raised, with a note that says how the call has ended. A task is cancelled after
its first step: what frees something, such as a lock, has begun then, and knows what to do. A handler may raise between
any two calls of a function here, so these are few, and their order is as it is for that.
"""

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from inspect import iscoroutine
from threading import current_thread
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from etcd_aio.base.aio import resolve, start_task
from etcd_aio.base.user import CALLER
from etcd_aio.errors import ClientClosedError, EtcdError
from etcd_aio.portal.words import say_in_blocking_words

T = TypeVar("T")

_SIGNAL_SECONDS: Final = 0.5  # after which a signal is seen that did not end the wait: it came just before, say
_INTERRUPTED_SECONDS: Final = 0.9  # until a cancelled call has ended: Ctrl-C is to end a program within a second
_EXIT_SECONDS: Final = 2.0  # until daemon threads learn that the interpreter ends, which mostly ends them before


class Submitting(Protocol):
    """The loop's thread.

    Attributes:
        open: the calls that are not over.
        is_over: whether it ends, or has ended.
        is_exiting: whether it ends with the interpreter.
    """

    open: "set[Call[Any]]"
    is_over: bool
    is_exiting: bool

    def submit(self, call: "Call[Any]") -> None:
        """Have `step` called in the loop's thread, soon; or `fail` in this one."""
        ...


class Call(Generic[T]):
    """One call. It is submitted to the loop's thread by `wait` in the caller's.

    Args:
        function: is run in the loop's thread.
        arguments: its positional arguments.
        keywords: its keyword arguments.
        thread: the loop's thread.
        undo: is run in the loop's thread with a result that the caller does not get, since it was interrupted. The
            caller waits for the task that it returns, if it returns one.

    Attributes:
        is_over: whether it has a result or an error.
    """

    __slots__ = (
        "_arguments",
        "_caller",
        "_context",
        "_error",
        "_function",
        "_inbox",
        "_is_cancelled",
        "_is_interrupted",
        "_is_settled",
        "_is_taken_back",
        "_keywords",
        "_lock",
        "_result",
        "_task",
        "_thread",
        "_undo",
        "_work",
        "is_over",
    )

    def __init__(
        self,
        function: Callable[..., object],
        arguments: tuple[object, ...],
        keywords: dict[str, object],
        thread: Submitting,
        undo: Callable[[Any], object] | None = None,
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._keywords = keywords
        self._thread = thread
        self._undo = undo
        self._context = contextvars.copy_context()
        self._caller = current_thread()
        self._lock = threading.Lock()
        self._lock.acquire()
        self.is_over = self._is_interrupted = self._is_cancelled = self._is_taken_back = self._is_settled = False
        self._error: BaseException | None = None
        self._result: object = None
        self._work: Coroutine[Any, Any, object]
        self._task: asyncio.Task[object] | None = None
        self._inbox: deque[CallerWork] = deque()

    # In the loop's thread.

    def step(self) -> None:
        """Start; if the caller was interrupted, cancel or undo."""
        if self.is_over:
            if self._is_interrupted:
                self._take_back()
            return
        if self._task is None:
            if self._thread.is_over:  # nothing would wait for what is started now
                self.fail(ClientClosedError())
                return
            self._start()
        if self._is_interrupted and not self._is_cancelled and self._task is not None:
            self._is_cancelled = True
            asyncio.get_running_loop().call_soon(self._task.cancel)  # after the first step of the task

    def _start(self) -> None:
        for argument in self._arguments:
            if type(argument) is InCaller:
                argument.call = self
        self._context.run(CALLER.set, self._caller)
        try:
            result = self._context.run(self._function, *self._arguments, **self._keywords)
        except BaseException as error:  # whatever it is, it belongs to the caller
            self.fail(error)
            return
        if iscoroutine(result):
            self._work = result
            self._task = start_task(_boxed(result), name="etcd_aio.call", context=self._context)
            self._task.add_done_callback(self._ended)
        else:
            self._result = result
            self._over()

    def _ended(self, task: "asyncio.Task[object]") -> None:
        try:
            result = task.result()
        except BaseException as error:  # a cancellation, too: it belongs to the caller
            self._work.close()  # a task that is cancelled before it starts never awaits it
            is_end = isinstance(error, asyncio.CancelledError) and self._thread.is_over and not self._is_interrupted
            self._error = ClientClosedError() if is_end else error
        else:
            if type(result) is _Raised:
                self._error = result.error
            else:
                self._result = result
        self._task = None  # a task must not be freed in the caller's thread: its weak references swallow Ctrl-C
        self._over()

    def fail(self, error: BaseException) -> None:
        """End the call by an error; if it is over, what undoes it."""
        if self.is_over:
            self._settle()
        else:
            self._error = error
            self._over()

    def _over(self) -> None:
        self.is_over = True
        self._thread.open.discard(self)
        if self._is_interrupted:
            self._take_back()
        self._signal()

    def _take_back(self) -> None:
        """The caller was interrupted and gets no result: undo the call, and let the caller go on."""
        if self._is_taken_back:
            return
        self._is_taken_back = True
        task = self._undo(self._result) if self._undo is not None and self._error is None else None
        if isinstance(task, asyncio.Future):
            task.add_done_callback(self._settle)
        else:
            self._settle()

    def _settle(self, _: object = None) -> None:
        self._is_settled = True
        self._thread.open.discard(self)
        self._signal()

    def _signal(self) -> None:
        with suppress(RuntimeError):  # it is released already
            self._lock.release()

    async def run_in_caller(self, function: Callable[..., T], arguments: tuple[object, ...]) -> T:
        """Run a function in the thread that waits for this call.

        Raises:
            Exception: what the function raises.

        A thread cannot be cancelled: cancellation takes effect when the function has returned.
        """
        if self._is_interrupted:
            raise asyncio.CancelledError
        work = CallerWork(function, arguments, asyncio.get_running_loop())
        self._inbox.append(work)
        self._signal()
        is_cancelled = False
        while not work.outcome.done():
            try:
                await asyncio.wait({work.outcome})
            except asyncio.CancelledError:
                if self._is_interrupted or self._thread.is_over:
                    raise
                is_cancelled = True
        if is_cancelled:
            raise asyncio.CancelledError
        return cast("T", work.outcome.result())

    # In the caller's thread.

    def wait(self) -> T:
        """Submit it, and wait until it is over.

        Raises:
            ClientClosedError: the loop's thread has ended.
            BaseException: what the call has raised, or a signal handler.
        """
        try:
            self._thread.submit(self)
            while True:
                self._lock.acquire(True, _SIGNAL_SECONDS)
                if self.is_over:
                    break
                while self._inbox:
                    self._inbox.popleft().run(self)
        except BaseException as interruption:  # of a signal handler, or an exit in a function of the user
            self._is_interrupted = True
            try:
                self._interrupt()
            except BaseException:  # another one, maybe before the loop was told of the first
                self._thread.submit(self)
                raise
            self._tell(interruption)
            raise
        if self._error is not None:
            if self._thread.is_exiting and self._caller is not threading.main_thread():
                time.sleep(_EXIT_SECONDS)
            say_in_blocking_words(self._error)
            try:
                raise self._error
            finally:
                self._error = None  # it refers to this frame
        result: Any = self._result  # a `cast` is a call, in which a signal handler could raise
        return result  # type: ignore[no-any-return]

    def _interrupt(self) -> None:
        """Have the call cancelled, and wait until it has ended, for a time."""
        self._thread.submit(self)
        while not self._is_settled:
            if not self._lock.acquire(timeout=_INTERRUPTED_SECONDS):
                return

    def _tell(self, interruption: BaseException) -> None:
        """Say in the exception what became of the call."""
        error = self._error
        if not self.is_over:
            interruption.add_note("The call was cancelled, and has not ended yet.")
        elif error is None:
            interruption.add_note("The call had succeeded: its result is lost.")
        elif isinstance(error, EtcdError):
            interruption.add_note(f"The call had failed: {error}")
        for note in getattr(error, "__notes__", ()):
            interruption.add_note(note)


class CallerWork:
    """A function of the user that the caller's thread is to run.

    Args:
        function: the function.
        arguments: its arguments.
        loop: the loop that waits for it.
    """

    __slots__ = ("_arguments", "_function", "_loop", "outcome")

    def __init__(
        self, function: Callable[..., object], arguments: tuple[object, ...], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._loop = loop
        self.outcome: asyncio.Future[object] = loop.create_future()

    def run(self, call: Call[Any]) -> None:
        """Run it. What is no `Exception` ends the call, too: Ctrl-C, or an exit.

        Args:
            call: may be over when the function returns: the client was closed, or this is a forked child by now.
        """
        try:
            result = self._function(*self._arguments)
        except Exception as error:  # of the user
            self._settle(call, _reject, error)
        else:
            self._settle(call, resolve, result)

    def _settle(self, call: Call[Any], settle: Callable[..., None], outcome: object) -> None:
        if not call.is_over:
            with suppress(RuntimeError):  # the loop was closed right now, which ends the call
                self._loop.call_soon_threadsafe(settle, self.outcome, outcome)


class InCaller:
    """An asynchronous function that runs a blocking one in the thread of the call that it is an argument of.

    Args:
        function: the blocking function.
    """

    __slots__ = ("_function", "call")

    call: Call[Any]
    """Set as the call starts."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    async def __call__(self, *arguments: object) -> Any:
        """Run the blocking function."""
        return await self.call.run_in_caller(self._function, arguments)


class _Raised:
    """An exception that a task must not end by: asyncio lets it out of the loop."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _boxed(work: Coroutine[Any, Any, object]) -> object:
    try:
        return await work
    except (KeyboardInterrupt, SystemExit) as error:
        return _Raised(error)


def _reject(future: "asyncio.Future[object]", error: Exception) -> None:
    if not future.done():
        if isinstance(error, StopIteration):  # no future takes it
            error = RuntimeError(f"the function raised {error!r}")
        future.set_exception(error)
        future.exception()  # marks it as retrieved: the wait may have been cancelled
