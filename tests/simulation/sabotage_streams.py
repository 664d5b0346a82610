"""Defects in watches, caches, leases and what stands on them, which show themselves by timing alone."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from etcd_aio.cache.probe import SharedProbe
from etcd_aio.cache.replicator import Replicator
from etcd_aio.cache.state import Replica
from etcd_aio.concurrency import held, permits, semaphore
from etcd_aio.errors import LeaseExpiredError
from etcd_aio.lease import KeptLease
from etcd_aio.lease.keepalive_schedule import KeepAliveSchedule
from etcd_aio.once import settle, writes
from etcd_aio.once.write_verdicts import Fate, judge
from etcd_aio.watch.open_stream import OpenStream
from etcd_aio.watch.state import Phase, WatchState
from tests.faults.sabotage import swap

# Watches.


def half_a_revision_kept() -> None:
    """Keep a part of a revision when its stream is lost: it is handed over before the whole one."""
    move = WatchState.move

    def keep(self: WatchState, phase: Phase) -> None:
        part = self.partial
        move(self, phase)
        self.partial = part

    swap(WatchState, "move", keep)


def every_mark_believed_at_resume() -> None:
    """Go on behind a report of progress that has overtaken events."""
    add = WatchState.add_progress

    def believe(self: WatchState, revision: int, *, is_reliable: bool) -> None:
        add(self, revision, is_reliable=True)

    swap(WatchState, "add_progress", believe)


def part_taken_for_whole() -> None:
    """Hand over a part of a message with what it has of its last revision."""
    add = WatchState.add_events

    def whole(self: WatchState, events: Any, *, is_fragment: bool, encoded_size: int = 0) -> bool:
        return add(self, events, is_fragment=False, encoded_size=encoded_size)

    swap(WatchState, "add_events", whole)


def compaction_not_told() -> None:
    """Go on behind a compaction as if nothing had been missed."""
    ended = OpenStream._on_ended

    def silent(self: OpenStream, watch: WatchState, reply: Any) -> None:
        watch.resume_revision = max(watch.resume_revision, reply.compact_revision)
        ended(self, watch, reply)

    swap(OpenStream, "_on_ended", silent)


def options_forgotten_at_resume() -> None:
    """Create a watch on the next stream without its filters."""
    create = OpenStream._create

    def plain(self: OpenStream, watch: WatchState) -> Any:
        if watch.reconnects:
            watch.options = replace(watch.options, filters=())
        return create(self, watch)

    swap(OpenStream, "_create", plain)


def events_lost_at_a_pause() -> None:
    """Go on behind all that the server has when a slow consumer has caught up."""
    leave = OpenStream.leave

    def late(self: OpenStream, watch: WatchState) -> None:
        leave(self, watch)
        if watch.is_full:
            watch.resume_revision = max(watch.resume_revision, self.store_revision + 1)

    swap(OpenStream, "leave", late)


# Caches.


def probe_joined_under_way() -> None:
    """Let a linearizable read join a probe that is under way, and perhaps answered before a write that is finished."""
    revision = SharedProbe.revision

    async def join(self: Any, deadline: float) -> int | None:
        self._next = self._next or self._now or None
        return await revision(self, deadline)

    swap(SharedProbe, "revision", join)


def age_from_the_answer() -> None:
    """Count the age of a cache from the answer to a read, not from its sending."""
    probed = Replica.probed

    def late(self: Any, sent: float, revision: int) -> None:
        probed(self, asyncio.get_running_loop().time(), revision)

    swap(Replica, "probed", late)


def deletions_not_counted() -> None:
    """Take a cache for valid if nothing is newer, although it has keys that are deleted."""
    validated = Replica.validated

    def careless(self: Any, revision: int, count: int, *, has_newer: bool) -> bool:
        return validated(self, revision, len(self.tree), has_newer=has_newer)

    swap(Replica, "validated", careless)


def cache_goes_on_too_late() -> None:
    """Watch from one revision too late after an outage."""
    watch = Replicator._watch

    async def late(self: Any, start_revision: int, timeout: Any) -> Any:
        return await watch(self, start_revision and start_revision + 1, timeout)

    swap(Replicator, "_watch", late)


# Leases.


def deadline_from_the_reply() -> None:
    """Count the deadline of a lease from the reply to its renewal, not from the sending of that."""
    renewed = KeepAliveSchedule._renewed

    def late(self: Any, lease: Any, reply: Any, sent_at: float, now: float) -> None:
        renewed(self, lease, reply, now, now)

    swap(KeepAliveSchedule, "_renewed", late)


def deadline_from_the_grant() -> None:
    """Count the first deadline of a lease from the reply to its grant."""
    grant = KeptLease._grant

    async def late(self: Any, timeout: Any) -> None:
        await grant(self, timeout)
        self._deadline = self._keeper.clock.now() + self.ttl

    swap(KeptLease, "_grant", late)


def expiry_not_told() -> None:
    """Let the block of a lease go on behind its deadline."""
    lost = KeptLease._on_lost

    def ignore(self: Any, error: Any) -> None:
        if not isinstance(error, LeaseExpiredError):
            lost(self, error)

    swap(KeptLease, "_on_lost", ignore)


def renewed_too_late() -> None:
    """Renew a lease when almost nothing of it is left."""
    wait = KeepAliveSchedule._wait_until

    def late(self: Any, lease: Any, due: float) -> None:
        wait(self, lease, max(due, lease.deadline - lease.ttl / 100) if lease.is_held else due)

    swap(KeepAliveSchedule, "_wait_until", late)


# What stands on leases.


def lost_a_second_late() -> None:
    """Believe in a lock for a second longer than in its lease."""
    swap(held.Held, "_is_late", lambda self: False)
    swap(held.Held, "_on_lease_lost", lambda self, error: self._loop.call_later(1.0, self.lose, "late"))


def foreign_slot_not_applied() -> None:
    """Judge by a slot that is gone, or has another value, that the write was not applied."""

    def careless(number: int, found: Any) -> Any:
        verdict = judge(number, found)
        return Fate.NOT_APPLIED if verdict is Fate.IN_HISTORY else verdict

    swap(settle, "judge", careless)
    swap(writes, "judge", careless)


def one_permit_too_many() -> None:
    """Let one more permit of a semaphore be held, where others hold some."""
    rule = permits.judge

    def careless(found: Any, key: bytes, revision: int, request: Any) -> Any:
        kvs = list(found)
        verdict = rule(kvs, key, revision, request)
        before = sum(permits.parse(kv, request) for kv in kvs if kv.create_revision < revision)
        is_held = verdict.is_there and before > 2 and before + request.permits <= request.limit + 1
        return replace(verdict, is_held=verdict.is_held or is_held)

    swap(semaphore, "judge", careless)


ALL: Final[Mapping[str, Callable[[], None]]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(half_a_revision_kept, every_mark_believed_at_resume, part_taken_for_whole, compaction_not_told),
        *(options_forgotten_at_resume, events_lost_at_a_pause),
        *(probe_joined_under_way, age_from_the_answer, deletions_not_counted, cache_goes_on_too_late),
        *(deadline_from_the_reply, deadline_from_the_grant, expiry_not_told, renewed_too_late),
        *(lost_a_second_late, foreign_slot_not_applied, one_permit_too_many),
    )
}
