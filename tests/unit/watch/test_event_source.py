"""watch/event_source.py: single events are the same from the compiled source, and steps behave as coroutines do."""

import asyncio
import gc
import os
import sys
import tracemalloc
from collections.abc import Coroutine
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from weakref import ref

import pytest

from etcd_aio.base.accelerator import UnusableError
from etcd_aio.types import NO_END, Event, EventType, KeyRange, KeyValue
from etcd_aio.watch import event_source
from etcd_aio.watch.event_source import BACKEND, PythonEventSource, check, foreign_key
from tests.support.reference_counts import mortal

pytestmark = pytest.mark.anyio
EVENTS = tuple(Event(EventType.PUT, KeyValue(b"k", b"%d" % number)) for number in range(6))


def compiled() -> ModuleType:
    if not BACKEND.startswith("accelerated"):
        assert os.environ.get("ETCD_AIO_ACCELERATOR") != "yes", BACKEND
        pytest.skip(f"no accelerator: {BACKEND}")
    from etcd_aio.watch import _speedups

    return _speedups


class Batches:
    """A source whose batches come when the test says so."""

    __slots__ = ()

    async def _next_event(self: Any) -> Event:
        while self._at == len(self._batch):
            while not self.batches:
                self.taken = asyncio.get_running_loop().create_future()
                await self.taken
            self._batch, self._at = self.batches.pop(0), 0
        self._at += 1
        return cast("Event", self._batch[self._at - 1])


def made_source(kind: str) -> Any:
    base = PythonEventSource if kind == "python" else compiled().EventSource
    made = type("Source", (Batches, base), {"__slots__": ("__weakref__", "batches", "taken")})()
    made._batch, made._at, made.batches = (), 0, []
    made.taken = cast("Any", None)
    return made


@pytest.fixture(params=["python", "compiled"])
def source(request: pytest.FixtureRequest) -> Any:
    return made_source(request.param)


def add(source: Any, *events: Event) -> None:
    source.batches.append(events)
    if source.taken is not None and not source.taken.done():
        source.taken.set_result(None)


async def test_events_come_in_order_whether_they_are_here_or_come_later(source: Any) -> None:
    add(source, *EVENTS[:2])
    add(source)
    add(source, EVENTS[2])
    assert [await anext(source) for _ in range(3)] == list(EVENTS[:3])
    waiting = asyncio.create_task(anext(source))
    await asyncio.sleep(0)
    assert not waiting.done()
    add(source, *EVENTS[3:])
    assert [await waiting, await anext(source), await anext(source)] == list(EVENTS[3:])


async def test_a_step_is_a_coroutine_to_asyncio(source: Any) -> None:
    add(source, *EVENTS)
    step = anext(source)
    assert isinstance(step, Coroutine)
    assert asyncio.iscoroutine(step)
    assert await asyncio.wait_for(step, 10) is EVENTS[0]
    assert await asyncio.create_task(anext(source)) is EVENTS[1]
    assert tuple(await asyncio.gather(anext(source), anext(source))) == EVENTS[2:4]
    assert await asyncio.shield(asyncio.ensure_future(anext(source))) is EVENTS[4]


async def test_a_cancelled_step_takes_nothing(source: Any) -> None:
    for cancels_early in (True, False):
        waiting = asyncio.create_task(anext(source))
        if not cancels_early:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    add(source, *EVENTS)
    waiting = asyncio.create_task(anext(source))
    if waiting.done():  # tasks are eager
        assert waiting.result() is EVENTS[0]
        return
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await anext(source) is EVENTS[0]


async def test_a_time_limit_takes_nothing(source: Any) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(source), 0.001)
    add(source, EVENTS[0])
    assert await anext(source) is EVENTS[0]


async def test_a_step_that_is_not_awaited_or_is_closed_takes_nothing(source: Any) -> None:
    add(source, *EVENTS)
    first, second = anext(source), anext(source)
    first.close()
    second.close()
    assert await anext(source) is EVENTS[0]
    with pytest.raises(RuntimeError, match="already awaited"):
        await first


async def test_a_step_is_awaited_once(source: Any) -> None:
    add(source, *EVENTS)
    step = anext(source)
    assert await step is EVENTS[0]
    with pytest.raises(RuntimeError, match="already awaited"):
        await step
    assert await anext(source) is EVENTS[1]


