"""portal/facade.py, portal/portal.py, portal/block.py, portal/iterator.py, portal/callback.py: on objects of a test."""

import asyncio
import gc
import logging
import os
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pytest

from etcd_aio.errors import EtcdTimeoutError, ForkedError, InvalidRequestError
from etcd_aio.portal import Block, BlockingIterator, Portal, own_thread, register, unwrap
from tests.support.alarms import set_alarm


class AioThing:
    """An object of asyncio: a block, an iterator, and more."""

    def __init__(self, name: str = "a") -> None:
        self.name = name
        self.events: list[str] = []
        self.tasks: set[object] = set()
        self.items: asyncio.Queue[int | None] = asyncio.Queue()
        self.fails = ""

    def other(self, name: str) -> "AioThing":
        return AioThing(name)

    def both(self) -> tuple["AioThing", list["AioThing"], int]:
        return self, [AioThing("b")], 3

    async def __aenter__(self) -> Self:
        self.tasks.add(asyncio.current_task())
        await asyncio.sleep(0.01)
        if self.fails == "enter":
            raise ValueError("enter")
        self.events.append("entered")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self.tasks.add(asyncio.current_task())
        await asyncio.sleep(0.01)
        self.events.append(f"left by {exc!r}")
        if self.fails == "leave":
            raise ValueError("leave")
        return isinstance(exc, LookupError)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> int:
        item = await self.items.get()
        if item is None:
            raise StopAsyncIteration
        return item


class Thing(Block, BlockingIterator[int]):
    _survives_fork = True

    def other(self, name: str) -> "Thing":
        made: Thing = self._made("other", name)
        return made


register({f"{__name__}.AioThing": f"{__name__}:Thing"})


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal("test")
    yield portal
    if not portal.is_forked:
        portal.close()


@pytest.fixture
def thing(portal: Portal) -> Thing:
    return Thing._around(AioThing(), portal)


# Facades.


class Unhashable(type):
    def __eq__(cls, other: object) -> bool:
        return cls is other

    __hash__ = None  # type: ignore[assignment]  # a class without one


def test_the_class_of_an_argument_is_not_kept_and_may_be_any() -> None:
    made = type("Made", (str,), {})
    assert unwrap(made("a")) == "a"
    is_kept = weakref.ref(made)
    del made
    gc.collect()
    assert is_kept() is None
    odd = Unhashable("Odd", (str,), {})
    assert unwrap(odd("a")) == "a"


def test_objects_that_have_facades_are_wrapped_and_others_are_not(thing: Thing) -> None:
    itself, others, number = thing._wrap(thing._object.both())
    assert itself is thing
    assert [type(other) for other in others] == [Thing]
    assert number == 3
    assert unwrap(itself) is thing._object
    assert unwrap(5) == 5
    assert thing.other("b")._aio.name == "b"


# Blocks.


def test_one_task_enters_and_leaves_also_if_it_is_entered_again(thing: Thing) -> None:
    with thing as inside:
        assert inside is thing
        with thing:
            assert thing._object.events == ["entered", "entered"]
        assert thing._object.events == ["entered", "entered", "left by None"]
    assert thing._object.events == ["entered", "entered", "left by None", "left by None"]
    assert len(thing._object.tasks) == 2
    with thing:
        pass
    assert len(thing._object.events) == 6


def test_the_exception_of_the_block_gets_to_the_block(thing: Thing) -> None:
    with pytest.raises(ZeroDivisionError), thing:
        _ = 1 // 0
    with thing:
        raise LookupError("swallowed")
    assert "ZeroDivisionError" in thing._object.events[1]
    assert thing._object.events[3] == "left by LookupError('swallowed')"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_an_interruption_of_the_block_does_not_end_the_loop(thing: Thing, raised: type[BaseException]) -> None:
    with pytest.raises(raised), thing:
        raise raised
    assert thing._run(abs, -1) == 1


def test_errors_of_entering_and_leaving(thing: Thing) -> None:
    thing._object.fails = "enter"
    with pytest.raises(ValueError, match="enter"):
        thing.__enter__()
    thing._object.fails = "leave"
    with pytest.raises(ValueError, match="leave") as caught, thing:
        raise KeyError("first")
    assert isinstance(caught.value.__context__, KeyError)


@pytest.mark.usefixtures("alarm")
def test_a_block_that_was_interrupted_while_entering_is_left(thing: Thing) -> None:
    class Slow(AioThing):
        async def __aenter__(self) -> Self:
            set_alarm()
            with suppress(asyncio.CancelledError):  # too late: it is entered
                await asyncio.sleep(10)
            return await super().__aenter__()

    slow = Thing._around(Slow(), thing._portal)
    with pytest.raises(KeyboardInterrupt):
        slow.__enter__()
    assert slow._object.events == ["entered", "left by None"]


