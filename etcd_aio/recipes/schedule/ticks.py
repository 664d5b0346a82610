"""Ticks: the times of a schedule, and which of them is to be started now. Pure.

All times are whole seconds in UTC, so that their text has the same order as they have. The newest tick that was started
is known; only later ones are ever started. A tick is missed if it was not started within some seconds of its time, or
if the next one is due already; what becomes of missed ticks is the choice of the schedule.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

from etcd_aio.arguments import finite_seconds
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import InvalidRequestError, ScheduleError

NextTick: TypeAlias = Callable[[datetime], datetime]
"""A function that returns the first tick after a time. Both have UTC as their time zone; a tick has whole seconds."""

CatchUp: TypeAlias = Literal["none", "last", "all"]
"""The treatment of missed ticks: none of them is started, or the last one, or all in order."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_FORMAT: Final = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Interval:
    """Ticks at equal distances, counted from 1970, so that all processes have the same.

    Attributes:
        every: the distance.
        offset: of the first one from the beginning of 1970.
    """

    every: timedelta
    offset: timedelta

    def after(self, instant: datetime) -> datetime:
        """The first tick after an instant."""
        try:
            return self._at_or_before(instant) + self.every
        except OverflowError:
            raise ScheduleError("there is no tick before the end of the calendar") from None

    def newest(self, after: datetime, until: datetime) -> datetime | None:
        """The last tick after one instant, and at or before another one; None if there is none."""
        found = self._at_or_before(until)
        return found if found > after else None

    def _at_or_before(self, instant: datetime) -> datetime:
        return instant - (instant - _EPOCH - self.offset) % self.every


@dataclass(frozen=True, slots=True)
class Computed:
    """Ticks that a function of the application computes."""

    function: NextTick

    def after(self, instant: datetime) -> datetime:
        """The first tick after an instant.

        Raises:
            ScheduleError: the function returns no tick after the instant.
        """
        tick = self.function(instant)
        if not isinstance(tick, datetime) or tick.utcoffset() is None:
            raise ScheduleError("next_tick must return a datetime with a time zone")
        tick = tick.astimezone(UTC)
        if tick <= instant or tick.microsecond:
            raise ScheduleError("next_tick must return a later time, with whole seconds")
        return tick

    def newest(self, after: datetime, until: datetime) -> datetime | None:
        """See `Interval.newest`. Few calls of the function, however many ticks there are."""
        width = _SECOND
        while (begin := max(after, until - width)) > after and self.after(begin) > until:
            width *= 4
        found = None
        while (tick := self.after(begin)) <= until:
            found = begin = tick
        return found


Times: TypeAlias = Interval | Computed
"""The ticks of a schedule."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The next action of a process.

    Attributes:
        start: the tick to start now; None if there is none.
        wake: when the next one is due.
    """

    start: datetime | None
    wake: datetime


def plan(times: Times, last: datetime, now: datetime, grace: timedelta, catch_up: CatchUp) -> Plan:
    """Decide what to do after the newest tick that was started. A tick is not missed in its time of grace."""
    if now <= last:
        return Plan(None, times.after(last))
    if catch_up == "all":
        tick = times.after(last)
        return Plan(tick if tick <= now else None, tick)
    oldest = last
    if catch_up == "none" and now - last > grace:
        oldest = now - grace - timedelta(microseconds=1)
    return Plan(times.newest(oldest, now), times.after(now))


def interval(every: float | timedelta, offset: float | timedelta) -> Interval:
    """Ticks at equal distances.

    Raises:
        InvalidRequestError, TypeError: `every` or `offset` is not a number of whole seconds.
    """
    found = Interval(_seconds(every, "every"), _seconds(offset, "offset"))
    if found.every < _SECOND:
        raise InvalidRequestError("every must be 1 second or more")
    return found


def _seconds(given: float | timedelta, what: str) -> timedelta:
    seconds = finite_seconds(given.total_seconds() if isinstance(given, timedelta) else given, what)
    if seconds % 1:
        raise InvalidRequestError(f"{what} must be whole seconds, got {seconds}")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise InvalidRequestError(f"{what} is too long") from None


def text_of(tick: datetime) -> str:
    """The text of a tick: ISO 8601, in UTC."""
    return tick.strftime(_FORMAT)


def tick_of(text: bytes) -> datetime:
    """The tick that a text is of.

    Raises:
        ScheduleError: it is not the text of a tick.
    """
    try:
        return datetime.strptime(text.decode("ascii"), _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        pass
    raise ScheduleError("the key of the schedule has a value that is not a tick")


def instant_of(seconds: float) -> datetime:
    """The time of a clock that counts from 1970.

    Raises:
        ScheduleError: the calendar has no such time.
    """
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise ScheduleError(f"the clock has no time of the calendar: {seconds!r}") from None
