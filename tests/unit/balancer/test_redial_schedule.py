"""balancer/redial_schedule.py: an endpoint is dialled after an election would be over, then less and less often."""

from functools import partial
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.balancer.redial_schedule import CALM, PATIENCE, REDIAL_BACKOFF, RedialSchedule

NOW = 100.0
STEP = 0.025


def half() -> float:
    return 0.5


def dials(schedule: RedialSchedule, since: float, start: float, seconds: float) -> list[float]:
    """The instants at which dials are due in an outage that is looked at every 25 ms."""
    instants = (start + step * STEP for step in range(round(seconds / STEP)))
    return [now for now in instants if schedule.is_due(since, now)]


def test_nothing_is_dialled_during_an_election() -> None:
    schedule = RedialSchedule(half)
    assert not dials(schedule, NOW, NOW, PATIENCE - 0.1)
    assert not dials(schedule, inf, NOW + PATIENCE, 60)
    assert not dials(schedule, NOW + 80, NOW + 80, PATIENCE - 0.1), "each election has the patience"
    assert schedule.dials == 0


def test_the_distances_grow_to_half_a_minute() -> None:
    found = dials(RedialSchedule(half), NOW, NOW, 300)
    assert found[0] == pytest.approx(NOW + PATIENCE, abs=2 * STEP)
    distances = [later - earlier for earlier, later in pairwise(found)]
    assert distances[:7] == pytest.approx([0.5, 1, 2, 4, 8, 16, 30], abs=2 * STEP)
    assert distances[7:] == pytest.approx([REDIAL_BACKOFF.maximum] * len(distances[7:]), abs=2 * STEP)
    assert len(found) == 15


def test_clients_that_lose_the_same_member_dial_at_different_times() -> None:
    first = [dials(RedialSchedule(partial(float, chance)), NOW, NOW, 5)[0] for chance in (0.0, 0.5, 0.999)]
    assert first == pytest.approx([NOW + 2.0, NOW + 2.5, NOW + 3.0], abs=2 * STEP)


def test_a_late_look_leads_to_one_dial() -> None:
    schedule = RedialSchedule(half)
    assert schedule.is_due(NOW, NOW + 50)
    assert not schedule.is_due(NOW, NOW + 50)


def test_outages_one_after_the_other_are_dialled_for_less_and_less_often() -> None:
    """A member that serves for a moment whenever it is connected anew."""
    schedule = RedialSchedule(half)
    now, found = NOW, []
    while now < NOW + 200:
        [*due] = dials(schedule, now, now, 40)[:1]
        found += due
        now = due[0] + 0.1 if due else now + 40.1
    assert [later - earlier for earlier, later in pairwise(found)][-1] > 10


def test_after_calm_the_distances_are_short_again() -> None:
    schedule = RedialSchedule(half)
    dials(schedule, NOW, NOW, 300)
    begin = NOW + 300 + CALM
    assert [one - begin for one in dials(schedule, begin, begin, 5)] == pytest.approx([2.5, 3.0, 4.0], abs=0.1)


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 20)), max_size=40), st.floats(0, 0.999))
def test_whatever_happens_dials_are_few(outages: list[tuple[float, float]], chance: float) -> None:
    """Each outage has a length, and is followed by a time of service."""
    schedule = RedialSchedule(lambda: chance)
    now, found = NOW, []
    for length, served in outages:
        since = now
        while now < since + length:
            if schedule.is_due(since, now):
                found.append(now)
            now += 0.25
        now += served
    for earlier, later in pairwise(found):
        assert later - earlier >= REDIAL_BACKOFF.initial * (1 - REDIAL_BACKOFF.jitter)
    for index, begin in enumerate(found):  # in any minute
        assert sum(one < begin + CALM for one in found[index:]) <= 7
