"""base/aio.py: tasks are stored before they run, waits end in time, and a canceller takes back its request."""

# ruff: noqa: PT012 - the block is what is tested

import ast
import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path

import anyio
import pytest

from etcd_aio.base.aio import (
    Latch,
    TaskCanceller,
    Waiters,
    repeat_unanswered,
    resolve,
    start_background_task,
    start_task,
    start_timer,
    start_timer_at,
    wait_until,
    wake,
)
from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import ClientClosedError, LeaseLostError, RequestTimedOutError
from tests.support.virtual_time import timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

PACKAGE = Path(__file__).parents[3] / "etcd_aio"
REQUEST: ContextVar[str] = ContextVar("REQUEST", default="none")


def set_eager() -> None:
    if sys.version_info < (3, 12):
        pytest.skip("asyncio.eager_task_factory came with Python 3.12")
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)


@pytest.mark.parametrize("start", [start_task, start_background_task])
@pytest.mark.parametrize("prepare", [lambda: None, set_eager], ids=["usual", "eager"])
async def test_a_task_does_not_run_before_its_owner_has_it(
    start: "Callable[..., asyncio.Task[None]]", prepare: Callable[[], None]
) -> None:
    prepare()
    owned: list[asyncio.Task[None] | None] = []

    async def work() -> None:
        owned.clear()

    task = start(work(), name="etcd_aio test")
    owned.append(task)
    assert task.get_name() == "etcd_aio test"
    await task
    assert not owned


async def test_a_latch_wakes_all_that_wait_and_lets_later_ones_pass() -> None:
    latch = Latch()
    waiting = [asyncio.create_task(latch.wait()) for _ in range(3)]
    await turns()
    waiting[1].cancel()
    await turns()
    assert [task.done() for task in waiting] == [False, True, False]
    assert not latch.is_set()
    latch.set()
    latch.set()
    assert latch.is_set()
    await asyncio.gather(waiting[0], waiting[2])
    await latch.wait()


async def test_a_wait_for_a_latch_has_a_deadline() -> None:
    now = asyncio.get_running_loop().time
    latch = Latch()
    assert not await latch.wait(now())
    assert not await latch.wait(now() + 0.5)
    waiting = asyncio.create_task(latch.wait(now() + 60))
    await turns()
    latch.set()
    assert await waiting
    assert await latch.wait(now())
    assert not timers()


async def test_a_latch_that_is_set_in_the_turn_of_the_deadline_is_set() -> None:
    loop = asyncio.get_running_loop()
    latch = Latch()
    at = loop.time() + 0.5
    waiting = asyncio.create_task(latch.wait(at))
    await turns()
    loop.call_at(at, latch.set)
    assert await waiting


async def test_a_change_in_the_turn_of_a_deadline_is_not_too_late() -> None:
    loop = asyncio.get_running_loop()
    waiters = Waiters()
    waiters.wake()
    at = loop.time() + 0.5
    waiting = asyncio.create_task(waiters.wait(at))
    await turns()
    loop.call_at(at, waiters.wake)
    assert await waiting
    assert not await waiters.wait(loop.time() + 0.5)


async def test_only_a_background_task_forgets_for_which_request_it_was_started() -> None:
    REQUEST.set("one")

    async def work() -> str:
        return REQUEST.get()

    assert await start_task(work(), name="etcd_aio test") == "one"
    assert await start_background_task(work(), name="etcd_aio test") == "none"


async def test_a_timer_forgets_for_which_request_it_was_set() -> None:
    REQUEST.set("one")
    seen: list[tuple[str, float, str]] = []
    loop = asyncio.get_running_loop()
    began = loop.time()

    def note(name: str) -> None:
        seen.append((name, loop.time() - began, REQUEST.get()))

    start_timer(2.0, note, "later")
    start_timer_at(began + 1.0, note, "at")
    start_timer(0.5, note, "never").cancel()
    await asyncio.sleep(3.0)
    assert seen == [("at", 1.0, "none"), ("later", 2.0, "none")]


# --- waiting ---


async def test_a_future_that_is_done_is_not_resolved_again() -> None:
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    number: asyncio.Future[int] = loop.create_future()
    for _ in range(2):
        wake(waiter)
        resolve(number, 1)
    resolve(number, 2)
    assert (waiter.result(), number.result()) == (None, 1)
    cancelled: asyncio.Future[None] = loop.create_future()
    cancelled.cancel()
    wake(cancelled)
    wake(None)