# Iterators.


def test_iteration_ends_where_the_object_ends(thing: Thing) -> None:
    for item in (1, 2, None):
        thing._object.items.put_nowait(item)
    assert list(thing) == [1, 2]


def test_a_wait_for_the_next_item_has_a_limit(thing: Thing) -> None:
    with pytest.raises(EtcdTimeoutError, match=r"no item came within 0\.02 s"):
        thing.next(0.02)
    thing._run(thing._object.items.put_nowait, 1)
    assert thing.next(30) == 1
    thing._run(thing._object.items.put_nowait, 2)
    assert thing.next() == 2
    with pytest.raises(InvalidRequestError):
        thing.next(-1)
    thing._run(thing._object.items.put_nowait, None)
    with pytest.raises(StopIteration):
        thing.next(30)


@pytest.mark.usefixtures("alarm")
def test_an_item_that_came_as_the_wait_was_interrupted_is_the_next_one(thing: Thing) -> None:
    class Greedy(AioThing):
        async def __anext__(self) -> int:
            set_alarm()
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                return 7
            return 0

    greedy = Thing._around(Greedy(), thing._portal)
    with pytest.raises(KeyboardInterrupt):
        next(greedy)
    assert next(greedy) == 7


# Callbacks.


def test_a_callback_runs_in_a_thread_of_its_own_in_order(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[int, int]] = []
    done = threading.Event()

    def callback(number: int) -> None:
        if number == 1:
            raise ValueError("a fault of the callback")
        seen.append((number, threading.get_ident()))
        if number == 3:
            done.set()

    tell = own_thread(callback, "etcd_aio.sync test")
    with caplog.at_level(logging.ERROR, "etcd_aio.sync"):
        for number in range(4):
            tell(number)
        assert done.wait(10)
    assert [number for number, _ in seen] == [0, 2, 3]
    assert {ident for _, ident in seen}.isdisjoint({threading.get_ident()})
    assert caplog.messages == ["etcd_aio.sync test: the function raised"]
    until = time.monotonic() + 30
    while "etcd_aio.sync test" in [one.name for one in threading.enumerate()]:
        assert time.monotonic() < until
        time.sleep(0.05)
    done.clear()
    tell(3)
    assert done.wait(10), "the thread comes back"


# Forks, and clients that are not closed.


def in_child(function: Any) -> int:
    """The exit status of a forked child that runs a function: 0 if it raised nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_makes_again_what_holds_nothing_and_refuses_the_rest(thing: Thing) -> None:
    other = thing.other("b")
    thing._made_by = lambda: Thing._around(AioThing("again"), Portal("child"))
    entered = thing.other("c")
    entered.__enter__()

    def check() -> None:
        with pytest.raises(ForkedError, match="this Thing was made before"):
            entered._aio  # noqa: B018 - it is a property
        entered.__exit__(None, None, None)
        assert other._aio.name == "b"
        assert thing._aio.name == "again"
        assert other._run(abs, -1) == 1
        assert threading.active_count() == 2

    assert in_child(check) == 0
    assert thing._run(abs, -1) == 1
    entered.__exit__(None, None, None)
    assert entered._object.events == ["entered", "left by None"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_makes_a_part_again_of_what_has_it(thing: Thing) -> None:
    def again(name: str, portal: Portal) -> Thing:
        behind: Any = AioThing(name)
        behind.part = AioThing(f"part of {name}")
        return Thing._around(behind, portal)

    whole = again("first", thing._portal)
    whole._made_by = lambda: again("second", Portal("child"))
    part = whole._part("part")
    assert part._aio.name == "part of first"

    def check() -> None:
        assert part._aio.name == "part of second"

    assert in_child(check) == 0
    assert part._aio.name == "part of first"


def test_a_portal_that_is_abandoned_warns_and_closes() -> None:
    portal = Portal("test")
    closed = threading.Event()

    async def close() -> None:
        closed.set()

    with pytest.warns(ResourceWarning, match="unclosed the client"):
        portal.abandon("the client", close)
    assert closed.wait(10)
    gc.collect()
    until = time.monotonic() + 30
    while "etcd_aio.loop" in [one.name for one in threading.enumerate()]:
        assert time.monotonic() < until
        time.sleep(0.01)
    portal.abandon("the client", close)  # nothing is left to warn of
