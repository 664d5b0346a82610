"""recipes/stm/turnstile.py: who passes when, and what is handed on."""

import asyncio
import random

import pytest

from etcd_aio.recipes.stm.read_set import KnownKeys
from etcd_aio.recipes.stm.turnstile import Pass, Turnstile
from tests.support.virtual_time import turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def keys(text: str) -> frozenset[bytes]:
    return frozenset(letter.encode() for letter in text)


async def test_entries_pass_in_order_and_get_what_the_one_before_hands_on() -> None:
    lines = Turnstile()
    first = await lines.enter(keys("a"))
    assert (first.has_waited, first.snapshot) == (False, None)
    assert lines.busy([b"a", b"b"]) == {b"a"}
    second = asyncio.ensure_future(lines.enter(keys("ab")))
    await turns()
    third = asyncio.ensure_future(lines.enter(keys("b")))
    apart = await lines.enter(keys("c"))
    await turns()
    assert not second.done()
    assert not third.done(), "it came later, although nothing holds its key"
    known = KnownKeys(7, {b"a": None})
    lines.leave(first, known)
    assert (await second).snapshot is known
    assert not third.done()
    lines.leave(await second, None)
    assert (await third).snapshot is None
    assert (await third).has_waited
    lines.leave(await third, None)
    lines.leave(apart, None)
    assert not len(lines)


async def test_cancelled_entries_leave_the_lines() -> None:
    lines = Turnstile()
    first = await lines.enter(keys("a"))
    waiting = [asyncio.ensure_future(lines.enter(keys(text))) for text in ("ab", "b", "a")]
    await turns()
    waiting[0].cancel()
    await turns()
    assert [one.done() for one in waiting] == [True, True, False], "the second one passes"
    lines.leave(await waiting[1], None)
    lines.leave(first, None)
    waiting[2].cancel()  # after it was let through
    await asyncio.wait([waiting[2]])
    if not waiting[2].cancelled():
        lines.leave(await waiting[2], None)
    assert not len(lines)


async def test_no_two_that_share_a_key_pass_and_none_waits_for_ever() -> None:
    lines, draw = Turnstile(), random.Random(5)
    inside: set[Pass] = set()
    passed = 0

    async def work() -> None:
        nonlocal passed
        for _ in range(20):
            entry = await lines.enter(keys("".join(draw.sample("abcd", draw.randint(1, 3)))))
            assert not any(entry.keys & other.keys for other in inside)
            inside.add(entry)
            try:
                await turns(draw.randint(0, 3))
            finally:
                inside.remove(entry)
                lines.leave(entry, None)
            passed += 1

    tasks = [asyncio.ensure_future(work()) for _ in range(20)]
    for task in draw.sample(tasks, 5):
        await turns(draw.randint(1, 30))
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert passed >= 300
    assert not len(lines)
