"""Runs: the starts and the ends of a schedule's ticks, as txns; see `schedule.py` for why they hold.

`Run` starts each tick at most once, and `ClaimingRun` runs it until it has ended.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from etcd_aio import Compare, EtcdError, Key, KeyValue, op
from etcd_aio.arguments import check_awaitable
from etcd_aio.base import SOON, Log, Pauses
from etcd_aio.calls import StoreCalls
from etcd_aio.concurrency import Lock
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import LeaseExistsError, LeaseNotFoundError, LockLostError
from etcd_aio.lease import LeaseSource
from etcd_aio.recipes.schedule.ticks import CatchUp, Plan, Times, instant_of, plan, text_of, tick_of

TAKES: Final = "run() takes an async function of a Tick"

_LONGEST_SLEEP: Final = 60.0  # seconds; then the clock is read again, which may have been set
_SHORTEST_SLEEP: Final = 0.001  # a timer may end a little early by the clock
_REVOKE_SECONDS: Final = 2.0  # twice etcd's default election timeout
_AHEAD: Final = timedelta(minutes=1)  # clocks that differ by more are wrong


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick that this process runs.

    Attributes:
        time: of the tick, in UTC; it may be run later.
        key: the key of its record.
        tries: how often it was begun, with this time: 1, or more with `claim=True`.
        fencing_token: a number that grows from one run to the next, of all processes: the revision of its beginning.
    """

    time: datetime
    key: bytes
    tries: int
    fencing_token: int
    _marker: bytes

    def newest_condition(self) -> Compare:
        """The condition that no other run has begun since, for txns of the application.

        With `claim=True` it also fails once the tick has ended.
        """
        return Key(self._marker).mod_revision == self.fencing_token


Work: TypeAlias = Callable[[Tick], Awaitable[object]]
"""A function that runs at each tick."""


@dataclass(frozen=True, slots=True)
class ScheduleSetting:
    """The arguments of a `Schedule`, and what follows from them.

    Attributes:
        what: the schedule, for logs.
        last_key: has the newest tick that was started.
        open_key: has the tick that has not ended.
        runs: the prefix of the records.
        new_lock: makes the lock of a tick that is claimed.
        source: lends the lease of that lock; it is over when the client is closed.
    """

    store: StoreCalls
    log: Log
    what: str
    last_key: bytes
    open_key: bytes
    runs: bytes
    times: Times
    catch_up: CatchUp
    grace: timedelta
    keep: int
    max_tries: int
    value: bytes
    clock: Callable[[], float]
    new_lock: Callable[[], Lock]
    source: LeaseSource


@dataclass(frozen=True, slots=True)
class _ScheduleState:
    """The keys of a schedule, as they were read.

    Attributes:
        last: the newest tick that was started.
        revision: of its key; every start changes it.
        open: the key of the tick that has not ended; None if there is none.
        records: those of the ticks in doubt; None for one that is not there.
    """

    last: datetime
    revision: int
    open: KeyValue | None = None
    records: tuple[KeyValue | None, ...] = ()


