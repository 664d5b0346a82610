"""portal/call.py, portal/loop_thread.py: signal handlers that raise or make calls at any moment, forks and exits."""

import asyncio
import gc
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pytest

from etcd_aio.errors import ClientClosedError, ForkedError
from etcd_aio.portal import (
    Block,
    BlockingIterator,
    BufferedIterator,
    Holder,
    LoopThread,
    Losable,
    Portal,
    hold,
    in_caller,
    in_worker,
    own_thread,
)

ROUNDS = 1500  # some 5 of a hundred interruptions hit a step that was not prepared for them
NOTE = "The call was cancelled, and has not ended yet."


class InterruptionError(Exception):
    """Raised by the signal handler."""


class AioThing:
    """A block and an iterator of asyncio, which tells how often it is entered now."""

    inside = 0
    number = 0

    async def __aenter__(self) -> Self:
        await asyncio.sleep(0)
        self.inside += 1
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.inside -= 1

    def take_ready(self) -> int | None:
        if self.number % 3 == 0:
            return None
        self.number += 1
        return self.number

    async def __anext__(self) -> int:
        if random.random() < 0.3:
            await asyncio.sleep(0)
        self.number += 1
        return self.number


class Thing(Block, BufferedIterator[int]):
    pass


class AioLock:
    """A lock of asyncio, which is acquired although that is cancelled."""

    is_held = is_lost = False
    alarm = 0.0

    async def acquire(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self.alarm)  # 0 is none
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.3)
        self.is_held = True

    async def release(self) -> None:
        self.is_held = False


class Lock(Losable):
    _survives_fork = True


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    holder = Holder("test")
    thread = hold(holder)
    yield thread
    thread.release(holder)


@pytest.fixture
def thing() -> Iterator[Thing]:
    portal = Portal("test")
    yield Thing._around(AioThing(), portal)
    portal.close()


@pytest.fixture
def on_alarm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], object]], None]]:
    """Sets the handler of alarms. A cancelled call has all the time to end that a slow machine needs.

    Python swallows what it raises within `__del__` or a callback of the garbage collector, and reports it.
    """
    before, report = signal.getsignal(signal.SIGALRM), sys.unraisablehook

    def report_others(unraisable: "sys.UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, InterruptionError):
            report(unraisable)

    monkeypatch.setattr(sys, "unraisablehook", report_others)
    monkeypatch.setattr("etcd_aio.portal.call._INTERRUPTED_SECONDS", 30.0)

    def set_handler(handler: Callable[[], object]) -> None:
        signal.signal(signal.SIGALRM, lambda number, frame: handler())

    yield set_handler
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupt() -> None:
    raise InterruptionError


def interrupted(work: Callable[[], object], rounds: int = ROUNDS) -> list[str]:
    """Do it again and again, interrupted at a random moment each time. Returns the notes of the interruptions."""
    notes: list[str] = []
    for _ in range(rounds):
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00002, 0.0008), 0.01)  # one may be swallowed
                work()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except InterruptionError as interruption:
            notes += getattr(interruption, "__notes__", ())
    return notes


def until_left(thing: Thing) -> None:
    until = time.monotonic() + 30
    while thing._object.inside:
        assert time.monotonic() < until
        time.sleep(0.01)


# Handlers that raise.


def test_no_interruption_keeps_the_loop_from_being_woken(
    thread: LoopThread, on_alarm: Callable[[Callable[[], object]], None]
) -> None:
    def call_again_and_again() -> None:
        while True:
            thread.call(asyncio.sleep, (0,))

    on_alarm(interrupt)
    assert NOTE not in interrupted(call_again_and_again)
    assert thread.call(abs, (-1,)) == 1


