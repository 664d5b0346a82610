"""Defects that simulations must catch: those of `tests/faults/sabotage.py`, and some of writes, watches and caches."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from etcd_aio.cache.freshness import Freshness
from etcd_aio.cache.state import Replica
from etcd_aio.error_handler import call_with_retries
from etcd_aio.error_handler.retry_verdicts import judge_call
from etcd_aio.watch.resuming_stream import WatchStream
from etcd_aio.watch.state import WatchState
from tests.faults import sabotage
from tests.faults.cached_reads import trust_early_marks
from tests.faults.sabotage import swap


def put_repeated() -> None:
    """Repeat a mutation after an attempt whose outcome is unknown: it may be applied twice."""
    swap(call_with_retries, "judge_call", lambda facts: judge_call(replace(facts, may_repeat=True)))


def event_lost_at_resume() -> None:
    """Go on one revision too late after an interruption."""
    create = WatchStream._create

    def late(self: Any, watch: WatchState) -> Any:
        if watch.seen and watch.resume_revision == watch.seen + 1:
            watch.resume_revision += 1
        return create(self, watch)

    swap(WatchStream, "_create", late)


def event_repeated_at_resume() -> None:
    """Go on one revision too early after an interruption, and hand over its events again."""
    create = WatchStream._create

    def early(self: Any, watch: WatchState) -> Any:
        if watch.seen > 1 and watch.resume_revision == watch.seen + 1:
            watch.resume_revision -= 1
            watch.seen -= 1
        return create(self, watch)

    swap(WatchStream, "_create", early)


def event_order_turned() -> None:
    """Hand over the events of a reply with its revisions in the wrong order."""
    add = WatchState.add_events

    def turned(self: WatchState, events: Any, **options: Any) -> None:
        add(self, tuple(reversed(events)), **options)

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


ALL: Final[Mapping[str, Callable[[], None]]] = {
    **sabotage.ALL,
    **{
        function.__name__.replace("_", "-"): function
        for function in (
            *(put_repeated, event_lost_at_resume, event_repeated_at_resume, event_order_turned),
            *(stale_cache, cache_keeps_the_deleted, trust_early_marks),
        )
    },
}
"""By name: a function that breaks something so that a rule is broken."""
