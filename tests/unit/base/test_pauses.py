"""base/pauses.py: they grow with the failures, and begin again after a success."""

import asyncio

import pytest

from etcd_aio.base import Backoff, Pauses

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def test_they_grow_until_a_success() -> None:
    pauses = Pauses(Backoff(1.0, 2.0, 5.0, 0.0))
    assert [pauses.next() for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]
    assert pauses.failures == 4
    pauses.reset()
    assert (pauses.failures, pauses.next()) == (0, 1.0)


async def test_waiting_takes_as_long() -> None:
    loop = asyncio.get_running_loop()
    pauses, began = Pauses(Backoff(1.0, 2.0, 5.0, 0.5), lambda: 1.0), loop.time()
    await pauses.wait()
    await pauses.wait()
    assert loop.time() - began == pytest.approx(1.5 + 3.0)


def test_the_failures_go_on_when_the_backoff_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = Pauses(Backoff(1.0, 2.0, 5.0, 0.5))
    monkeypatch.setattr("random.random", lambda: 0.5)  # is looked up at each pause
    assert [pauses.next(), pauses.next()] == [1.0, 2.0]
    pauses.backoff = Backoff(0.1, 2.0, 5.0, 0.0)
    assert pauses.next() == pytest.approx(0.4)
