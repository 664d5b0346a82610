"""transport/liveness_timer.py: checks are made when they are due, and none after the close."""

import asyncio

import pytest

from etcd_aio.errors import ConnectionLostError
from etcd_aio.transport import TransportOptions
from etcd_aio.transport.liveness import Liveness
from etcd_aio.transport.liveness_timer import LivenessTimer
from tests.support.virtual_time import timers

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class World:
    """A connection with one call that waits."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = self.loop.time()
        self.liveness = Liveness(self.began, TransportOptions(silence_time=0.5, silence_timeout=1.5))
        self.seen: list[tuple[float, str]] = []
        self.timer = LivenessTimer(self.liveness, lambda: self.note("ping"), self.abort)

    def note(self, what: str) -> None:
        self.seen.append((self.loop.time() - self.began, what))

    def abort(self, error: ConnectionLostError) -> None:
        self.note("dead")
        self.timer.close()


async def test_a_silent_peer_is_pinged_and_then_dead() -> None:
    world = World()
    world.liveness.call_started(world.began)
    world.timer.watch()
    assert timers() == 1
    await asyncio.sleep(10)
    assert world.seen == [(0.5, "ping"), (2.0, "dead")]
    assert timers() == 0


async def test_where_nothing_waits_there_is_no_timer() -> None:
    world = World()
    world.timer.watch()
    assert timers() == 0


async def test_after_the_close_nothing_is_checked() -> None:
    world = World()
    world.liveness.call_started(world.began)
    world.timer.watch()
    world.timer.close()
    world.timer.watch()
    assert timers() == 0
    await asyncio.sleep(10)
    assert not world.seen