async def test_a_step_that_waited_is_awaited_once(source: Any) -> None:
    step = anext(source)
    waiting = asyncio.create_task(step)
    await asyncio.sleep(0)
    add(source, *EVENTS)
    assert await waiting is EVENTS[0]
    with pytest.raises(RuntimeError, match="already awaited"):
        await step


class OfTest(Exception):  # noqa: N818 - no error
    pass


def as_instance(step: Any) -> object:
    return step.throw(OfTest("why"))


def as_class(step: Any) -> object:
    return step.throw(OfTest)


def with_value(step: Any) -> object:
    return step.throw(OfTest, OfTest("why"), None)


@pytest.mark.filterwarnings("ignore:the .type, exc, tb. signature:DeprecationWarning")
@pytest.mark.parametrize("throw", [as_instance, as_class, with_value])
async def test_an_exception_ends_a_step_that_has_not_begun(source: Any, throw: Any) -> None:
    add(source, *EVENTS)
    step = anext(source)
    with pytest.raises(OfTest):
        throw(step)
    with pytest.raises(RuntimeError, match="already awaited"):
        await step
    assert await anext(source) is EVENTS[0]


@pytest.mark.filterwarnings("ignore:the .type, exc, tb. signature:DeprecationWarning")
@pytest.mark.parametrize("throw", [as_instance, as_class, with_value])
async def test_an_exception_ends_a_step_that_waits(source: Any, throw: Any) -> None:
    step = anext(source)
    step.send(None)
    with pytest.raises(OfTest):
        throw(step)
    with pytest.raises(RuntimeError, match="already awaited"):
        step.send(None)


async def test_what_is_no_exception_is_not_thrown(source: Any) -> None:
    step = anext(source)
    with pytest.raises(TypeError):
        step.throw(cast("Any", 1))
    step.close()


async def test_a_step_can_be_driven_by_hand(source: Any) -> None:
    step = anext(source)
    future = step.send(None)
    assert not future.done()
    step.close()
    add(source, *EVENTS)
    step = anext(source)
    with pytest.raises(StopIteration) as stop:
        step.send(None)
    assert stop.value.value is EVENTS[0]
    iterator = anext(source).__await__()
    with pytest.raises(StopIteration) as stop:
        next(iterator)
    assert stop.value.value is EVENTS[1]


async def test_a_step_that_waits_is_not_awaited_by_another_task(source: Any) -> None:
    step = anext(source)
    first = asyncio.create_task(step)
    await asyncio.sleep(0)

    async def second() -> Event:
        return cast("Event", await step)

    with pytest.raises(RuntimeError, match="being awaited already"):
        await asyncio.create_task(second())
    add(source, *EVENTS)
    assert await first is EVENTS[0]


async def test_a_step_that_runs_is_not_entered_again(source: Any) -> None:
    refusals: list[ValueError] = []

    class Nested(type(source)):  # type: ignore[misc]
        __slots__ = ()

        async def _next_event(self) -> Event:
            for enter in (lambda: step.send(None), step.close, lambda: step.throw(OfTest)):
                try:
                    enter()
                except ValueError as error:
                    refusals.append(error)
            return EVENTS[0]

    nested = Nested()
    nested._batch, nested._at = (), 0
    step = anext(nested)
    assert await step is EVENTS[0]
    assert len(refusals) == 3


async def test_a_step_that_has_not_begun_takes_no_value(source: Any) -> None:
    add(source, *EVENTS)
    step = anext(source)
    with pytest.raises(TypeError, match="just-started"):
        step.send(cast("Any", 5))
    with pytest.raises(TypeError):
        list(step)
    assert await step is EVENTS[0]


async def test_an_ended_step_raises_nothing_that_is_thrown_into_it(source: Any) -> None:
    add(source, *EVENTS)
    step = anext(source)
    await step
    with pytest.raises(RuntimeError, match="already awaited"):
        step.throw(OfTest)


async def test_a_step_says_what_it_is_in_the_repr_of_its_task(source: Any) -> None:
    waiting = asyncio.create_task(anext(source))
    assert "coro=<" in repr(waiting)
    assert "without __name__" not in repr(waiting)
    waiting.cancel()
    await asyncio.wait([waiting])


async def test_a_source_without_a_batch_is_no_crash(source: Any) -> None:
    del source._batch
    with pytest.raises(AttributeError):
        await anext(source)


def test_the_compiled_source_is_a_base_class() -> None:
    with pytest.raises(TypeError, match="base class"):
        compiled().EventSource()


