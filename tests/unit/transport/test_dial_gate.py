"""transport/dial_gate.py: few dials begin together, in order, none is starved, and nothing is left behind."""

import asyncio
import random

import pytest

from etcd_aio.transport.dial_gate import HOLD, WIDTH, DialGate
from tests.support.virtual_time import timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Dials:
    """Dials that last as long as the test says."""

    def __init__(self) -> None:
        self.gate = DialGate()
        self.loop = asyncio.get_running_loop()
        self.since = self.loop.time()
        self.began: list[tuple[str, int]] = []
        self.under_way = self.most = 0

    async def dial(self, target: str, number: int, seconds: float) -> float:
        """Returns how long it had to wait."""
        async with self.gate.turn(target):
            waited = self.loop.time() - self.since
            self.began.append((target, number))
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            try:
                await asyncio.sleep(seconds)
            finally:
                self.under_way -= 1
        return waited

    def start(self, target: str, count: int, seconds: float) -> "list[asyncio.Task[float]]":
        return [asyncio.create_task(self.dial(target, number, seconds)) for number in range(count)]

    def check_empty(self) -> None:
        assert not len(self.gate)
        assert not timers()


async def test_few_begin_together_and_all_in_order() -> None:
    dials = Dials()
    await asyncio.gather(*dials.start("a", 200, 0.01))
    assert dials.most == WIDTH
    assert dials.began == [("a", number) for number in range(200)]
    dials.check_empty()


async def test_one_that_is_alone_does_not_wait() -> None:
    dials = Dials()
    assert await dials.dial("a", 0, 5.0) == 0
    dials.check_empty()


async def test_a_dead_target_delays_no_other_and_its_own_dials_little() -> None:
    dials = Dials()
    dead = dials.start("dead", 10 * WIDTH, 100.0)
    await turns()
    living = await asyncio.gather(*dials.start("living", 10 * WIDTH, 0.01))
    assert max(living) == pytest.approx(0.09)
    assert max(await asyncio.gather(*dead)) == pytest.approx(9 * HOLD)
    dials.check_empty()


async def test_an_error_and_a_cancellation_give_the_turn_to_the_next() -> None:
    dials = Dials()
    tasks = dials.start("a", 10 * WIDTH, 0.05)
    drawn = random.Random(4)
    for _ in range(200):
        drawn.choice(tasks).cancel()
        await asyncio.sleep(drawn.choice([0, 0.001]))
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(end) for end in ends} == {float, asyncio.CancelledError}
    assert dials.most <= WIDTH
    dials.check_empty()


async def test_a_turn_that_comes_together_with_a_cancellation_is_passed_on() -> None:
    dials = Dials()
    first = dials.start("a", WIDTH, 0.1)
    await turns()
    cancelled, last = dials.start("a", 2, 0.01)
    await turns()
    first[0].cancel()
    await asyncio.sleep(0)  # the turn was given, and its owner did not run yet
    cancelled.cancel()
    assert await last < 0.01
    assert isinstance((await asyncio.gather(cancelled, return_exceptions=True))[0], asyncio.CancelledError)
    await asyncio.gather(*first, return_exceptions=True)
    dials.check_empty()
