"""Defects that simulations must catch: those of `tests/faults/sabotage.py`, and some of all other parts of the load."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

from etcd_aio import EtcdError, op
from etcd_aio.cache.freshness import Freshness
from etcd_aio.cache.state import Replica
from etcd_aio.error_handler import call_with_retries
from etcd_aio.error_handler.retry_verdicts import judge_call
from etcd_aio.errors import ItemInDoubtError
from etcd_aio.recipes import Barrier, Counter, HashRing, IdAllocator, Job, Membership, Tick
from etcd_aio.recipes.barrier import double_barrier, meeting
from etcd_aio.recipes.counter import sums
from etcd_aio.recipes.queue import queue
from etcd_aio.recipes.queue.sequence import Sequence
from etcd_aio.recipes.queue.taking import Taker
from etcd_aio.recipes.schedule import runs
from etcd_aio.recipes.schedule.runs import ClaimingRun, Run
from etcd_aio.recipes.stm.read_set import ReadSet
from etcd_aio.recipes.work_queue.following import JobFollower
from etcd_aio.watch.open_stream import OpenStream
from etcd_aio.watch.state import WatchState
from tests.faults import sabotage
from tests.faults.cached_reads import trust_early_marks
from tests.faults.sabotage import swap
from tests.simulation import sabotage_streams


def put_repeated() -> None:
    """Repeat a mutation after an attempt whose outcome is unknown: it may be applied twice."""
    swap(call_with_retries, "judge_call", lambda facts: judge_call(replace(facts, may_repeat=True)))


def event_lost_at_resume() -> None:
    """Go on one revision too late after an interruption."""
    create = OpenStream._create

    def late(self: Any, watch: WatchState) -> Any:
        if watch.seen and watch.resume_revision == watch.seen + 1:
            watch.resume_revision += 1
        return create(self, watch)

    swap(OpenStream, "_create", late)


def event_repeated_at_resume() -> None:
    """Go on one revision too early after an interruption, and hand over its events again."""
    create = OpenStream._create

    def early(self: Any, watch: WatchState) -> Any:
        if watch.seen > 1 and watch.resume_revision == watch.seen + 1:
            watch.resume_revision -= 1
            watch.seen -= 1
        return create(self, watch)

    swap(OpenStream, "_create", early)


def event_order_turned() -> None:
    """Hand over the events of a reply with its revisions in the wrong order."""
    add = WatchState.add_events

    def turned(self: WatchState, events: Any, **options: Any) -> bool:
        return add(self, tuple(reversed(events)), **options)

    swap(WatchState, "add_events", turned)


def stale_cache() -> None:
    """Say that a cache is up to date without asking the store."""

    async def at_once(self: Any, deadline: float) -> None:
        self.waiters.has(0)  # raises if the cache has ended

    swap(Freshness, "wait_current", at_once)


def cache_keeps_the_deleted() -> None:
    """Apply the puts alone to a cache."""
    apply = Replica.apply

    def puts(self: Any, events: Any, decoded: Any) -> Any:
        kept = tuple(event for event in events if event.is_put)
        return apply(self, kept or events, decoded)

    swap(Replica, "apply", puts)


def ended_calls_counted() -> None:
    """Add for a call that has ended by its deadline before its txn was sent, and has said that nothing was added."""

    def all_of_them(self: Any, calls: Any) -> Any:
        return calls, *sums.sums(self._value, [one.work for one in calls], self._minimum, self._maximum)

    swap(Counter, "_sums", all_of_them)


def counter_without_guard() -> None:
    """Put the sum whatever the counter is by now."""
    commit = Counter._commit

    async def careless(self: Any, txn: Any, deadline: float) -> Any:
        return await commit(self, replace(txn, when=()), deadline)

    swap(Counter, "_commit", careless)


def block_guessed() -> None:
    """Take a block for one's own if the counter has it, although the answer to the request was lost."""

    async def take(self: Any, deadline: float, failures: int) -> None:
        with suppress(EtcdError):
            await self._counter.add(self._block)
        last = await self._counter.get()
        self._next, self._last = last - self._block + 1, last

    swap(IdAllocator, "_take", take)


def stale_transaction() -> None:
    """Commit although another transaction has changed what was read."""
    commit = ReadSet.commit
    swap(ReadSet, "commit", lambda self: replace(commit(self), when=()))


def barrier_repeated() -> None:
    """Repeat the request that holds a barrier: a late copy of it holds it again."""
    hold = Barrier.hold

    async def again(self: Any, *, value: Any = b"", lease: Any = None, timeout: Any = None) -> bool:
        try:
            return await hold(self, value=value, lease=lease)
        except EtcdError:
            return await hold(self, value=value, lease=lease)

    swap(Barrier, "hold", again)


