"""base/hand_over.py: the task that has waited longest gets a value, and none is lost by a cancellation."""

import asyncio

import pytest

from etcd_aio.base import NEVER, HandOver
from tests.support.virtual_time import turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def unexpected(value: int) -> None:
    pytest.fail(f"{value} came back")


async def test_the_task_that_has_waited_longest_gets_the_value() -> None:
    hand_over: HandOver[int] = HandOver(unexpected)
    waiting = [asyncio.ensure_future(hand_over.wait(NEVER, 0)) for _ in range(2)]
    await turns()
    assert (len(hand_over), hand_over.give(1), hand_over.give(2), hand_over.give(3)) == (2, True, True, False)
    assert await asyncio.gather(*waiting) == [1, 2]
    assert len(hand_over) == 0


async def test_the_deadline_ends_the_wait() -> None:
    hand_over: HandOver[int] = HandOver(unexpected)
    loop = asyncio.get_running_loop()
    assert await hand_over.wait(loop.time() + 1.0, -1) == -1
    assert not hand_over.give(1)


async def test_a_value_of_a_cancelled_task_comes_back() -> None:
    back: list[int] = []
    hand_over: HandOver[int] = HandOver(back.append)
    first, second = (asyncio.ensure_future(hand_over.wait(NEVER, 0)) for _ in range(2))
    await turns()
    assert (len(hand_over), hand_over.give(1), len(hand_over)) == (2, True, 1)
    first.cancel()
    second.cancel()
    assert len(hand_over) == 0, "they wait no longer, although they have not run since"
    await asyncio.gather(first, second, return_exceptions=True)
    assert back == [1], "the other one had none"
    assert not hand_over.give(2)
