"""Suspension: how long this machine has slept, which the clock of the event loop does not count.

The loop's timers and `loop.time()` run on CLOCK_MONOTONIC, which stops while the machine is suspended. Linux has a
clock that counts the sleep too, CLOCK_BOOTTIME; the difference between the two is how long the machine has slept.

A loop with a clock of its own, such as `etcd_aio.fake.time.VirtualTimeLoop`, tells by `suspended_seconds()` what its
clock has not counted; the machine's clocks mean nothing there. All functions are thread-safe.
"""

import asyncio
import time
from typing import Final, Protocol, cast

IS_KNOWN: Final = hasattr(time, "CLOCK_BOOTTIME")
"""Whether this system reports how long it was suspended."""


class _OwnClock(Protocol):
    """A loop with a clock of its own."""

    def time(self) -> float: ...
    def suspended_seconds(self) -> float: ...


def suspended_seconds() -> float:
    """Return the seconds this machine was suspended since it started; 0 on systems that do not report it."""
    own = _own_clock()
    if own is not None:
        return own.suspended_seconds()
    if not IS_KNOWN:
        return 0.0
    # In this order: a delay between the two makes a lease seem older than it is, never younger.
    awake = time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - awake


def now() -> float:
    """Return the time, in seconds, of a clock that goes on while this machine is suspended, if it has one.

    It is exact, where the clock of a loop may stand still while a callback runs, as that of uvloop does.
    """
    own = _own_clock()
    if own is not None:
        return own.time() + own.suspended_seconds()
    return time.clock_gettime(time.CLOCK_BOOTTIME) if IS_KNOWN else time.monotonic()


def _own_clock() -> _OwnClock | None:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # in a thread without a loop
        return None
    return cast("_OwnClock", loop) if hasattr(loop, "suspended_seconds") else None