class Run:
    """One call of `Schedule.run`."""

    def __init__(self, setting: ScheduleSetting, work: Work) -> None:
        self._setting = setting
        self._store = setting.store
        self._work = work
        self._lease = 0  # of the record of the next start
        self._in_doubt: dict[bytes, datetime] = {}  # ticks by records, whose starts were not answered
        self._guard = 0  # the revision that they depend on
        self._is_behind = False

    async def step(self) -> Exception | None:
        """Run a tick, or wait until one may be due.

        Returns the exception of the work, which must not be taken for one of a call to etcd.

        Raises:
            EtcdError: as every txn.
        """
        state = await self._look()
        tick = self._found(state.records, state.revision)
        if tick is None:
            planned = self._plan(state)
            if planned.start is None:
                await self._sleep(planned)
                return None
            tick = await self._start(state, planned.start)
        return None if tick is None else await self._run(tick)

    async def _run(self, tick: Tick) -> Exception | None:
        try:
            made = self._work(tick)
            check_awaitable(made, TAKES)
            await made
        except Exception as error:  # of the application's work, which the caller of `run` must see
            return error
        return None

    # The state.

    async def _look(self) -> _ScheduleState:
        """Read the state; begin the schedule, if that was not done yet."""
        setting = self._setting
        while True:
            state = await self._read()
            if state is not None:
                return state
            # Nothing that is due by now was missed.
            begin = op.put(setting.last_key, text_of(self._now().replace(microsecond=0)))
            await self._store.do(op.txn(when=[Key(setting.last_key).missing], then=[begin]), retry="safe")

    async def _read(self) -> _ScheduleState | None:
        last = op.get(self._setting.last_key)
        if not self._in_doubt:
            kv = await self._store.do(last)
            return None if kv is None else _ScheduleState(tick_of(kv.value), kv.mod_revision)
        records = [op.get(key) for key in self._in_doubt]
        found = await self._store.do(op.txn(then=[last, *records]))
        kv, present = found[last], tuple(found[record] for record in records)
        return None if kv is None else _ScheduleState(tick_of(kv.value), kv.mod_revision, records=present)

    def _now(self) -> datetime:
        return instant_of(self._setting.clock())

    def _plan(self, state: _ScheduleState) -> Plan:
        setting = self._setting
        now = self._now()
        was_behind, self._is_behind = self._is_behind, state.last > now + _AHEAD
        if self._is_behind and not was_behind:
            text = "%s: the newest tick is %d s ahead of this clock, and none is started before it"
            setting.log.warning(text, setting.what, (state.last - now).total_seconds())
        return plan(setting.times, state.last, now, setting.grace, setting.catch_up)

    async def _sleep(self, planned: Plan) -> None:
        """Wait until a tick is due, or something may have changed, or the client is closed, as the next call finds."""
        while not self._setting.source.over.is_set():
            left = (planned.wake - self._now()).total_seconds()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(max(left, _SHORTEST_SLEEP), _LONGEST_SLEEP)):
                    await self._setting.source.over.wait()
            if left <= _LONGEST_SLEEP or self._looks_often():
                return

    def _looks_often(self) -> bool:
        """Whether the state may change before the clock reaches the next tick."""
        return bool(self._in_doubt)

    # Starts.

    async def _start(self, state: _ScheduleState, start: datetime) -> Tick | None:
        """Start a tick, unless another process does, or has done so."""
        setting = self._setting
        if not self._lease:
            await self._grant()
        text = text_of(start)
        key = setting.runs + text.encode()
        self._in_doubt[key] = start
        self._guard = state.revision
        records = [op.get(one) for one in self._in_doubt]
        txn = op.txn(
            when=[Key(setting.last_key).mod_revision == state.revision],
            then=[op.put(setting.last_key, text), op.put(key, setting.value, lease=self._lease)],
            otherwise=records,
        )
        try:
            # Repeated until it is answered: of all copies of all starts that depend on a revision one is applied.
            result = await self._store.do(txn, retry="always")
        except LeaseNotFoundError:  # the record of an earlier copy is gone with it, and so is the proof of whose it was
            self._settle()
            return None
        if result.succeeded:
            self._lease = 0  # the record keeps it
            self._settle()
            return Tick(start, key, 1, result.revision, setting.last_key)
        return self._found([result[record] for record in records], 0)

    def _found(self, records: Iterable[KeyValue | None], revision: int) -> Tick | None:
        """The tick in doubt that this process has started after all.

        Args:
            records: those of ticks in doubt.
            revision: of the key that the starts depend on. If it has changed, no copy of them is applied any more.
        """
        for record in records:
            if record is not None and record.lease == self._lease and record.key in self._in_doubt:
                tick = Tick(self._in_doubt[record.key], record.key, 1, record.mod_revision, self._setting.last_key)
                self._lease = 0  # the record keeps it
                self._settle()
                return tick
        if self._guard != revision:
            self._settle()
        return None

    async def _grant(self) -> None:
        """Grant the lease of the next record. Its id is drawn here, so it can be revoked if the answer is lost."""
        self._lease = secrets.randbits(63) | 1
        try:
            await self._store.leases.grant(self._setting.keep, self._lease)
        except LeaseExistsError:  # an earlier attempt of this call has granted it
            pass
        except BaseException:  # a cancellation too
            self.revoke()
            raise

    def _settle(self) -> None:
        self._in_doubt.clear()
        self.revoke()

    def revoke(self) -> None:
        """Give back the lease, if no record that is known has it: a late copy of a start is refused then."""
        lease, self._lease = self._lease, 0
        if lease:
            self._setting.source.run(self._revoke_now(lease), f"end of a lease of {self._setting.what}")

    async def _revoke_now(self, lease: int) -> None:
        with suppress(Exception):  # it ends by its TTL
            await self._store.leases.revoke(lease, timeout=_REVOKE_SECONDS)


