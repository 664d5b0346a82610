"""The clock of a fake, and the loop that it belongs to: that of the loop, and what tests have let pass besides.

A fake belongs to one event loop at a time. The first loop that uses it takes it; another takes it over once that one
does not run any more, as when a test starts an application twice. Time goes on where it was, and never goes back.
Threads without a loop, and those of other loops, may look and change: that runs in the fake's loop.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial, update_wrapper
from math import inf
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from etcd_aio.errors import WrongLoopError

_WRONG_LOOP: Final = "the fake etcd belongs to another event loop, which still runs: make a fake for each loop"
_PATIENCE: Final = 30.0  # seconds that a thread waits for the loop, which does this at once unless it is blocked

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Clock:
    """The clock, with one timer.

    Args:
        on_due: called when the timer fires.
        on_left: called when the loop has ended, or another one takes the fake over.

    Attributes:
        ahead: seconds by which it is ahead of the loop's clock.
    """

    def __init__(self, on_due: Callable[[], None], on_left: Callable[[], None]) -> None:
        self._on_due = on_due
        self._on_left = on_left
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._reached = 0.0  # the time does not go back, by rounding or with a loop that begins earlier
        self.ahead = 0.0

    def enter(self) -> None:
        """Let the fake belong to the loop that runs.

        Raises:
            WrongLoopError: it belongs to another one, which runs too.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._loop is not None and self._loop.is_running():
                raise WrongLoopError(_WRONG_LOOP)
            self._take_over(loop)

    def now(self) -> float:
        """The time, in seconds."""
        if self._loop is None:
            return self._reached
        return max(self._loop.time() + self.ahead, self._reached)

    def run(self, function: Callable[[], _T]) -> _T:
        """Run a function in the loop of the fake; at once if this is that loop, or none runs.

        Raises:
            TimeoutError: the loop is blocked.
        """
        if self._loop is not None and self._loop.is_closed():
            self._let_go()
        loop, here = self._loop, asyncio._get_running_loop()
        if here is not None and here is not loop and (loop is None or not loop.is_running()):
            self._take_over(here)
        elif here is not loop and loop is not None and loop.is_running():
            return _run_in(loop, function)
        return function()

    def wake_at(self, due: float) -> None:
        """Set the timer; infinity stops it."""
        if self._timer is not None and self._timer.when() == due - self.ahead:
            return
        self.stop()
        self._due = due
        if due < inf and self._loop is not None and self._loop.is_running():
            self._timer = self._loop.call_at(due - self.ahead, self._fired)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = inf

    def _take_over(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            self._let_go()
        due, self._loop = self._due, loop
        self.ahead = max(self.ahead, self._reached - loop.time())
        self.wake_at(due)

    def _let_go(self) -> None:
        """The loop has ended; until there is another one the time stands still."""
        due, self._reached = self._due, self.now()
        self.stop()
        self._due, self._loop = due, None
        self._on_left()

    def _fired(self) -> None:
        self._timer, self._reached, self._due = None, self._due, inf
        self._on_due()


class _HasClock(Protocol):
    """An object with a clock."""

    _clock: Clock


_S = TypeVar("_S", bound=_HasClock)


def in_loop(method: Callable[Concatenate[_S, _P], _T]) -> Callable[Concatenate[_S, _P], _T]:
    """Let a method run in the loop of the fake, from whichever thread it is called; see `Clock.run`."""

    def run(self: _S, /, *arguments: _P.args, **options: _P.kwargs) -> _T:
        return self._clock.run(partial(method, self, *arguments, **options))

    update_wrapper(run, method)
    return run


def _run_in(loop: asyncio.AbstractEventLoop, function: Callable[[], _T]) -> _T:
    done: Future[_T] = Future()

    def run() -> None:
        if done.set_running_or_notify_cancel():
            try:
                done.set_result(function())
            except BaseException as error:  # the caller's
                done.set_exception(error)

    loop.call_soon_threadsafe(run)
    try:
        return done.result(_PATIENCE)
    except TimeoutError:
        if done.cancel():
            raise TimeoutError(f"the event loop of the fake etcd was blocked for {_PATIENCE:g} s") from None
        raise
