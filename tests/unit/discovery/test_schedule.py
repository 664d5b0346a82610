"""discovery/schedule.py: questions at the TTL, after failures, and without a connection."""

import pytest

from etcd_aio.discovery.schedule import Schedule, before_ttl


def half() -> float:
    return 0.5


@pytest.mark.parametrize(("random", "seconds"), [(0.0, 60.0), (0.5, 54.0), (1.0, 48.0)])
def test_a_question_is_within_the_ttl_and_earlier_by_chance(random: float, seconds: float) -> None:
    assert before_ttl(60.0, 5.0, 3600.0, lambda: random) == seconds


def test_short_and_endless_ttls_have_limits() -> None:
    assert before_ttl(0.0, 5.0, 3600.0, lambda: 0.0) == 5.0
    assert before_ttl(float("inf"), 5.0, 3600.0, lambda: 0.0) == 3600.0


def test_failures_have_growing_waits_up_to_the_schedule() -> None:
    schedule = Schedule(0.0, half)
    waits = []
    for _ in range(9):
        schedule.failed(100.0, 60.0)
        waits.append(schedule.due - 100.0)
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    schedule.failed(100.0, 6.0)
    assert schedule.due == 106.0
    schedule.answered(100.0, 60.0)
    assert schedule.due == 160.0
    schedule.failed(100.0, 60.0)
    assert schedule.due == 100.5


def test_without_a_connection_questions_come_soon_and_grow_apart() -> None:
    schedule = Schedule(0.0, half)
    schedule.answered(0.0, 3000.0)
    asked = []
    now = 10.0
    while now < 100.0:
        schedule.note_outage(now)
        schedule.note_outage(now + 0.5)  # again: nothing changes
        now = schedule.due
        asked.append(now - 10.0)
        schedule.answered(now, 3000.0)
    assert asked[:6] == [1, 3, 7, 15, 30, 45]
    schedule.note_connected()
    assert schedule.due == now + 3000.0
    schedule.note_outage(now)
    assert schedule.due == now + 1.0
