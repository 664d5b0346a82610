"""error_handler/stream_timer.py: it fires once, after data that has come before, and follows an instant that moves."""

import asyncio
from math import inf

import pytest

from etcd_aio.error_handler.stream_timer import ReadThenFireTimer
from tests.support.virtual_time import timers, turns

pytestmark = pytest.mark.anyio


class World:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.due = inf
        self.next_due = inf
        self.read = 0
        self.said: list[float] = []
        self.timer = ReadThenFireTimer(lambda: self.due, lambda: self.read, self.on_due)

    def on_due(self) -> None:
        self.said.append(self.loop.time())
        self.due = self.next_due
        self.timer.watch()

    def set(self, due: float) -> None:
        self.due = due
        self.timer.watch()


async def test_it_says_when_the_instant_has_passed_once() -> None:
    world = World()
    at = world.loop.time() + 5
    world.set(at)
    await asyncio.sleep(10)
    assert world.said == [at]
    assert timers() == 0


async def test_never_is_never() -> None:
    World().set(inf)
    assert timers() == 0


async def test_the_timer_follows_an_instant_that_moves() -> None:
    world = World()
    now = world.loop.time()
    world.set(now + 5)
    world.set(now + 2)
    await asyncio.sleep(3)
    assert world.said == [now + 2]
    world.set(now + 5)
    world.set(now + 8)
    await asyncio.sleep(10)
    assert world.said == [now + 2, now + 8]
    assert timers() == 0


async def test_moving_it_back_sets_no_timer() -> None:
    world = World()
    for second in range(1, 100):
        world.set(world.loop.time() + second)
    assert timers() == 1
    world.timer.stop()


async def test_data_of_the_same_instant_is_read_before_the_timer_fires() -> None:
    """As after a stall: the timer is due, and what moves it lies in the socket, turns away."""
    world = World()
    at = world.loop.time() + 5
    world.set(at)

    async def reader() -> None:
        for _ in range(30):
            world.read += 1
            await turns(6)
        world.set(at + 5)

    world.loop.call_at(at, lambda: tasks.append(asyncio.create_task(reader())))
    tasks: list[asyncio.Task[None]] = []
    await asyncio.sleep(7)
    assert tasks[0].done()
    assert world.said == []
    await asyncio.sleep(5)
    assert world.said == [at + 5]


async def test_a_flood_does_not_put_it_off_for_ever() -> None:
    world = World()
    world.set(world.loop.time() + 5)
    await asyncio.sleep(4.9)

    async def flood() -> None:
        await asyncio.sleep(0.1)
        while not world.said:
            world.read += 1
            await asyncio.sleep(0)

    await asyncio.wait_for(flood(), 10)
    assert world.said


async def test_an_instant_that_never_moves_is_no_busy_loop() -> None:
    world = World()
    world.next_due = world.loop.time()
    world.set(world.loop.time())
    await asyncio.sleep(0.1)
    world.timer.stop()
    assert 2 <= len(world.said) <= 101


async def test_stopped_it_says_nothing_until_it_is_watched_again() -> None:
    world = World()
    at = world.loop.time() + 1
    world.set(at)
    world.loop.call_at(at, world.timer.stop)
    await asyncio.sleep(2)
    assert world.said == []
    world.timer.watch()
    await asyncio.sleep(1)
    assert len(world.said) == 1