@pytest.mark.parametrize("is_before", [True, False])
def test_an_interruption_within_the_wake_up(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    wake = thread._loop.call_soon_threadsafe
    raises = [True]

    def interrupted_wake(*arguments: Any) -> object:
        if raises and threading.get_ident() != thread.ident:
            raises.clear()
            if not is_before:
                thread._loop.call_soon(*arguments)
            raise KeyboardInterrupt
        return wake(*arguments)

    monkeypatch.setattr(thread._loop, "call_soon_threadsafe", interrupted_wake)
    with pytest.raises(KeyboardInterrupt) as caught:
        thread.call(asyncio.sleep, (60,))
    assert NOTE not in getattr(caught.value, "__notes__", ())
    assert thread.call(abs, (-1,)) == 1


def test_a_signal_that_does_not_end_the_wait_is_seen_soon(thread: LoopThread) -> None:
    def press_ctrl_c() -> None:
        while not thread.open:
            time.sleep(0.01)
        time.sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # so the main thread goes on waiting

    threading.Thread(target=press_ctrl_c).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        thread.call(asyncio.sleep, (30,))
    assert "The call had succeeded: its result is lost." not in getattr(caught.value, "__notes__", ())


def test_a_block_is_left_whenever_it_is_interrupted(
    thing: Thing, on_alarm: Callable[[Callable[[], object]], None]
) -> None:
    def enter_and_leave() -> None:
        while True:
            with Thing._around(thing._object, thing._portal):
                assert thing._object.inside

    on_alarm(interrupt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of blocks whose `__exit__` did not get to its first line
        assert NOTE not in interrupted(enter_and_leave)
        gc.collect()
    until_left(thing)


def test_an_interruption_before_the_call_that_leaves(thing: Thing, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted_call(*arguments: object, **keywords: object) -> None:
        raise KeyboardInterrupt

    thing.__enter__()
    monkeypatch.setattr(Portal, "call", interrupted_call)
    with pytest.raises(KeyboardInterrupt):
        thing.__exit__(None, None, None)
    until_left(thing)


def test_what_frees_something_is_begun_although_it_is_interrupted_before(thread: LoopThread) -> None:
    seen: list[str] = []
    may_go_on = threading.Event()

    async def release() -> None:
        seen.append("begun")
        await asyncio.Event().wait()

    def press_ctrl_c() -> None:
        while not thread.open:
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        may_go_on.set()

    thread._loop.call_soon_threadsafe(may_go_on.wait, 30)  # so the call has not begun when it is interrupted
    threading.Thread(target=press_ctrl_c).start()
    with pytest.raises(KeyboardInterrupt):
        thread.call(release)
    assert seen == ["begun"]


def test_an_iterator_loses_and_repeats_nothing_and_keeps_the_order(
    thing: Thing, on_alarm: Callable[[Callable[[], object]], None]
) -> None:
    taken: list[int] = []

    def take() -> None:
        for item in thing:  # after `next(thing)`, Python may run the handler before the item is assigned
            taken.append(item)  # noqa: PERF402

    on_alarm(interrupt)
    assert NOTE not in interrupted(take)
    assert taken == list(range(1, len(taken) + 1))


class AioStubborn:
    """An iterator of asyncio that has its item although it is cancelled; the first after two alarms, which it sets."""

    number = interruptions = 0

    async def __anext__(self) -> int:
        self.number += 1
        number = self.number
        if number == 1:
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.05)  # the second alarm ends the wait for the step
        while number == 1 and self.interruptions < 2:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return number


class Stubborn(BlockingIterator[int]):
    pass


def test_two_interruptions_of_one_step_keep_the_order(
    thing: Thing, on_alarm: Callable[[Callable[[], object]], None]
) -> None:
    stubborn = AioStubborn()
    iterator = Stubborn._around(stubborn, thing._portal)

    def interrupt_twice() -> None:
        stubborn.interruptions += 1
        if stubborn.interruptions == 2:
            signal.setitimer(signal.ITIMER_REAL, 0)  # a third would come after the step
        raise InterruptionError

    on_alarm(interrupt_twice)
    with pytest.raises(InterruptionError) as caught:
        next(iterator)
    assert isinstance(caught.value.__context__, InterruptionError)
    assert [next(iterator), next(iterator)] == [1, 2]


def test_a_lock_that_is_acquired_in_spite_of_an_interruption_is_released(
    thing: Thing, on_alarm: Callable[[Callable[[], object]], None]
) -> None:
    lock = Lock._around(AioLock(), thing._portal)
    lock._object.alarm = 0.1
    on_alarm(interrupt)
    with pytest.raises(InterruptionError):
        lock._acquire(lock._aio.acquire)
    assert not lock._object.is_held


# Handlers that make calls.


def test_a_handler_makes_calls_in_the_midst_of_a_call(
    thread: LoopThread, on_alarm: Callable[[Callable[[], object]], None]
) -> None:
    answers: list[int] = []
    on_alarm(lambda: answers.append(thread.call(abs, (-1,))))
    for _ in range(ROUNDS):
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00002, 0.0004))
        for _ in range(4):
            thread.call(asyncio.sleep, (0,))
    assert answers


def test_a_handler_makes_a_call_within_the_wake_up(thread: LoopThread, monkeypatch: pytest.MonkeyPatch) -> None:
    wake = thread._loop.call_soon_threadsafe
    is_first = [True]

    def interrupted_wake(*arguments: Any) -> object:
        if is_first:
            is_first.clear()
            assert thread.call(abs, (-2,)) == 2
        return wake(*arguments)

    monkeypatch.setattr(thread._loop, "call_soon_threadsafe", interrupted_wake)
    assert thread.call(abs, (-1,)) == 1


# Forks.


