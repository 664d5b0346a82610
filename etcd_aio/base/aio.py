"""Helpers for asyncio: starting tasks, waiting until a deadline or for a change, cancelling the task inside a block.

`loop.create_task` is used nowhere else. With `asyncio.eager_task_factory` (Python 3.12) it runs the coroutine before it
returns: a task that finishes at once would be stored by its owner after the `finally` of its coroutine has cleared that
same attribute. The tasks started here take their first step in a later turn of the loop, whatever the factory.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar, TypeVarTuple

from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import ClientClosedError, EtcdError, WrongLoopError

T = TypeVar("T")
A = TypeVarTuple("A")
P = ParamSpec("P")

ATTEMPT_SECONDS: Final = 10.0
"""Of a call that is made again if it has no answer: the answer may be lost on a connection that works otherwise."""

_LONGEST_ATTEMPT: Final = 60.0  # for answers that take long


def start_task(work: Coroutine[object, object, T], *, name: str, context: Context | None = None) -> "asyncio.Task[T]":
    """Start a task that belongs to the task that starts it, and has its context variables.

    Args:
        work: what the task runs, from the next turn of the loop on.
        name: of the task, for logs and debuggers.
        context: other context variables, such as those of a caller in another thread.
    """
    return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, context=context)


def start_background_task(work: Coroutine[object, object, T], *, name: str) -> "asyncio.Task[T]":
    """Start a task that may outlive the call that starts it: it must not log, or trace, as if it were a part of that.

    Args:
        work: what the task runs, from the next turn of the loop on, in an empty context.
        name: of the task, for logs and debuggers.
    """
    return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, context=Context())


def start_timer_at(at: float, call: Callable[[*A], object], *arguments: *A) -> asyncio.TimerHandle:
    """Call back at an instant, in an empty context: like a background task, a timer may outlive what sets it.

    Args:
        at: an instant of the running loop's clock.
        call: what to call.
        arguments: what to call it with.
    """
    return asyncio.get_running_loop().call_at(at, call, *arguments, context=Context())


def start_timer(seconds: float, call: Callable[[*A], object], *arguments: *A) -> asyncio.TimerHandle:
    """Call back after some seconds, as `start_timer_at` does."""
    return asyncio.get_running_loop().call_later(seconds, call, *arguments, context=Context())


def apart(method: Callable[P, T]) -> Callable[P, T]:
    """Make a function run in an empty context, as a background task does.

    It tells what a call happens to show, which is not a part of that call: the loss of a connection, for example.
    """

    @wraps(method)
    def in_own_context(*arguments: P.args, **keywords: P.kwargs) -> T:
        return Context().run(method, *arguments, **keywords)

    return in_own_context


def check_loop(task: "asyncio.Task[object]") -> None:
    """Check that a task may serve the caller: that it runs in the caller's loop.

    Raises:
        WrongLoopError: it runs in another one, whose futures cannot be waited for here.
    """
    if task.get_loop() is not asyncio.get_running_loop():
        raise WrongLoopError


def wake(waiter: "asyncio.Future[None] | None") -> None:
    """Resolve a future that a task may be waiting for; no future, or one that is done, is left alone."""
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def resolve(future: "asyncio.Future[T]", result: T) -> None:
    """Give a future its result, unless it is done."""
    if not future.done():
        future.set_result(result)


async def wait_until(future: "asyncio.Future[T]", deadline: float, late: T) -> T:
    """Wait for a future of the running loop; at the deadline it is resolved with `late`.

    No other task is started or cancelled, so this may run in a task of the application.

    Args:
        future: the future, which only this waits for: cancelling the wait cancels it.
        deadline: an instant of the loop's clock; `NEVER` sets no timer.
        late: the result if none has come by the deadline.

    Returns:
        The result of the future.
    """
    timer = None if deadline == NEVER else asyncio.get_running_loop().call_at(deadline, resolve, future, late)
    try:
        return await future
    finally:
        if timer is not None:
            timer.cancel()


async def repeat_unanswered(call: Callable[[], Awaitable[T]]) -> T:
    """Wait for the answer of a call without a limit, and make the call again if an answer may be lost.

    An attempt is cancelled after 10 seconds; each further one has twice the time of the one before, up to a minute.

    Args:
        call: makes the call, which has no timeout of its own and only reads.

    Returns:
        The first answer.

    Raises:
        Exception: what the call raises.

    Cancellation ends the attempt.
    """
    seconds = ATTEMPT_SECONDS
    while True:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await call()
        except TimeoutError:  # some errors of calls are one too
            if not limit.expired():
                raise
        seconds = min(2 * seconds, _LONGEST_ATTEMPT)


class Latch:
    """An `asyncio.Event` that is set once, and needs little memory: thousands of leases have one each."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self) -> None:
        self._is_set = False
        self._waiters: set[asyncio.Future[bool]] | None = None  # mostly there is none

    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._is_set

    def set(self) -> None:
        """Wake every task that waits, now and from now on."""
        self._is_set = True
        for waiter in self._waiters or ():
            resolve(waiter, True)

    async def wait(self, deadline: float = NEVER) -> bool:
        """Wait until `set` is called; False if `deadline` came first."""
        loop = asyncio.get_running_loop()
        if self._is_set or loop.time() >= deadline:
            return self._is_set
        waiter: asyncio.Future[bool] = loop.create_future()
        if self._waiters is None:
            self._waiters = set[asyncio.Future[bool]]()
        self._waiters.add(waiter)
        try:
            return await wait_until(waiter, deadline, late=False) or self._is_set  # in the turn of the deadline, say
        finally:
            self._waiters.discard(waiter)


