"""DeadlineTimer: never early, never spinning; and after a stall only once what had come could be read."""

from collections.abc import Callable
from typing import Any

import pytest

from etcd_aio.transport.deadline_timer import DeadlineTimer


class Handle:
    def __init__(self, due: float, call: Callable[[], None]) -> None:
        self.due = due
        self.call = call
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """A loop whose timers fire when the test says so, as early or late as that may be."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Handle] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Handle:
        self.timers.append(Handle(when, call))
        return self.timers[-1]

    @property
    def due(self) -> float | None:
        """When the one timer is due; None if there is none."""
        self.timers = [timer for timer in self.timers if not timer.is_cancelled]
        assert len(self.timers) <= 1
        return self.timers[0].due if self.timers else None

    def fire(self, now: float) -> None:
        """The one timer fires."""
        self.now = now
        assert self.due is not None
        self.timers.pop().call()


class Examined:
    def __init__(self) -> None:
        self.loop = Loop()
        self.said: list[float] = []
        loop: Any = self.loop
        self.timer = DeadlineTimer(loop, lambda: self.said.append(self.loop.now))


@pytest.fixture
def one() -> Examined:
    return Examined()


def test_in_time_it_is_said_at_once(one: Examined) -> None:
    one.timer.set(101.0)
    assert one.loop.due == 101.0
    one.loop.fire(101.001)
    assert one.said == [101.001]
    assert one.loop.due is None


def test_a_timer_that_fires_early_says_nothing_and_does_not_spin(one: Examined) -> None:
    one.timer.set(101.0)
    one.loop.fire(100.9996)
    assert one.said == []
    assert one.loop.due is not None
    assert one.loop.due >= 100.9996 + 0.001
    one.loop.fire(one.loop.due)
    assert len(one.said) == 1


def test_an_instant_that_has_passed_already_waits_for_a_timer_too(one: Examined) -> None:
    one.timer.set(90.0)
    assert one.loop.due == 100.001


def test_the_instant_may_move_in_both_directions(one: Examined) -> None:
    for due in (105.0, 103.0, 104.0):
        one.timer.set(due)
    one.loop.fire(104.0)
    assert one.said == [104.0]


@pytest.mark.parametrize(("late", "put_off"), [(0.02, 0.02), (5.0, 0.1)])
def test_after_a_stall_it_is_put_off_once_and_not_for_long(one: Examined, late: float, put_off: float) -> None:
    one.timer.set(101.0)
    one.loop.fire(101.0 + late)
    assert one.said == []
    assert one.loop.due == pytest.approx(101.0 + late + put_off)
    one.loop.fire(120.0)
    assert one.said == [120.0]


def test_each_instant_is_put_off_anew(one: Examined) -> None:
    for due in (101.0, 111.0):
        one.timer.set(due)
        one.loop.fire(due + 2)
        one.loop.fire(due + 3)
    assert one.said == [104.0, 114.0]


def test_a_closed_timer_says_nothing(one: Examined) -> None:
    one.timer.set(101.0)
    handle = one.loop.timers[0]
    one.timer.close()
    assert one.loop.due is None
    one.timer.close()
    handle.call()
    assert one.said == []
