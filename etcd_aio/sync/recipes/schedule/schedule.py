"""Schedule, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.recipes.schedule.schedule`: do not edit.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import ClassVar, NoReturn

from etcd_aio.arguments import KeyLike, ValueLike
from etcd_aio.portal import Facade, in_caller
from etcd_aio.recipes import CatchUp, NextTick, Tick
from etcd_aio.recipes import Schedule as AsyncSchedule
from etcd_aio.sync.calls.store_calls import StoreCalls


class Schedule(Facade):
    """A schedule: `Schedule(client, "report", every=3600).run(work)` in each process of a service.

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

    _survives_fork: ClassVar[bool] = True

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
        keep: int = 86400,
        claim: bool = False,
        ttl: int = 10,
        max_tries: int = 5,
        value: ValueLike = b"",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._construct(
            AsyncSchedule,
            client,
            name,
            every=every,
            offset=offset,
            next_tick=next_tick,
            catch_up=catch_up,
            grace=grace,
            keep=keep,
            claim=claim,
            ttl=ttl,
            max_tries=max_tries,
            value=value,
            clock=clock,
        )

    def last(self) -> datetime | None:
        """The newest tick that was started, by one linearizable read; None if `run` was never called.

        At first it is the time of the first call of `run`.

        Raises:
            ScheduleError: the key has no tick.
            EtcdError: as every read.
        """
        return self._run(self._aio.last)

    def run(self, work: Callable[[Tick], object]) -> NoReturn:
        """Wait for ticks, and run those that this process has started. It runs until Ctrl-C, or until it fails.

        One call runs one tick at a time. If the work takes until after the next tick, another process runs that; if
        there is none, it is started when the work has ended, or is missed.

        With `claim=True` another process begins the work again if the lock is lost: let it write what must not happen
        twice by a txn with the condition of the `Tick`. This one waits for the next tick.

        An outage of etcd is waited for, and so is a full store; this is logged.

        Args:
            work: what is run; it gets the `Tick`.

        Raises:
            TypeError: `work` is not a function.
            Exception: what `work` has raised. The tick is not run again; with `claim=True` another process runs it.
            ScheduleError: a key of the schedule has no tick, or `next_tick` returns none.
            EtcdError: an error that would come again, such as a denied permission, or a closed client.

        Ctrl-C: the work ends. If it falls between the start of a tick and its work, no process runs that; with
        `claim=True` another one runs it.
        """
        self._run(self._aio.run, in_caller(work))
        raise AssertionError("it ends by an exception")
