"""Deadlines: nothing expires early, nothing is forgotten, and few are looked at."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.transport.deadlines import SPAN, Deadlines


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
