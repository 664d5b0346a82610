"""The leader watch: it looks when there is a reason, goes on until one is found, and ends when it is closed."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from etcd_aio.balancer import SubConnection
from etcd_aio.balancer.leader_monitor import LeaderWatch
from tests.support.virtual_time import tasks, timers, turns

pytestmark = pytest.mark.anyio

SOMEBODY: tuple[SubConnection, ...] = (object(),)  # type: ignore[assignment]


class World:
    def __init__(self, answers: Sequence[SubConnection | None], ready: tuple[SubConnection, ...] = SOMEBODY) -> None:
        self.answers = list(answers)
        self.looks: list[float] = []
        self.told: list[SubConnection | None] = []
        self.watch = LeaderWatch(lambda: ready, self.find, self.told.append, lambda: 0.5)

    async def find(self, ready: tuple[SubConnection, ...]) -> SubConnection | None:
        self.looks.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.01)
        return self.answers.pop(0)


async def test_it_looks_once_and_tells() -> None:
    it = World([SOMEBODY[0]])
    it.watch.look()
    it.watch.look()
    await asyncio.sleep(1)
    assert it.told == [SOMEBODY[0]]
    assert not tasks()


async def test_a_reason_that_comes_while_it_looks_makes_it_look_again() -> None:
    it = World([SOMEBODY[0], SOMEBODY[0]])
    it.watch.look()
    await turns()
    it.watch.look()
    await asyncio.sleep(1)
    assert len(it.looks) == 2


async def test_it_goes_on_until_a_leader_is_found_slower_and_slower() -> None:
    it = World([None] * 6 + [SOMEBODY[0]])
    it.watch.look()
    await asyncio.sleep(10)
    assert it.told == [None] * 6 + [SOMEBODY[0]]
    gaps = [later - earlier for earlier, later in pairwise(it.looks)]
    assert gaps == sorted(gaps)
    assert gaps[-1] < 1.1
    assert timers() == 0


async def test_nobody_is_asked_while_nobody_is_ready() -> None:
    it = World([], ready=())
    it.watch.look()
    await asyncio.sleep(1)
    assert not it.looks


async def test_closing_ends_it() -> None:
    it = World([None] * 99)
    it.watch.look()
    await asyncio.sleep(0.05)
    await it.watch.aclose()
    assert not tasks()
    it.watch.look()
    assert not tasks()
