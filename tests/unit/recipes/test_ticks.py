"""recipes/schedule/ticks.py: which one is started now, and what becomes of missed ones."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from etcd_aio import InvalidRequestError
from etcd_aio.errors import ScheduleError
from etcd_aio.recipes.schedule.ticks import Computed, Plan, Times, interval, plan, text_of, tick_of

MIDNIGHT = datetime(2030, 1, 1, tzinfo=UTC)


def at(text: str) -> datetime:
    hours, minutes, seconds = map(float, text.split(":"))
    return MIDNIGHT + timedelta(hours=hours, minutes=minutes, seconds=seconds)


def next_hour(after: datetime) -> datetime:
    return after.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


@pytest.mark.parametrize("times", [interval(3600, 0), Computed(next_hour)], ids=["every", "function"])
@pytest.mark.parametrize(
    ("catch_up", "last", "now", "start", "wake"),
    [
        # Nothing is due.
        ("none", "3:00:00", "3:59:59.9", None, "4:00:00"),
        ("last", "3:00:00", "3:59:59.9", None, "4:00:00"),
        ("all", "3:00:00", "3:59:59.9", None, "4:00:00"),
        # In time.
        ("none", "3:00:00", "4:00:00", "4:00:00", "5:00:00"),
        ("last", "3:00:00", "4:00:00", "4:00:00", "5:00:00"),
        ("all", "3:00:00", "4:00:00", "4:00:00", "4:00:00"),
        # Late, but not missed; and missed.
        ("none", "3:00:00", "4:01:00", "4:00:00", "5:00:00"),
        ("none", "3:00:00", "4:01:01", None, "5:00:00"),
        ("last", "3:00:00", "4:01:01", "4:00:00", "5:00:00"),
        # Several are missed.
        ("none", "3:00:00", "9:30:00", None, "10:00:00"),
        ("last", "3:00:00", "9:30:00", "9:00:00", "10:00:00"),
        ("all", "3:00:00", "9:30:00", "4:00:00", "4:00:00"),
        # The newest is in time, and earlier ones are missed.
        ("none", "3:00:00", "9:00:05", "9:00:00", "10:00:00"),
        ("last", "3:00:00", "9:00:05", "9:00:00", "10:00:00"),
        # A clock ahead has started ticks already.
        ("none", "7:00:00", "4:00:00", None, "8:00:00"),
        ("all", "7:00:00", "4:00:00", None, "8:00:00"),
        # The first call of `run` was no tick.
        ("all", "3:12:34", "4:00:01", "4:00:00", "4:00:00"),
    ],
)
def test_what_is_started(times: Times, catch_up: Any, last: str, now: str, start: str | None, wake: str) -> None:
    found = plan(times, at(last), at(now), timedelta(seconds=60), catch_up)
    assert found.start == (None if start is None else at(start))
    assert found.wake == at(wake)
    assert isinstance(found, Plan)


def test_an_offset_moves_the_ticks() -> None:
    times = interval(timedelta(days=1), timedelta(hours=3))
    assert times.after(at("2:59:59")) == at("3:00:00")
    assert times.after(at("3:00:00")) == at("27:00:00")
    assert times.newest(at("0:00:00"), at("2:00:00")) is None
    assert times.newest(at("0:00:00"), at("5:00:00")) == at("3:00:00")


def test_a_long_outage_takes_few_calls_of_the_function() -> None:
    calls = 0

    def next_minute(after: datetime) -> datetime:
        nonlocal calls
        calls += 1
        return after.replace(second=0, microsecond=0) + timedelta(minutes=1)

    now = at("0:00:30") + timedelta(days=3650)
    assert Computed(next_minute).newest(MIDNIGHT, now) == now - timedelta(seconds=30)
    assert calls < 20


def test_other_zones_are_taken_as_utc() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    times = Computed(lambda after: next_hour(after).astimezone(zone))
    assert times.after(at("3:00:00")) == at("4:00:00")
    assert times.after(at("3:00:00")).tzinfo is UTC


@pytest.mark.parametrize(
    "wrong",
    [
        lambda after: after,
        lambda after: after - timedelta(seconds=5),
        lambda after: after + timedelta(seconds=0.5),
        lambda after: (after + timedelta(seconds=1)).replace(tzinfo=None),
        lambda after: None,
    ],
)
def test_a_function_that_tells_no_tick(wrong: Any) -> None:
    with pytest.raises(ScheduleError):
        Computed(wrong).after(MIDNIGHT)


@pytest.mark.parametrize(
    ("every", "offset", "error"),
    [
        (0, 0, InvalidRequestError),
        (1.5, 0, InvalidRequestError),
        (-5, 0, InvalidRequestError),
        (60, -1, InvalidRequestError),
        (float("nan"), 0, InvalidRequestError),
        (1e300, 0, InvalidRequestError),
        ("60", 0, TypeError),
        (timedelta(seconds=-5), 0, InvalidRequestError),
        (60, timedelta(microseconds=1), InvalidRequestError),
    ],
)
def test_bad_intervals(every: Any, offset: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        interval(every, offset)


def test_the_text_of_ticks_sorts_as_they_do() -> None:
    ticks = [at("0:00:00") + timedelta(seconds=number * 12345) for number in range(1000)]
    texts = [text_of(tick) for tick in ticks]
    assert texts == sorted(texts)
    assert [tick_of(text.encode()) for text in texts] == ticks
    assert text_of(at("12:34:56")) == "2030-01-01T12:34:56Z"
    for wrong in (b"", b"2030-01-01", b"\xff", b"2030-01-01T12:34:56"):
        with pytest.raises(ScheduleError):
            tick_of(wrong)