def all_enter() -> None:
    """Let everybody in whose key is older than `ready` (#14604)."""
    rule = meeting.entering

    def entering(own: Any, listed: Any, ready: int, count: int, *, last: Any = None, is_overdue: bool = False) -> Any:
        return rule(own, listed, ready, count)

    swap(double_barrier, "entering", entering)


def left_alone() -> None:
    """Leave a double barrier without waiting for the others."""
    swap(double_barrier, "leaving", lambda own, listed, last: meeting.MeetingStep.LAST)


def member_for_ever() -> None:
    """Take a membership for one until its block is left."""
    swap(Membership, "is_registered", property(lambda self: self._task is not None and not self._is_left))


def epoch_too_old() -> None:
    """Give an assignment the epoch of the one before it."""
    replaced = HashRing.replaced
    swap(HashRing, "replaced", lambda self, names, epoch, known=None: replaced(self, names, self.epoch or epoch, known))


def every_start_is_own() -> None:
    """Run a tick that another process has started first."""

    def found(self: Any, records: Any, revision: int) -> Any:
        for record in records:
            if record is not None and record.key in self._in_doubt:
                tick = Tick(self._in_doubt[record.key], record.key, 1, record.mod_revision, self._setting.last_key)
                self._settle()
                return tick
        self._settle()
        return None

    swap(Run, "_found", found)


def start_without_guard() -> None:
    """Start a tick whatever the newest one is by now."""
    txn = op.txn

    def careless(when: Any = (), then: Any = (), otherwise: Any = ()) -> Any:
        if when and b"/last" in when[0].keys.key and len(then) == 2:
            when = ()
        return txn(when=when, then=then, otherwise=otherwise)

    swap(runs, "op", SimpleNamespace(txn=careless, get=op.get, put=op.put, delete=op.delete, GetOp=op.GetOp))


def tick_forgotten() -> None:
    """Take a tick for ended as soon as it has begun."""
    begin = ClaimingRun._begin

    async def forget(self: Any, lock: Any, state: Any) -> Any:
        tick = await begin(self, lock, state)
        if tick is not None:
            await self._close(lock, tick.fencing_token)
        return tick

    swap(ClaimingRun, "_begin", forget)


def item_repeated() -> None:
    """Repeat the put of an item whose answer was lost: a late copy puts it again after it was taken."""

    async def put(calls: Any, what: str, keys: Any, txn: Any, deadline: float) -> Any:
        return await calls.store.do(txn, retry="always")

    swap(queue, "put_once", put)


def take_forgotten() -> None:
    """Take an item whose deletion was not answered for one that another process has."""
    take = Taker._take

    async def forget(self: Any, picked: Any) -> Any:
        try:
            return await take(self, picked)
        except ItemInDoubtError:
            return []

    swap(Taker, "_take", forget)


def own_items_forgotten() -> None:
    """Take an own put, whose answer was lost, for that of another process, and put the items again."""
    commit = Sequence._commit

    async def forget(self: Any, txn: Any, mark: bytes, keys: Any, deadline: float) -> Any:
        return await commit(self, txn, b"another mark", keys, deadline)

    async def again(self: Any, txn: Any, mark: bytes, keys: Any, deadline: float) -> Any:
        try:
            return await forget(self, txn, mark, keys, deadline)
        except ItemInDoubtError:
            return await self._calls.store.do(txn, retry="always")

    swap(Sequence, "_commit", again)


def job_ended_without_claim() -> None:
    """End a job although its claim is gone, and another worker may have it."""
    commit = Job._commit

    async def careless(self: Any, how: Any, txn: Any, deadline: float) -> Any:
        return await commit(self, how, replace(txn, when=()), deadline)

    swap(Job, "_commit", careless)


def late_claim_kept() -> None:
    """Leave a claim that a late copy of a request has made for no task."""
    swap(JobFollower, "sweep", lambda self: None)


ALL: Final[Mapping[str, Callable[[], None]]] = {
    **sabotage.ALL,
    **sabotage_streams.ALL,
    **{
        function.__name__.replace("_", "-"): function
        for function in (
            *(put_repeated, event_lost_at_resume, event_repeated_at_resume, event_order_turned),
            *(stale_cache, cache_keeps_the_deleted, trust_early_marks),
            *(ended_calls_counted, counter_without_guard, block_guessed, stale_transaction),
            *(barrier_repeated, all_enter, left_alone, member_for_ever, epoch_too_old),
            *(every_start_is_own, start_without_guard, tick_forgotten),
            *(item_repeated, take_forgotten, own_items_forgotten, job_ended_without_claim, late_claim_kept),
        )
    },
}
"""By name: a function that breaks something so that a rule is broken."""
