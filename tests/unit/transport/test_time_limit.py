"""transport/time_limit.py: a loop that was blocked has used up none of the time, and a silence still ends."""

import asyncio
import socket
import time

import pytest

from etcd_aio.transport.time_limit import Countdown, TimeLimit
from tests.support import loops, virtual_time


def run(seconds: float, *delays: float, extended: float = 0.0) -> float:
    """How long a countdown takes whose first timers are late by so much."""
    countdown, late = Countdown(seconds, 100.0), list(delays)
    countdown.extend(extended)
    for _ in range(1000):
        now = countdown.due + (late.pop(0) if late else 0.0)
        if countdown.tick(now):
            return now - 100.0
    raise AssertionError("it never ends")


def test_a_loop_that_is_not_blocked_counts_the_time_as_it_is() -> None:
    assert run(2.0) == pytest.approx(2.0)
    assert run(2.0, extended=3.0) == pytest.approx(5.0)
    assert run(2.0, *[0.001] * 8) == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("blocked", [0.5, 2.0, 2.01, 100.0])
def test_a_loop_that_was_blocked_has_most_of_the_time_left(blocked: float) -> None:
    assert run(2.0, blocked) == pytest.approx(2.0 + blocked)


@pytest.mark.parametrize("late", [0.01, 0.1, 0.5])
def test_after_a_late_timer_the_verdict_is_put_off(late: float) -> None:
    assert run(2.0, *[0.0] * 7, late) == pytest.approx(2.0 + late + min(late, 0.25))


def test_a_loop_that_is_always_late_comes_to_an_end() -> None:
    assert run(2.0, *[1.0] * 1000) < 30


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", [virtual_time.BACKEND])
async def test_a_silence_ends_at_the_limit_and_leaves_no_timer() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    limit = TimeLimit(2.0)
    with pytest.raises(TimeoutError):
        async with limit:
            await asyncio.sleep(100)
    assert loop.time() - began == pytest.approx(2.0)
    assert limit.expired()
    assert not virtual_time.timers()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", [virtual_time.BACKEND])
async def test_what_ends_in_time_leaves_no_timer_and_a_cancellation_stays_one() -> None:
    async def work(seconds: float) -> None:
        async with TimeLimit(2.0) as limit:
            limit.extend(1.0)
            await asyncio.sleep(seconds)
        assert not limit.expired()

    await work(2.9)
    task = asyncio.create_task(work(2.9))
    await asyncio.sleep(1.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not virtual_time.timers()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", loops.BOTH)
async def test_what_came_while_the_loop_was_blocked_is_read_first() -> None:
    """Several turns of the loop are needed: each answer asks for the next one."""
    loop = asyncio.get_running_loop()
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.setblocking(False)
        async with TimeLimit(1.0):
            there.send(b"0")
            time.sleep(1.5)  # noqa: ASYNC251 - it must block
            for number in range(10):
                assert await loop.sock_recv(here, 1) == b"%d" % number
                there.send(b"%d" % (number + 1))
