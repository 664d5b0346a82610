"""error_handler/hedging.py: the first answer counts, nothing is left running, and slow clusters are spared."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest

from etcd_aio.error_handler.hedging import Hedging
from etcd_aio.errors import CompactedError, ConnectionLostError
from tests.support.virtual_time import tasks, turns

pytestmark = pytest.mark.anyio


Work: TypeAlias = Callable[[], Coroutine[Any, Any, str]]


class World:
    def __init__(self, *, may_hedge: bool = True) -> None:
        self.hedging = Hedging(0.05, lambda: may_hedge)
        self.begun: list[str] = []
        self.cancelled: list[str] = []

    def call(self, name: str, seconds: float, error: Exception | None = None) -> Work:
        async def run() -> str:
            self.begun.append(name)
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            if error is not None:
                raise error
            return name

        return run

    async def read(self, first: Work, second: Work) -> str:
        answer = await self.hedging.run(first(), second)
        assert not tasks(), "the other one is over"
        return answer


async def test_a_fast_answer_is_not_hedged() -> None:
    it = World()
    assert await it.read(it.call("first", 0.04), it.call("second", 0)) == "first"
    assert it.begun == ["first"]


async def test_a_slow_one_is_and_the_first_answer_counts() -> None:
    it = World()
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await it.read(it.call("first", 9), it.call("second", 0.01)) == "second"
    assert loop.time() - began == pytest.approx(0.06)
    assert it.cancelled == ["first"]
    assert await it.read(it.call("first", 0.1), it.call("second", 9)) == "first"
    assert it.cancelled == ["first", "second"]


async def test_one_failure_leaves_the_other_call_and_of_two_the_first_is_raised() -> None:
    it = World()
    one, other = ConnectionLostError("one"), ConnectionLostError("other")
    assert await it.read(it.call("first", 0.1, one), it.call("second", 0.2)) == "second"
    assert await it.read(it.call("first", 0.2), it.call("second", 0.01, other)) == "first"
    with pytest.raises(ConnectionLostError, match="one"):
        await it.read(it.call("first", 0.2, one), it.call("second", 0.01, other))
    with pytest.raises(ConnectionLostError, match="one"):
        await it.read(it.call("first", 0.01, one), it.call("second", 0.01))


@pytest.mark.parametrize("error", [CompactedError("compacted"), TypeError("a mistake on this side")])
async def test_a_final_error_of_either_ends_both_at_once(error: Exception) -> None:
    loop = asyncio.get_running_loop()
    it = World()
    for first, second in (
        (it.call("first", 0.1, error), it.call("second", 9)),
        (it.call("first", 9), it.call("second", 0.05, error)),
    ):
        began = loop.time()
        with pytest.raises(type(error)):
            await it.read(first, second)
        assert loop.time() - began == pytest.approx(0.1)
    assert it.cancelled == ["second", "first"]


async def test_the_budget_keeps_a_slow_cluster_from_twice_the_load() -> None:
    it = World()
    for _ in range(100):
        await it.read(it.call("first", 0.1), it.call("second", 9))
    assert it.begun.count("second") <= 10 + 100 * 0.1


async def test_without_another_member_nothing_is_hedged() -> None:
    it = World(may_hedge=False)
    assert await it.read(it.call("first", 0.1), it.call("second", 0)) == "first"
    assert it.begun == ["first"]


async def test_cancellation_ends_both() -> None:
    it = World()
    reading = asyncio.ensure_future(it.hedging.run(it.call("first", 9)(), it.call("second", 9)))
    await asyncio.sleep(0.06)
    reading.cancel()
    await turns(9)
    assert reading.cancelled()
    assert sorted(it.cancelled) == ["first", "second"]
    assert not tasks()