class ClaimingRun(Run):
    """One call of `Schedule.run` with `claim=True`."""

    async def step(self) -> Exception | None:
        """See `Run.step`. Also raises LockLostError, when the work was cancelled."""
        state = await self._look()
        if state.open is None:
            planned = self._plan(state)
            if planned.start is None:
                await self._sleep(planned)
                return None
        failure = None
        async with self._setting.new_lock() as lock:  # while another process holds it, this one stands by
            tick = await self._begin(lock, await self._look())
            if tick is not None:
                failure = await self._run(tick)
                if failure is None:
                    await self._close(lock, tick.fencing_token)
        return failure

    def _looks_often(self) -> bool:
        return True  # a tick may have begun after the state was read here, and may lose its process

    async def _read(self) -> _ScheduleState | None:
        last, opened = op.get(self._setting.last_key), op.get(self._setting.open_key)
        found = await self._store.do(op.txn(then=[last, opened]))
        kv = found[last]
        return None if kv is None else _ScheduleState(tick_of(kv.value), kv.mod_revision, found[opened])

    async def _begin(self, lock: Lock, state: _ScheduleState) -> Tick | None:
        """Begin the tick that has not ended, or the one that is due."""
        if state.open is not None:
            return await self._begin_again(lock, state.open)
        setting = self._setting
        start = self._plan(state).start
        if start is None:
            return None
        await self._grant()
        text = text_of(start)
        key = setting.runs + text.encode()
        try:
            txn = lock.fenced.txn().when(Key(setting.last_key).mod_revision == state.revision)
            record = op.put(key, setting.value, lease=self._lease)
            result = await txn.then(op.put(setting.last_key, text), op.put(setting.open_key, text), record).commit()
            if result.succeeded:
                self._lease = 0  # the record keeps it
        finally:
            self.revoke()
        return Tick(start, key, 1, result.revision, setting.open_key) if result.succeeded else None

    async def _begin_again(self, lock: Lock, opened: KeyValue) -> Tick | None:
        """The process that has begun this tick is dead, or its work has failed."""
        setting = self._setting
        time = tick_of(opened.value)
        if opened.version >= setting.max_tries:
            text = "%s: the tick %s was begun %d times without an end, and is given up"
            setting.log.warning(text, setting.what, text_of(time), opened.version)
            await self._close(lock, opened.mod_revision)
            return None
        unchanged = Key(setting.open_key).mod_revision == opened.mod_revision
        result = await lock.fenced.txn().when(unchanged).then(op.put(setting.open_key, opened.value)).commit()
        if not result.succeeded:
            return None
        key = setting.runs + opened.value
        return Tick(time, key, opened.version + 1, result.revision, setting.open_key)

    async def _close(self, lock: Lock, revision: int) -> None:
        """The tick has ended: say so until that is answered, or the lock is lost."""
        unchanged = Key(self._setting.open_key).mod_revision == revision
        pauses = Pauses(SOON)
        while True:
            try:
                ending = lock.fenced.txn().when(unchanged).then(op.delete(self._setting.open_key))
                await ending.commit(retry="always")
            except LockLostError:
                raise
            except EtcdError as error:
                if not error.retryable:
                    raise
                await pauses.wait()
            else:
                return
