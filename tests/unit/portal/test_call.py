"""portal/call.py, portal/loop_thread.py: calls from many threads, interruptions, and the life of the thread."""

import asyncio
import contextvars
import gc
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from etcd_aio.errors import BlockingInLoopError, ClientClosedError
from etcd_aio.portal import Holder, LoopThread, Portal, hold, in_caller
from tests.support.alarms import set_alarm

_names: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="")


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    holder = Holder("test")
    thread = hold(holder)
    yield thread
    thread.release(holder)
    assert "etcd_aio.loop" not in [one.name for one in threading.enumerate()]


def loop_threads() -> int:
    return sum(one.name == "etcd_aio.loop" for one in threading.enumerate())


# Results and errors.


def test_a_function_and_a_coroutine_run_in_the_thread(thread: LoopThread) -> None:
    async def later(value: int, *, plus: int) -> tuple[int, int]:
        await asyncio.sleep(0)
        return value + plus, threading.get_ident()

    assert thread.call(threading.get_ident) == thread.ident
    assert thread.call(later, (1,), {"plus": 2}) == (3, thread.ident)


@pytest.mark.parametrize("error", [ValueError("a"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_errors_reach_the_caller_and_the_loop_goes_on(thread: LoopThread, error: BaseException) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise error

    def fail_at_once() -> None:
        raise error

    for function in (fail, fail_at_once):
        with pytest.raises(type(error)) as caught:
            thread.call(function)
        assert caught.value is error
    assert thread.call(abs, (-1,)) == 1


def test_the_context_of_the_caller_is_that_of_the_call(thread: LoopThread) -> None:
    async def read() -> str:
        await asyncio.sleep(0)
        return _names.get()

    token = _names.set("caller")
    try:
        assert thread.call(read) == "caller"
        assert thread.call(_names.get) == "caller"
    finally:
        _names.reset(token)


def test_many_threads_at_once(thread: LoopThread) -> None:
    async def twice(value: int) -> int:
        await asyncio.sleep(0)
        return 2 * value

    found: dict[int, list[int]] = {}

    def work(number: int) -> None:
        found[number] = [thread.call(twice, (1000 * number + step,)) for step in range(100)]

    workers = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == {number: [2 * (1000 * number + step) for step in range(100)] for number in range(32)}


# Interruptions.


@pytest.mark.usefixtures("alarm")
def test_an_interruption_cancels_the_call_and_waits_for_its_end(thread: LoopThread) -> None:
    seen = []

    async def wait_for_ever() -> None:
        set_alarm()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as cancelled:
            await asyncio.sleep(0.05)
            seen.append("ended")
            cancelled.add_note("It was never sent.")
            raise

    with pytest.raises(KeyboardInterrupt) as caught:
        thread.call(wait_for_ever)
    assert seen == ["ended"]
    assert caught.value.__notes__ == ["It was never sent."]


@pytest.mark.usefixtures("alarm")
def test_a_call_that_does_not_end_does_not_hold_up_an_interruption(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etcd_aio.portal.call._INTERRUPTED_SECONDS", 0.9)
    may_end = asyncio.Event()

    async def stubborn() -> None:
        set_alarm()
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(KeyboardInterrupt) as caught:
        thread.call(stubborn)
    assert caught.value.__notes__ == ["The call was cancelled, and has not ended yet."]
    thread.call(may_end.set)


@pytest.mark.usefixtures("alarm")
def test_a_result_that_comes_too_late_is_taken_back(thread: LoopThread) -> None:
    back: list[str] = []

    async def give() -> str:
        set_alarm()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "a lock"
        return ""

    with pytest.raises(KeyboardInterrupt) as caught:
        thread.call(give, undo=back.append)
    assert back == ["a lock"]
    assert caught.value.__notes__ == ["The call had succeeded: its result is lost."]


@pytest.mark.usefixtures("alarm")
def test_signal_handlers_run_while_a_call_waits(thread: LoopThread) -> None:
    seen: list[int] = []
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.05)

    async def wait() -> str:
        while not seen:  # noqa: ASYNC110 - what a signal handler sets
            await asyncio.sleep(0.01)
        return "went on"

    assert thread.call(wait) == "went on"


# Functions in the caller's thread.


def test_functions_of_the_user_run_in_the_thread_of_the_caller(thread: LoopThread) -> None:
    async def ask(function: object) -> list[int]:
        return [await function(number) for number in range(3)]  # type: ignore[operator]

    def answer(number: int) -> tuple[int, int]:
        return thread.call(abs, (-number,)), threading.get_ident()  # it may make calls itself

    assert thread.call(ask, (in_caller(answer),)) == [(number, threading.get_ident()) for number in range(3)]


@pytest.mark.parametrize("error", [ValueError("a"), StopIteration(1)])
def test_an_error_of_such_a_function_is_raised_where_it_is_awaited(thread: LoopThread, error: Exception) -> None:
    async def ask(function: object) -> str:
        try:
            await function()  # type: ignore[operator]
        except (ValueError, RuntimeError) as raised:
            return type(raised).__name__
        return ""

    def fail() -> None:
        raise error

    assert thread.call(ask, (in_caller(fail),)) == ("ValueError" if isinstance(error, ValueError) else "RuntimeError")


def test_an_exit_in_such_a_function_ends_the_call(thread: LoopThread) -> None:
    seen: list[str] = []

    async def ask(function: object) -> None:
        try:
            await function()  # type: ignore[operator]
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        thread.call(ask, (in_caller(leave),))
    assert seen == ["cancelled"]


def test_a_function_that_runs_is_waited_for_when_its_wait_is_cancelled(thread: LoopThread) -> None:
    seen: list[str] = []
    limits: list[tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = []

    async def ask(function: object) -> str:
        try:
            async with asyncio.timeout(None) as limit:
                limits.append((asyncio.get_running_loop(), limit))
                await function()  # type: ignore[operator]
        except TimeoutError:
            return f"late, after {seen}"
        return ""

    def work() -> None:
        loop, limit = limits[0]
        loop.call_soon_threadsafe(limit.reschedule, loop.time())
        time.sleep(0.2)
        seen.append("the function")

    assert thread.call(ask, (in_caller(work),)) == "late, after ['the function']"


# The life of the thread.


def test_it_lives_from_the_first_holder_to_the_last() -> None:
    first, second = Holder("a"), Holder("b")
    assert loop_threads() == 0
    thread = hold(first)
    assert hold(second) is thread
    thread.release(first)
    assert thread.call(abs, (-1,)) == 1
    thread.release(second)
    thread.release(second)
    assert loop_threads() == 0
    with pytest.raises(ClientClosedError):
        thread.call(abs, (-1,))
    assert thread.is_over


def test_nothing_is_left_after_a_thousand_lives() -> None:
    for _ in range(1000):
        holder = Holder("a")
        hold(holder).release(holder)
    assert loop_threads() == 0


def test_what_runs_is_cancelled_as_the_thread_ends() -> None:
    holder, seen = Holder("a"), []
    thread = hold(holder)
    started = threading.Event()

    async def run() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("ended")

    def call() -> None:
        with pytest.raises(ClientClosedError):  # which `except Exception` catches, unlike CancelledError
            thread.call(run)
        seen.append("told")

    caller = threading.Thread(target=call)
    caller.start()
    started.wait()
    thread.release(holder)
    caller.join()
    assert seen == ["ended", "told"]


def test_a_call_that_is_cancelled_before_it_starts_leaves_no_warning(thread: LoopThread) -> None:
    async def never() -> None:
        raise AssertionError

    def begin() -> Coroutine[Any, Any, None]:
        asyncio.get_running_loop().call_soon(lambda: [task.cancel() for task in asyncio.all_tasks()])
        return never()

    with pytest.raises(asyncio.CancelledError):
        thread.call(begin)
    gc.collect()


def test_calls_that_race_with_the_end_are_all_answered() -> None:
    for _ in range(100):
        holder = Holder("a")
        thread = hold(holder)
        outcomes: list[object] = []

        def work(thread: LoopThread = thread, outcomes: list[object] = outcomes) -> None:
            try:
                while True:
                    thread.call(abs, (-1,))
            except ClientClosedError:
                outcomes.append("closed")

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        thread.release(holder)
        for worker in workers:
            worker.join(10)
        assert outcomes == ["closed"] * 4


# Wrong threads.


def test_a_blocking_call_in_the_loops_thread_is_an_error(thread: LoopThread) -> None:
    with pytest.raises(BlockingInLoopError, match="a function that runs in the client's event loop"):
        thread.call(thread.call, (abs, (-1,)))


def test_a_blocking_call_where_a_loop_runs_is_an_error_unless_allowed() -> None:
    async def call(portal: Portal) -> int:
        result: int = portal.call(abs, (-1,))
        return result

    for allowed in (False, True):
        portal = Portal("a", allow_in_loop=allowed)
        try:
            if allowed:
                assert asyncio.run(call(portal)) == 1
            else:
                with pytest.raises(BlockingInLoopError, match=r"use etcd_aio\.Client there"):
                    asyncio.run(call(portal))
        finally:
            portal.close()
