"""balancer/renewal_schedule.py: dials come before the end and after a change, not in step, and not too often."""

from itertools import pairwise
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.balancer.renewal_schedule import LEAST, LONGEST, MARGIN, RENEWAL_BACKOFF, SPREAD, RenewalSchedule

WALL = 1_800_000_000.0
NOW = 100.0
DAY = 86400.0


def dials(left: float, seconds: float, *, chance: float = 0.0, is_current: bool = True) -> list[float]:
    """When dials in vain are due, in seconds from now, for a certificate with so many seconds left."""
    schedule = RenewalSchedule(WALL + left, WALL, lambda: chance)
    found: list[float] = []
    passed = 0.0
    while True:
        due = schedule.due(is_current, WALL + left, NOW + passed, WALL + passed) - NOW
        passed = max(due, passed)
        if passed > seconds or len(found) > 10_000:
            return found
        found.append(passed)
        schedule.in_vain(NOW + passed, WALL + passed)


@pytest.mark.parametrize(
    ("left", "chance", "due"),
    [
        (20.0, 0.0, 15.0),
        (20.0, 0.999, 12.5),
        (2 * 3600.0, 0.0, 1.5 * 3600),
        (90 * DAY, 0.0, 90 * DAY - MARGIN),
        (90 * DAY, 0.999, 90 * DAY - 1.5 * MARGIN),
        (5.0, 0.0, 3.75),
        (0.2, 0.0, LEAST),
        (0.0, 0.0, LEAST),
        (-1.0, 0.0, LEAST),
        (-60.0, 0.0, 30.0),
        (-DAY, 0.0, LONGEST),
        (inf, 0.0, inf),
    ],
)
def test_the_first_dial_comes_a_quarter_before_the_end_but_at_most_an_hour(
    left: float, chance: float, due: float
) -> None:
    schedule = RenewalSchedule(WALL + left, WALL, lambda: chance)
    assert schedule.due(True, WALL + left, NOW, WALL) - NOW == pytest.approx(due, abs=0.01 + 0.001 * MARGIN * chance)


def test_dials_in_vain_become_more_frequent_up_to_the_end_and_less_afterwards() -> None:
    before = [when for when in dials(90 * DAY, 92 * DAY) if when < 90 * DAY]
    after = [when for when in dials(90 * DAY, 92 * DAY) if when >= 90 * DAY]
    left = [90 * DAY - when for when in before]
    assert left[:5] == pytest.approx([3600, 900, 225, 56.25, 14.06], abs=0.1)
    assert len(before) < 10
    distances = [later - earlier for earlier, later in pairwise(after)]
    assert distances == pytest.approx(sorted(distances), abs=0.01), "less and less often"
    assert distances[-1] == pytest.approx(LONGEST)
    assert len(after) < 20 + 2 * DAY / LONGEST


def test_a_change_of_the_files_is_followed_within_the_spread_then_after_growing_waits() -> None:
    found = dials(inf, 400, chance=0.5, is_current=False)
    assert found[0] == SPREAD / 2
    distances = [later - earlier for earlier, later in pairwise(found)]
    assert distances[:6] == pytest.approx([1.5, 3, 6, 12, 24, 48])
    assert set(distances[6:]) == {RENEWAL_BACKOFF.maximum}


def test_a_change_does_not_put_off_what_is_due_before() -> None:
    """Short-lived files may change all the time."""
    schedule = RenewalSchedule(WALL + 8, WALL, lambda: 0.9)
    assert schedule.due(False, WALL + 8, NOW, WALL) - NOW < 8 * 0.75
    first = schedule.due(False, WALL + 8, NOW + 1, WALL + 1)
    assert schedule.due(False, WALL + 8, NOW + 2, WALL + 2) == pytest.approx(first)


def test_a_clock_that_is_set_is_believed() -> None:
    schedule = RenewalSchedule(WALL + DAY, WALL, lambda: 0.0)
    assert schedule.due(True, WALL + DAY, NOW, WALL + 2 * DAY) < NOW, "it has expired"
    schedule.in_vain(NOW, WALL + 2 * DAY)
    assert schedule.due(True, WALL + DAY, NOW, WALL + 2 * DAY) == NOW + LONGEST
    assert schedule.due(True, WALL + DAY, NOW, WALL) > NOW + DAY, "it has not"


def test_a_further_socket_with_an_earlier_end() -> None:
    """Those of the gateway are dialled one by one."""
    schedule = RenewalSchedule(inf, WALL, lambda: 0.0)
    assert schedule.due(True, inf, NOW, WALL) == inf
    assert schedule.due(True, WALL + 40, NOW, WALL) == NOW + 30


def test_a_thousand_clients_do_not_dial_in_step() -> None:
    """Their files change at the same instant, and so does the end of their certificates come."""
    source = Random(7)
    for is_current, window in ((False, SPREAD), (True, MARGIN / 2)):
        schedules = [RenewalSchedule(WALL + 90 * DAY, WALL, source.random) for _ in range(1000)]
        due = sorted(one.due(is_current, WALL + 90 * DAY, NOW, WALL) for one in schedules)
        assert due[-1] - due[0] > 0.9 * window
        tenths = [sum(low <= (when - due[0]) / window * 10 < low + 1 for when in due) for low in range(10)]
        assert max(tenths) < 150, "about a hundred in each tenth"


@given(
    left=st.floats(-1e6, 1e5),
    chance=st.floats(0, 0.999),
    is_current=st.booleans(),
)
def test_between_two_dials_there_is_always_a_second(left: float, chance: float, is_current: bool) -> None:
    found = dials(left, max(left, 0) + 600, chance=chance, is_current=is_current)
    assert all(later - earlier > 0.99 * LEAST for earlier, later in pairwise(found))
    assert len(found) < 40 + (max(left, 0) + 600) / 40
    if left > 4 * LEAST and is_current:
        assert found[0] < left, "before the end"
