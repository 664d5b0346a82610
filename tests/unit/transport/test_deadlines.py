"""transport/deadlines.py: the calls that expire next, and the timer that lets pending data be read first."""

from collections.abc import Callable
from contextvars import Context
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.transport.deadlines import SPAN, Deadlines, DeadlineTimer


class Call:
    def __init__(self, deadline: float) -> None:
        self.deadline = deadline


class Looking:
    """Calls under way, which count how often somebody goes through them."""

    def __init__(self) -> None:
        self.deadlines: Deadlines[Call] = Deadlines()
        self.calls: list[Call] = []
        self.looks = 0

    def begin(self, deadline: float) -> Call:
        call = Call(deadline)
        self.calls.append(call)
        if deadline < self.deadlines.limit:
            self.deadlines.add(call)
        return call

    def all_calls(self) -> list[Call]:
        self.looks += 1
        return self.calls

    def expire(self, now: float) -> list[float]:
        found = self.deadlines.expired(now, self.all_calls)
        for call in found:
            if call in self.calls:
                self.calls.remove(call)
        return [call.deadline for call in found]


def test_with_no_calls_nothing_expires() -> None:
    looking = Looking()
    assert looking.deadlines.next == inf
    assert looking.expire(10.0) == []
    looking.begin(inf)
    assert looking.deadlines.next == inf


def test_only_an_earlier_deadline_is_looked_at() -> None:
    looking = Looking()
    looking.begin(5.0)
    assert looking.deadlines.limit == 5.0
    looking.begin(9.0)
    looking.begin(3.0)
    assert looking.deadlines.next == 3.0
    assert looking.expire(2.9) == []
    assert looking.looks == 0


def test_a_wave_is_looked_at_once_for_each_span() -> None:
    looking = Looking()
    number = 1000
    for at in range(number):
        looking.begin(10.0 + at / 1000)
    expired = []
    while looking.calls:
        expired += looking.expire(looking.deadlines.next)
    assert expired == [10.0 + at / 1000 for at in range(number)]
    assert looking.looks <= number / 1000 / SPAN + 1


def test_one_that_comes_in_a_wave_takes_its_turn() -> None:
    looking = Looking()
    looking.begin(10.0)
    looking.begin(10.0 + SPAN / 2)
    assert looking.expire(10.0) == [10.0]
    looking.begin(10.0 + SPAN / 4)
    assert looking.deadlines.next == 10.0 + SPAN / 4
    assert looking.expire(11.0) == [10.0 + SPAN / 4, 10.0 + SPAN / 2]
    assert looking.looks == 1


@pytest.mark.parametrize("later", [10.03, 20.0, inf])
def test_one_whose_deadline_was_put_off_expires_later(later: float) -> None:
    looking = Looking()
    looking.begin(10.0)
    moved = looking.begin(10.01)
    assert looking.expire(10.0) == [10.0]
    moved.deadline = later
    assert looking.expire(10.02) == []
    assert looking.deadlines.next == later
    assert looking.expire(30.0) == ([later] if later < 30.0 else [])


def test_one_that_gets_another_deadline_as_it_expires_is_added_anew() -> None:
    looking = Looking()
    call = looking.begin(10.0)
    assert looking.expire(10.0) == [10.0]
    call.deadline = 15.0
    looking.calls.append(call)
    looking.deadlines.add(call)
    looking.begin(12.0)
    assert [looking.expire(now) for now in (11.0, 12.0, 15.0)] == [[], [12.0], [15.0]]


def test_one_that_has_ended_is_held_for_a_span_at_most() -> None:
    looking = Looking()
    looking.begin(10.0)
    for at in range(100):
        looking.begin(10.0 + at)
    looking.expire(10.0)
    assert len(looking.deadlines._near) == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.lists(st.one_of(st.integers(1, 300), st.just(inf)), max_size=4)), max_size=60
    )
)
def test_as_if_all_were_looked_at_every_time(steps: list[tuple[int, list[float]]]) -> None:
    looking = Looking()
    now = 1000.0
    for elapsed, timeouts in steps:
        now += elapsed / 1000
        due = sorted(call.deadline for call in looking.calls if call.deadline <= now)
        assert (looking.deadlines.next <= now) >= bool(due)
        assert sorted(looking.expire(now)) == due
        for timeout in timeouts:
            looking.begin(now + timeout / 1000)
        assert looking.deadlines.next <= min((call.deadline for call in looking.calls), default=inf)


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

    def call_at(self, when: float, call: Callable[[], None], *, context: Context) -> Handle:
        assert not context, "the timer serves many calls"
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