@pytest.mark.parametrize(("after", "result", "seconds"), [(1.0, "in time", 1.0), (3.0, "late", 2.0)])
async def test_a_wait_ends_with_the_result_or_at_the_deadline(after: float, result: str, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    future: asyncio.Future[str] = loop.create_future()
    other = loop.call_later(after, resolve, future, "in time")
    assert await wait_until(future, began + 2.0, "late") == result
    assert loop.time() == began + seconds
    other.cancel()
    assert not timers()


async def test_a_wait_without_a_deadline_sets_no_timer_and_can_be_cancelled() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(wait_until(future, NEVER, None))
    await turns()
    assert not timers()
    waiting.cancel()
    await turns()
    assert waiting.cancelled()
    assert future.cancelled()


async def test_waiters_are_woken_together_and_each_has_its_own_deadline() -> None:
    waiters = Waiters()
    loop = asyncio.get_running_loop()
    tasks = [asyncio.ensure_future(waiters.wait(loop.time() + seconds)) for seconds in (0.0, 1.0, 9.0, 9.0)]
    await asyncio.sleep(2.0)
    assert [task.done() for task in tasks] == [True, True, False, False]
    assert len(waiters) == 2
    tasks[2].cancel()
    waiters.wake()
    await asyncio.wait(tasks)
    assert [tasks[at].result() for at in (0, 1, 3)] == [False, False, True]
    assert tasks[2].cancelled()
    assert not waiters


async def test_closed_waiters_raise_for_those_that_wait_and_for_those_that_come_later() -> None:
    waiters = Waiters()
    waiting = asyncio.ensure_future(waiters.wait(NEVER))
    await asyncio.sleep(0)
    waiters.close()
    for late in (waiting, waiters.wait(NEVER)):
        with pytest.raises(ClientClosedError):
            await late


async def test_a_wait_that_is_cancelled_leaves_no_timer() -> None:
    loop = asyncio.get_running_loop()
    waiting = asyncio.create_task(wait_until(loop.create_future(), loop.time() + 5, None))
    await turns()
    waiting.cancel()
    await turns()
    assert not timers()


# --- cancelling the task inside a block ---


class Block:
    """A block that ends by an error if its reason is lost, after so many seconds; and what its task was left with."""

    def __init__(self, *losses: float, name: str = "block") -> None:
        self.losses = losses
        self.error = LeaseLostError(f"{name} is lost")
        self.is_lost = False
        self.canceller: TaskCanceller | None = None

    def lose(self) -> None:
        assert self.canceller is not None
        self.is_lost = True
        self.canceller.cancel()

    async def __aenter__(self) -> None:
        self.canceller = TaskCanceller()
        for seconds in self.losses:
            asyncio.get_running_loop().call_later(seconds, self.lose)

    async def __aexit__(self, exc_type: object, exc: BaseException | None, traceback: object) -> None:
        assert self.canceller is not None
        if self.is_lost:
            self.canceller.leave_with(self.error, exc)
        self.canceller.leave()


def requests() -> int:
    """How many requests to cancel the running task has."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


async def test_a_block_that_is_cancelled_for_its_reason_raises_the_error_and_nothing_follows() -> None:
    block = Block(1.0)
    with pytest.raises(LeaseLostError) as caught:
        async with block:
            await asyncio.sleep(10)
    assert caught.value is block.error
    assert requests() == 0
    await asyncio.sleep(10)


async def test_a_block_that_keeps_its_reason_ends_as_it_ends() -> None:
    async with Block():
        await asyncio.sleep(1)
    with pytest.raises(ValueError, match="mine"):
        async with Block():
            raise ValueError("mine")


async def test_several_cancellations_are_one_request() -> None:
    with pytest.raises(LeaseLostError):
        async with Block(1.0, 1.0, 1.5):
            try:
                await asyncio.sleep(10)
            finally:
                assert requests() == 1
                await asyncio.sleep(1)
                assert requests() == 1
    assert requests() == 0


async def test_a_block_that_swallows_the_cancellation_still_raises_the_error() -> None:
    with pytest.raises(LeaseLostError):
        async with Block(1.0):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(10)
            await asyncio.sleep(1)
    assert requests() == 0


async def test_an_exception_of_the_block_goes_first_and_gets_a_note() -> None:
    with pytest.raises(ValueError, match="mine") as caught:
        async with Block(1.0):
            try:
                await asyncio.sleep(10)
            finally:
                raise ValueError("mine")
    assert caught.value.__notes__ == ["Meanwhile: block is lost"]
    assert requests() == 0


@pytest.mark.parametrize("others", [[0.5], [1.0], [1.5], [0.5, 1.5], [1.0, 1.0], [1.2, 1.4]])
async def test_a_task_that_is_also_cancelled_by_others_stays_cancelled(others: list[float]) -> None:
    left: list[int] = []

    async def body() -> None:
        try:
            async with Block(1.0):
                try:
                    await asyncio.sleep(10)
                finally:
                    with suppress(asyncio.CancelledError):
                        await asyncio.sleep(1)
                    await asyncio.sleep(1)
        finally:
            left.append(requests())

    loop = asyncio.get_running_loop()
    task = asyncio.create_task(body())
    for seconds in others:
        loop.call_later(seconds, task.cancel)
    await asyncio.wait([task])
    assert task.cancelled()
    assert left == [len(others)], "only the request that was made here is taken back"


async def test_in_a_task_that_was_cancelled_before_the_block_raises_the_error() -> None:
    async def body() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            with pytest.raises(LeaseLostError):
                async with Block(1.0):
                    await asyncio.sleep(10)
            assert requests() == 1

    task = asyncio.create_task(body())
    await turns()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_after_leaving_nothing_is_cancelled() -> None:
    block = Block(2.0)
    async with block:
        await asyncio.sleep(1)
    await asyncio.sleep(2)
    assert block.is_lost
    assert requests() == 0


async def test_the_running_task_does_not_cancel_itself() -> None:
    block = Block()
    with pytest.raises(LeaseLostError):
        async with block:
            block.lose()
            await asyncio.sleep(1)
    assert requests() == 0


async def test_a_task_that_is_just_starting_another_is_not_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eager task runs within the step of the task that starts it, and is the current one meanwhile."""
    block = Block()
    started = asyncio.create_task(asyncio.sleep(0))
    with pytest.raises(LeaseLostError):
        async with block:
            with monkeypatch.context() as eagerly:
                eagerly.setattr(asyncio, "current_task", lambda: started)
                block.lose()
    await asyncio.sleep(1)
    assert requests() == 0


async def test_an_eager_task_that_brings_the_reason_about_does_not_cancel_the_task_that_starts_it() -> None:
    set_eager()
    block = Block()

    async def lose() -> None:
        block.lose()

    with pytest.raises(LeaseLostError):
        async with block:
            losing = asyncio.create_task(lose())
            assert losing.done()
    await asyncio.sleep(1)
    assert requests() == 0


async def test_a_task_that_has_ended_is_not_cancelled() -> None:
    block = Block()
    task = asyncio.create_task(block.__aenter__())
    await task
    block.lose()
    assert not task.cancelled()
    with pytest.raises(LeaseLostError):
        await block.__aexit__(None, None, None)
    assert requests() == 0


async def test_leaving_in_another_task_takes_nothing_back() -> None:
    block = Block()
    left: list[int] = []

    async def enter() -> None:
        await block.__aenter__()
        try:
            await asyncio.sleep(10)
        finally:
            left.append(requests())

    task = asyncio.create_task(enter())
    await turns()
    block.lose()
    with pytest.raises(LeaseLostError):
        await block.__aexit__(None, None, None)
    await asyncio.wait([task])
    assert task.cancelled()
    assert left == [1]


async def test_of_nested_blocks_that_are_lost_together_the_outer_one_raises() -> None:
    with pytest.raises(LeaseLostError, match="outer"):
        async with Block(1.0, name="outer"), Block(1.0, name="inner"):
            await asyncio.sleep(10)
    assert requests() == 0


async def test_an_inner_block_that_is_lost_alone_leaves_the_outer_one() -> None:
    async with Block():
        with pytest.raises(LeaseLostError, match="inner"):
            async with Block(1.0, name="inner"):
                await asyncio.sleep(10)
        await asyncio.sleep(1)
    assert requests() == 0


async def test_an_outer_block_that_is_lost_ends_the_inner_one_without_an_error_of_its_own() -> None:
    with pytest.raises(LeaseLostError, match="outer"):
        async with Block(1.0, name="outer"), Block(name="inner"):
            await asyncio.sleep(10)
    assert requests() == 0


async def under_timeout(seconds: float, body: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(seconds):
        await body()


async def under_scope(seconds: float, body: Callable[[], Awaitable[None]]) -> None:
    with anyio.fail_after(seconds):
        await body()


async def under_group(seconds: float, body: Callable[[], Awaitable[None]]) -> None:
    async def fail() -> None:
        await asyncio.sleep(seconds)
        raise TimeoutError

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            await body()
            group.cancel_scope.cancel()
    except* TimeoutError:
        raise TimeoutError from None


SCOPES = pytest.mark.parametrize("scope", [under_timeout, under_scope, under_group])


@SCOPES
@pytest.mark.parametrize(("lost", "timeout"), [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (9.0, 1.0)])
async def test_a_block_inside_of_a_scope_ends_by_what_came_first(
    scope: Callable[[float, Callable[[], Awaitable[None]]], Awaitable[None]], lost: float, timeout: float
) -> None:
    async def body() -> None:
        async with Block(lost):
            await asyncio.sleep(10)

    try:
        await scope(timeout, body)
    except (LeaseLostError, ExceptionGroup):
        assert lost <= timeout
    except TimeoutError:
        assert timeout <= lost
    assert requests() == 0
    await asyncio.sleep(10)


@SCOPES
@pytest.mark.parametrize(("lost", "timeout"), [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (9.0, 1.0)])
async def test_a_scope_inside_of_a_block_ends_by_what_came_first(
    scope: Callable[[float, Callable[[], Awaitable[None]]], Awaitable[None]], lost: float, timeout: float
) -> None:
    async def body() -> None:
        await asyncio.sleep(10)

    try:
        async with Block(lost):
            await scope(timeout, body)
    except LeaseLostError:
        assert lost <= timeout
    except TimeoutError:
        assert timeout <= lost
    assert requests() == 0
    await asyncio.sleep(10)


# --- who starts tasks ---


STARTING = re.compile(r"create_task|ensure_future|\bTask\b|start_task|start_background_task")


def calls_of(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def name_of(call: ast.Call) -> str:
    return ast.unparse(call.func)


def groups_of(path: Path) -> set[str]:
    """What the task groups of a file are called."""
    return {
        ast.unparse(item.optional_vars)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if item.optional_vars is not None and ast.unparse(item.context_expr) == "asyncio.TaskGroup()"
    }


def test_every_task_is_started_here() -> None:
    for path in sorted(set(PACKAGE.rglob("*.py")) - {PACKAGE / "base" / "aio.py"}):
        if not STARTING.search(path.read_text()):
            continue  # parsing all takes seconds
        groups = groups_of(path)  # a group owns its tasks itself
        for call in calls_of(path):
            owner, _, name = name_of(call).rpartition(".")
            assert name not in {"create_task", "ensure_future"} or owner in groups, f"{path}:{call.lineno}"
            assert (owner, name) != ("asyncio", "Task"), f"{path}:{call.lineno}"
            if name in {"start_task", "start_background_task"}:
                assert any(keyword.arg == "name" for keyword in call.keywords), f"{path}:{call.lineno}"


async def test_a_call_without_an_answer_is_made_again_with_more_time() -> None:
    loop = asyncio.get_running_loop()
    given: list[float] = []

    async def call() -> str:
        began = loop.time()
        try:
            await asyncio.sleep(100.0)
        except asyncio.CancelledError:
            given.append(loop.time() - began)
            raise
        return "answer"

    calling = asyncio.create_task(repeat_unanswered(call))
    await asyncio.sleep(155.0)
    assert given == pytest.approx([10.0, 20.0, 40.0, 60.0])
    assert not calling.done()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert len(given) == 5
    assert not timers()


@pytest.mark.parametrize("error", [RequestTimedOutError(), ValueError("v")])
async def test_a_call_that_fails_is_not_made_again(error: Exception) -> None:
    calls: list[None] = []

    async def call() -> None:
        calls.append(None)
        raise error

    with pytest.raises(type(error)):
        await repeat_unanswered(call)
    assert len(calls) == 1


TIMERS = re.compile(r"call_later|call_at")
OF_THE_CALLER = {
    "concurrency/held.py": "ends with the block that sets it",
    "concurrency/interruption.py": "ends with the block that sets it",
    "error_handler/streamed_reply.py": "ends with the step that sets it",
}
"""Whose timers end with what sets them, so that they may have its context."""


def test_every_other_timer_has_a_context_of_its_own() -> None:
    """What a timer logs, or tells an observer, must not look as if it were a part of the request that set it."""
    own = {PACKAGE / "base" / "aio.py", *(PACKAGE / path for path in OF_THE_CALLER)}
    assert all(path.exists() for path in own)
    for path in sorted(set(PACKAGE.rglob("*.py")) - own):
        if path.relative_to(PACKAGE).parts[0] in {"fake", "testing"} or not TIMERS.search(path.read_text()):
            continue  # the fake is a server
        for call in calls_of(path):
            if name_of(call).endswith((".call_later", ".call_at")):
                assert "context" in {keyword.arg for keyword in call.keywords}, f"{path}:{call.lineno}"
