"""Virtual time: an event loop whose clock jumps to the next timer as soon as nothing else is left to do.

Hours pass in milliseconds, in the same order every time. A test that waits for an event that cannot happen fails at
once instead of hanging. Only for the fake: what comes from a real socket does not come any sooner.

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from itertools import count
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

_START: Final = 1000.0  # not 0, which a test could take for "no value"
_END: Final = _START + 10 * 365 * 86400.0  # a longer wait counts as endless
_PER_JUMP: Final = 0.1  # real seconds that threads and child processes get before the clock jumps to the next timer
_MOST_NAMED: Final = 10  # tasks in the text of a DeadlockError
_INNER: Final = "etcd_aio "  # begins the names of the tasks of a client


class DeadlockError(RuntimeError):
    """No callback is ready and no timer is set, so the tasks of the loop wait for ever. The text names them."""


class _JumpingSelector(selectors.SelectSelector):
    """Reports ready files; instead of waiting it moves the clock.

    Attributes:
        now: the virtual instant.
        outside: how many calls of the loop run in threads, and how many of its child processes. Those take real time,
            so the clock waits for them.
    """

    now = _START
    outside = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See `selectors.BaseSelector.select`."""
        if timeout is not None and timeout <= 0 and len(self.get_map()) == 1:
            return []  # callbacks are ready, and nothing is registered but the loop's own way to be woken
        ready = super().select(0)
        if not ready and self.outside:
            # What is outside may wait for a timer of the loop, so the clock goes on if nothing comes from there.
            ready = super().select(None if timeout is None else _PER_JUMP)
        if not ready:
            if timeout is None:
                raise DeadlockError(f"deadlock: nothing is ready and no timer is set; {_waiting()}")
            self.now += max(timeout, 0.0)
            if self.now > _END:
                raise DeadlockError(f"deadlock: only timers without an end are left; {_waiting()}")
        return ready


def _waiting() -> str:
    names = sorted(task.get_name() for task in asyncio.all_tasks())
    names = [name for name in names if not name.startswith(_INNER)] or names  # a client waits for its users
    shown = ", ".join(names[:_MOST_NAMED]) or "no task"
    return f"{shown}{f' and {len(names) - _MOST_NAMED} more' if len(names) > _MOST_NAMED else ''} waits for ever"


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. Its clock moves only while everything waits for timers.

    Equal programs run equally on it: the tasks and futures that it makes are numbered, and a set of them has the same
    order in every process.

    Raises:
        DeadlockError: from what runs the loop, if nothing can happen any more.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        self._slept = 0.0
        self._numbers = count()
        super().__init__(self._jumping)
        self.set_task_factory(self._new_task)

    def time(self) -> float:
        """The virtual instant, in seconds."""
        return self._jumping.now

    def block(self, seconds: float) -> None:
        """Let time pass in which nothing else runs, as a call does that blocks the loop."""
        self._jumping.now += seconds

    def suspend(self, seconds: float) -> None:
        """Let the machine sleep: leases and the ages of caches go on, and the clock of the loop stands still."""
        self._slept += seconds

    def suspended_seconds(self) -> float:
        """Seconds that the machine has slept so far."""
        return self._slept

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Ts]], _T], *args: *_Ts
    ) -> "asyncio.Future[_T]":
        """Run a function in a thread. The clock waits while it runs, but not for one that waits for a timer."""
        done = super().run_in_executor(executor, func, *args)
        self._jumping.outside += 1
        done.add_done_callback(self._left_thread)
        return done

    async def shutdown_default_executor(self, *arguments: Any, **options: Any) -> None:
        """Wait for the threads, at the end."""
        self._jumping.outside += 1
        try:
            await super().shutdown_default_executor(*arguments, **options)
        finally:
            self._jumping.outside -= 1

    def _left_thread(self, done: "asyncio.Future[Any]") -> None:
        self._jumping.outside -= 1

    async def subprocess_exec(self, protocol_factory: Callable[[], Any], *words: Any, **options: Any) -> Any:
        """Start a program. The clock waits while it runs, as for threads."""
        return await self._start_child(super().subprocess_exec, protocol_factory, *words, **options)

    async def subprocess_shell(self, protocol_factory: Callable[[], Any], *words: Any, **options: Any) -> Any:
        """Start a line of a shell. The clock waits while it runs, as for threads."""
        return await self._start_child(super().subprocess_shell, protocol_factory, *words, **options)

    async def _start_child(
        self, start: Callable[..., Any], protocol_factory: Callable[[], Any], *words: Any, **options: Any
    ) -> Any:
        child = _Child(self._jumping, protocol_factory)
        try:
            return await start(child.protocol, *words, **options)
        except BaseException:
            child.exited()
            raise

    def create_future(self) -> "asyncio.Future[Any]":
        """Make a future that belongs to this loop."""
        return _Future(next(self._numbers), loop=self)

    def _new_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> "asyncio.Task[Any]":
        return _Task(next(self._numbers), coro, loop=loop, **options)


class _Child:
    """A child process, for which the clock waits until its protocol hears of its exit."""

    def __init__(self, jumping: _JumpingSelector, protocol_factory: Callable[[], Any]) -> None:
        self._jumping = jumping
        self._protocol_factory = protocol_factory
        self._is_running = True
        jumping.outside += 1

    def protocol(self) -> Any:
        """Make the protocol of the transport."""
        made = self._protocol_factory()
        hear = made.process_exited

        def exited() -> None:
            self.exited()
            hear()

        made.process_exited = exited
        return made

    def exited(self) -> None:
        """The process has exited, or could not be started."""
        if self._is_running:
            self._is_running = False
            self._jumping.outside -= 1


class _Future(asyncio.Future[Any]):
    """A future whose place in a set is its number, not its address."""

    def __init__(self, number: int, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._number = number

    def __hash__(self) -> int:
        return self._number


class _Task(asyncio.Task[Any]):
    """A task whose place in a set is its number, not its address."""

    def __init__(self, number: int, coro: Any, **options: Any) -> None:
        self._number = number  # first: asyncio puts it into a set at once
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number