class Waiters:
    """The tasks that wait for one kind of change of a client, each until its own deadline."""

    def __init__(self) -> None:
        self._futures: set[asyncio.Future[bool]] = set()
        self._wakes = 0
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
        wakes = self._wakes
        future: asyncio.Future[bool] = loop.create_future()
        self._futures.add(future)
        try:
            await wait_until(future, deadline, late=False)
        finally:
            self._futures.discard(future)
        if self._is_closed:
            raise ClientClosedError
        return self._wakes != wakes  # a change in the turn of the deadline counts

    def wake(self) -> None:
        """Wake every task that waits."""
        self._wakes += 1
        for future in self._futures:
            resolve(future, True)

    def close(self) -> None:
        """Wake every task that waits with `ClientClosedError`, and every later one at once."""
        self._is_closed = True
        self.wake()


def _is_running(task: "asyncio.Task[Any]") -> bool:
    """Whether a task is in the middle of a step: the current one, and each one that is just starting another task."""
    # An eager task that has ended has no coroutine; to ask for it ends the process on Python 3.12.1.
    return not task.done() and bool(getattr(task.get_coro(), "cr_running", False))


class TaskCanceller:
    """Cancels the task inside a block, and on leaving the block turns that cancellation into an error.

    The accounting is that of `asyncio.timeout`. Entering remembers the task and how many requests to cancel it has;
    leaving takes back the request made here. If no more requests are left than there were on entering, nothing but this
    object wanted the task to end, and the block raises the error. Otherwise something else wants that too, and the
    `CancelledError` goes on. So blocks of this kind, timeouts, task groups and scopes of anyio nest in any order.

    The order of use: constructed on entering the block, in its task; `cancel` at any time; then either `leave` or
    `leave_with`, once, from the block's `__aexit__`.

    Args:
        cancels: False for a canceller that cancels nothing, and keeps no task in memory.
    """

    __slots__ = ("_has_cancelled", "_has_left", "_requests_before", "_task")

    def __init__(self, *, cancels: bool = True) -> None:
        self._task = asyncio.current_task() if cancels else None
        self._requests_before = 0 if self._task is None else self._task.cancelling()
        self._has_cancelled = False
        self._has_left = False

    def cancel(self) -> None:
        """Cancel the task, once, unless the block has been left.

        A task is not cancelled in the middle of a step. It brings the reason about by a call of its own, such as
        closing the client, which the cancellation would cut short; or by a task that it starts and that runs at once
        (`asyncio.eager_task_factory`), and then the cancellation would hit what comes after the block. The block still
        raises the error on leaving.
        """
        task = self._task
        if task is None or self._has_left or self._has_cancelled or _is_running(task):
            return
        self._has_cancelled = task.cancel()

    def leave(self) -> bool:
        """Take the request back, if one was made; `cancel` does nothing from now on.

        By now the request has reached the block: a task is only ever cancelled while it waits, and it resumes with the
        `CancelledError`.

        Returns:
            Whether the task was cancelled here and nowhere else, so that a `CancelledError` of the block comes from
            here. Always False in another task than the one that entered.
        """
        self._has_left = True
        task = self._task
        if not self._has_cancelled or task is None or task is not asyncio.current_task():
            return False
        self._has_cancelled = False
        return task.uncancel() <= self._requests_before

    def leave_with(self, error: EtcdError, raised: BaseException | None) -> None:
        """Leave, and raise `error` unless the block ends by an exception of its own, which gets a note of it.

        Args:
            error: why the block should end.
            raised: the exception that leaves the block; None if there is none.
        """
        is_own = self.leave()
        if raised is None or (is_own and isinstance(raised, asyncio.CancelledError)):
            raise error
        if getattr(raised, "message", None) != error.message:  # a check, or a fenced write, may have told it already
            raised.add_note(f"Meanwhile: {error.message}")