def in_child(pid: int, work: Callable[[], object]) -> None:
    """In the child, do something and end; in the parent, see that it went well, in time."""
    if pid == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    until = time.monotonic() + 30
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("where", ["function", "handler"])
def test_a_call_within_which_a_fork_happens_fails_in_the_child_and_goes_on_in_the_parent(
    thread: LoopThread, on_alarm: Callable[[Callable[[], object]], None], where: str
) -> None:
    parent, pids = os.getpid(), [-1]

    def fork() -> None:
        pids[0] = os.fork()

    async def ask(function: Any) -> str:
        if where == "function":
            await function()
        while pids[0] == -1:  # noqa: ASYNC110 - the handler may run late
            await asyncio.sleep(0.01)
        return "went on"

    if where == "handler":
        on_alarm(fork)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        answer = thread.call(ask, (in_caller(fork),))
    except ForkedError:
        os._exit(os.getpid() == parent)
    except BaseException:
        if os.getpid() == parent:
            raise
        os._exit(1)
    if os.getpid() != parent:
        os._exit(1)
    assert answer == "went on"
    in_child(pids[0], lambda: None)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_lock_that_the_parent_holds_without_a_block_is_not_made_again_in_the_child(thing: Thing) -> None:
    lock = Lock._around(AioLock(), thing._portal)
    lock._made_by = lambda: Lock._around(AioLock(), Portal("child"))
    lock._acquire(lock._object.acquire)

    def use() -> None:
        with pytest.raises(ForkedError):
            _ = lock._aio

    in_child(os.fork(), use)
    assert lock._object.is_held


# The end.


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_an_exit_in_the_loop_does_not_end_the_thread_of_all_clients(thread: LoopThread, error: BaseException) -> None:
    async def leave() -> None:
        raise error

    async def start() -> None:
        thread.left = asyncio.get_running_loop().create_task(leave())  # type: ignore[attr-defined]

    thread.call(start)
    assert thread.call(abs, (-1,)) == 1
    with pytest.raises(type(error)):
        thread.left.result()  # type: ignore[attr-defined]


def test_a_call_that_does_not_end_with_the_thread_fails() -> None:
    holder = Holder("a")
    thread = hold(holder)
    outcomes: list[object] = []
    started = threading.Event()

    async def stubborn() -> None:
        started.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    def call() -> None:
        try:
            thread.call(stubborn)
        except ClientClosedError:
            outcomes.append("closed")

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    started.wait(30)
    thread.release(holder)
    caller.join(30)
    assert outcomes == ["closed"]
    gc.collect()  # asyncio logs the end of such a task


def test_a_function_of_the_user_that_outlasts_the_thread_ends_its_call_by_an_error() -> None:
    holder = Holder("a")
    thread = hold(holder)
    outcomes: list[object] = []
    started, may_end = threading.Event(), threading.Event()

    async def ask(function: Any) -> None:
        await function()

    def work() -> None:
        started.set()
        may_end.wait(30)

    def call() -> None:
        try:
            thread.call(ask, (in_caller(work),))
        except ClientClosedError:
            outcomes.append("closed")

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    started.wait(30)
    thread.release(holder)
    may_end.set()
    caller.join(30)
    assert outcomes == ["closed"]


def test_a_client_that_is_dropped_is_closed_although_warnings_are_errors() -> None:
    portal, closed = Portal("test"), threading.Event()

    async def close() -> None:
        closed.set()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ResourceWarning):
            portal.abandon("a client", close)
    assert closed.wait(30)
    until = time.monotonic() + 30
    while not portal.thread.is_over:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
def test_an_exit_in_a_function_of_events_does_not_lose_the_next(error: BaseException) -> None:
    seen: list[int] = []
    second = threading.Event()

    def take(number: int) -> None:
        seen.append(number)
        if number == 2:
            second.set()
        raise error

    add = own_thread(take, "test.events")
    add(1)
    add(2)
    assert second.wait(30)
    assert seen == [1, 2]


def test_the_end_waits_for_no_function_of_the_user_and_destroys_no_task(caplog: pytest.LogCaptureFixture) -> None:
    holder = Holder("a")
    thread = hold(holder)

    async def ask(function: Any) -> None:
        await function()

    with pytest.raises(ClientClosedError):
        thread.call(ask, (in_caller(lambda: thread.release(holder)),))
    gc.collect()
    # "Task was destroyed but it is pending!"; a callback of another test may log meanwhile.
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_no_coroutine_is_begun_while_the_thread_ends(recwarn: pytest.WarningsRecorder) -> None:
    for _ in range(30):
        holder = Holder("a")
        thread = hold(holder)
        outcomes: set[type[BaseException]] = set()

        def work(thread: LoopThread = thread, outcomes: set[type[BaseException]] = outcomes) -> None:
            try:
                while True:
                    thread.call(asyncio.sleep, (0.0005,))
            except BaseException as error:
                outcomes.add(type(error))

        workers = [threading.Thread(target=work, daemon=True) for _ in range(8)]
        for worker in workers:
            worker.start()
        time.sleep(0.005)
        thread.release(holder)
        for worker in workers:
            worker.join(30)
        assert outcomes == {ClientClosedError}
    gc.collect()
    assert not recwarn.list  # "coroutine ... was never awaited"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
def test_an_exit_in_a_function_that_a_thread_of_its_own_runs_is_an_error(
    thread: LoopThread, error: BaseException
) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(RuntimeError, match=f"raised {type(error).__name__}"):
        thread.call(in_worker(fail, "test.worker"))
