"""Schedule: each tick is started at most once among all processes that have the same schedule.

Theory. `<name>/last` has the newest tick that was started, and only later ones are ever started. A start is one txn: if
`last` is as this process saw it (`mod_revision`), it becomes the tick, and the record `<name>/runs/<tick>` is put under
a lease of its own. That revision never comes back, so of all copies of all processes one is applied, however late the
others are, and also when the record is long gone. If an answer is lost, the lease of the record shows whose it is.

With `claim=True` a lock, `<name>/claim`, is held while a tick runs, and `<name>/open` has the tick until it has ended.
Who gets the lock and finds it, runs the tick again: its process has died. The version of the key counts the tries.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NoReturn, get_args

from etcd_aio import EtcdError, KeyLike
from etcd_aio.arguments import check_async_function, encode_key, finite_seconds, flag, one_of, to_bytes, whole_number
from etcd_aio.base import PATIENT, Pauses, log_for, when_constructed
from etcd_aio.calls import StoreCalls, check_store
from etcd_aio.concurrency import Lock
from etcd_aio.errors import InvalidRequestError, LeaseNotFoundError, LockLostError, NoSpaceError
from etcd_aio.recipes.schedule.runs import TAKES, ClaimingRun, Run, ScheduleSetting, Work
from etcd_aio.recipes.schedule.ticks import CatchUp, Computed, NextTick, Times, interval, tick_of
from etcd_aio.types import ValueLike, shown_key

logger: Final = logging.getLogger("etcd_aio.schedules")

DEFAULT_KEEP: Final = 86400
"""Seconds: a day, so that an operator sees what has run."""

_LONGEST_GRACE: Final = 1e12  # seconds: more than the calendar has


_PASSING: Final = (NoSpaceError, LeaseNotFoundError)
"""Errors that pass when an operator makes room, and with the lease of the next record; others would come again."""


class Schedule:
    """A schedule: `await Schedule(client, "report", every=3600).run(work)` in each process of a service.

    Every process waits for every tick, and one of them runs it. The time is that of the clocks of the processes: a
    clock that is ahead starts ticks early, and none is started twice by any clock.

    The keys are `<name>/last`, `<name>/runs/<tick>`, such as `report/runs/2030-01-31T12:00:00Z`, and with `claim=True`
    `<name>/open` and `<name>/claim/<lease>`. All processes must be given the same arguments.

    Args:
        client: the client, or a store that wraps one.
        name: its name.
        every: seconds from one tick to the next, or a `timedelta`; whole seconds. The ticks are counted from 1970, so
            3600 is every full hour in UTC.
        offset: seconds by which the ticks are later than that. Default: 0.
        next_tick: in place of `every`: a function that returns the first tick after a time, such as one of a library
            that knows crontabs. Both times are in UTC; a tick has whole seconds. It must tell all processes the same.
        catch_up: what becomes of ticks that were missed while no process ran, or etcd was out of reach: `"none"` leaves
            them out, `"last"` runs the last one, `"all"` runs all in order. What is before the very first call of `run`
            was not missed.
        grace: seconds for which a tick is not missed yet, unless the next one is due. Default: 60.
        keep: seconds for which the record of a tick is kept. Default: a day. No rule depends on it.
        claim: whether a tick is run again if its process dies, or its work raises an exception, until it has ended or
            was tried `max_tries` times. Then a tick may run more than once, and the next one begins only after its end.
        ttl: seconds until the ticks of a process that has crashed are run by another one, with `claim=True`. Default:
            10, as of locks.
        max_tries: how often a tick is begun at most, with `claim=True`. Default: 5.
        value: the value of the records, such as the name of the host. Default: empty.
        clock: returns the time in seconds since 1970. Default: `time.time`.

    Raises:
        InvalidRequestError, EmptyKeyError, TypeError: an argument is invalid.
    """

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        *,
        every: float | timedelta | None = None,
        offset: float | timedelta = 0,
        next_tick: NextTick | None = None,
        catch_up: CatchUp = "none",
        grace: float = 60.0,
        keep: int = DEFAULT_KEEP,
        claim: bool = False,
        ttl: int = 10,
        max_tries: int = 5,
        value: ValueLike = b"",
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_store(client)
        one_of(get_args(CatchUp), catch_up, "catch_up")
        encoded = encode_key(name, "name")
        if encoded.endswith(b"/"):
            raise InvalidRequestError(f"name must not end with a slash, which is added: got {shown_key(encoded)}")
        what = to_bytes(value, "value")
        ttl = whole_number(ttl, "ttl", minimum=1)
        source = client.leases.pool

        def new_lock() -> Lock:
            return Lock(client, source, encoded + b"/claim", ttl=ttl, value=what)

        self._log = log_for(logger, client)
        self._setting = ScheduleSetting(
            store=client,
            log=self._log,
            what=f"schedule {shown_key(encoded)[1:]}",
            last_key=encoded + b"/last",
            open_key=encoded + b"/open",
            runs=encoded + b"/runs/",
            times=_times(every, offset, next_tick),
            catch_up=catch_up,
            grace=timedelta(seconds=min(finite_seconds(grace, "grace"), _LONGEST_GRACE)),
            keep=whole_number(keep, "keep", minimum=1),
            max_tries=whole_number(max_tries, "max_tries", minimum=1),
            value=what,
            clock=clock,
            new_lock=new_lock,
            source=source,
        )
        self._claims = flag(claim, "claim")

    @when_constructed
    def __repr__(self) -> str:
        return f"<Schedule {self._setting.what.partition(' ')[2]}>"

    async def last(self) -> datetime | None:
        """The newest tick that was started, by one linearizable read; None if `run` was never called.

        At first it is the time of the first call of `run`.

        Raises:
            ScheduleError: the key has no tick.
            EtcdError: as every read.
        """
        kv = await self._setting.store.get(self._setting.last_key)
        return None if kv is None else tick_of(kv.value)

    async def run(self, work: Work) -> NoReturn:
        """Wait for ticks, and run those that this process has started. It runs until it is cancelled, or fails.

        One call runs one tick at a time. If the work takes until after the next tick, another process runs that; if
        there is none, it is started when the work has ended, or is missed.

        With `claim=True` the work is cancelled if the lock is lost, before another process begins it again, and this
        one waits for the next tick.

        An outage of etcd is waited for, and so is a full store; this is logged.

        Args:
            work: what is run; it gets the `Tick`.

        Raises:
            TypeError: `work` is not a function.
            Exception: what `work` has raised. The tick is not run again; with `claim=True` another process runs it.
            ScheduleError: a key of the schedule has no tick, or `next_tick` returns none.
            EtcdError: an error that would come again, such as a denied permission, or a closed client.

        Cancellation: the work is cancelled. If it falls between the start of a tick and its work, no process runs that;
        with `claim=True` another one runs it.
        """
        check_async_function(work, TAKES)
        run = (ClaimingRun if self._claims else Run)(self._setting, work)
        pauses = Pauses(PATIENT)
        try:
            while True:
                try:
                    failure = await run.step()
                except LockLostError as error:
                    self._log.warning("%s: a tick is left to another process: %s", self._setting.what, error)
                    await pauses.wait()
                except EtcdError as error:
                    if not (error.retryable or isinstance(error, _PASSING)):
                        raise
                    text = "%s: its state could not be read or changed; this is tried again: %s"
                    self._log.warning(text, self._setting.what, error)
                    await pauses.wait()
                else:
                    pauses.reset()
                    if failure is not None:
                        raise failure
        finally:
            run.revoke()


def _times(every: float | timedelta | None, offset: float | timedelta, next_tick: NextTick | None) -> Times:
    if (every is None) == (next_tick is None):
        raise InvalidRequestError("give one of every= and next_tick=")
    if every is not None:
        return interval(every, offset)
    if offset:
        raise InvalidRequestError("offset= belongs to every=")
    if not callable(next_tick):
        raise TypeError(f"next_tick must be a function, got {type(next_tick).__name__}")
    return Computed(next_tick)