async def test_an_error_of_the_source_is_raised_as_it_is(source: Any) -> None:
    step = anext(source)
    waiting = asyncio.create_task(step)
    await asyncio.sleep(0)
    source.taken.set_exception(OfTest("why"))
    with pytest.raises(OfTest, match="why"):
        await waiting


async def test_iteration_ends_with_the_source(source: Any) -> None:
    class Ends(type(source)):  # type: ignore[misc]
        __slots__ = ()

        def __aiter__(self) -> Any:
            return self

        async def _next_event(self) -> Event:
            if self._at == len(self._batch):
                raise StopAsyncIteration
            return await super()._next_event()  # type: ignore[no-any-return]

    ending = Ends()
    ending._batch, ending._at = EVENTS[:2], 0
    assert [event async for event in ending] == list(EVENTS[:2])


@pytest.mark.parametrize("kind", ["python", "compiled"])
async def test_a_source_in_a_cycle_is_collected(kind: str) -> None:
    source = made_source(kind)
    step = anext(source)
    step.send(None)
    source.batches.append((step, source))
    kept = ref(source)
    del source, step
    gc.collect()
    assert kept() is None


async def test_rounds_leave_no_reference_and_no_memory(source: Any) -> None:
    async def read() -> None:
        for _ in range(50):
            add(source, *EVENTS)
            for _ in EVENTS:
                await anext(source)
            anext(source).close()
            waiting = asyncio.create_task(anext(source))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])

    await read()
    tracemalloc.start()
    try:
        gc.collect()
        counted = mortal(None, EVENTS, EVENTS[0], type(source))
        counts = [sys.getrefcount(one) for one in counted]
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(20):
            await read()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        grown = [sys.getrefcount(one) - count for one, count in zip(counted, counts, strict=True)]
    finally:
        tracemalloc.stop()
    assert max(map(abs, grown)) < 50, grown
    assert after - before < 30_000


# Keys.


def in_python(events: tuple[Event, ...], keys: KeyRange) -> bytes | None:
    return foreign_key(events, keys, None)


def test_keys_out_of_the_range_are_found_alike() -> None:
    count_inside, random = compiled().count_inside, Random(1)
    keys = [b"", b"\0", b"a", b"a\0", b"ab", b"b", b"b\xff", b"c", b"\xff", b"\xff\xff"]
    ends = [b"", NO_END, *keys]
    foreign = 0
    for _ in range(20_000):
        covered = KeyRange(random.choice(keys), random.choice(ends))
        events = tuple(Event(EventType.PUT, KeyValue(random.choice(keys))) for _ in range(random.randrange(4)))
        found = foreign_key(events, covered, count_inside)
        assert found == in_python(events, covered), (covered, events)
        foreign += found is not None
    assert 2_000 < foreign < 18_000


def test_what_is_no_event_is_left_to_python() -> None:
    count_inside = compiled().count_inside
    like = SimpleNamespace(kv=SimpleNamespace(key=b"k"))
    empty = Event.__new__(Event)  # its slots are empty
    other = Event(EventType.PUT, cast("Any", SimpleNamespace(key=b"k")))
    text = Event(EventType.PUT, KeyValue(cast("Any", "k")))
    for odd in (like, empty, other, text, None):
        assert count_inside((EVENTS[0], odd, EVENTS[1]), b"k", b"") == 1
    wrong: list[tuple[Any, ...]] = [(), ([], b"", b""), ((), "k", b""), ((), b"k", None)]
    for arguments in wrong:
        with pytest.raises(TypeError):
            count_inside(*arguments)


# The check at import.


def test_a_module_that_counts_otherwise_is_not_used() -> None:
    module: Any = SimpleNamespace(set_classes=lambda *classes: None, count_inside=lambda *arguments: 0)
    with pytest.raises(UnusableError, match="counts other events"):
        check(module)


def test_a_module_that_returns_other_events_is_not_used() -> None:
    counts = iter((1, 2, 3, 0))
    module: Any = SimpleNamespace(
        set_classes=lambda *classes: None,
        count_inside=lambda *arguments: next(counts),
        EventSource=PythonEventSource,  # which does not know what is here
    )
    with pytest.raises(UnusableError, match="returns other events"):
        check(module)


def test_the_classes_are_set_once() -> None:
    with pytest.raises(ValueError, match="once"):
        compiled().set_classes(Event, KeyValue)
    assert event_source.EventSource is compiled().EventSource
