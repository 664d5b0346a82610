"""Defects that the judge must find: each breaks one decision of the client, in this process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from etcd_aio import EtcdError, Header, PutResult, op
from etcd_aio.backend import ClientBackend
from etcd_aio.base.call_options import UNSET
from etcd_aio.error_handler import call_with_retries
from etcd_aio.errors import with_history
from etcd_aio.once import writes
from etcd_aio.once.guarded import write_through
from etcd_aio.views import OrderedView
from etcd_aio.watch import service
from etcd_aio.watch.compaction_resync import difference
from etcd_aio.watch.open_stream import OpenStream
from etcd_aio.watch.state import WatchState
from tests.evidence.plan import Plan
from tests.faults.sabotage import swap
from tests.simulation import sabotage as simulated
from tests.simulation import sabotage_streams as streams

_CUTS: Final = ("cut", "kill", "silence")
_FEW: Final = ("cut",)
_BEHIND: Final = ("freeze", "isolate", "lag")


@dataclass(frozen=True, slots=True)
class Sabotage:
    """A defect.

    Attributes:
        text: what the client does wrong.
        function: breaks it.
        faults: that bring it out.
        has_caches: whether workers read caches. They stand on watches: with them, a watch that is wrong shows in reads.
    """

    text: str
    function: Callable[[], None]
    faults: tuple[str, ...] = _CUTS
    has_caches: bool = True

    def plan(self, plan: Plan) -> Plan:
        """A plan with these faults, and without what makes it slower."""
        ways = plan.ways if self.has_caches else tuple("plain" if way == "cache" else way for way in plan.ways)
        plain = replace(plan, engine="native", loop="asyncio", has_auth=False, has_tls=False)
        return replace(plain, faults=self.faults, ways=ways)


def not_applied_said_wrongly() -> None:
    def sure(error: Any, attempts: Any, *, maybe_applied: bool, seconds: float = 0.0) -> Any:
        return with_history(error, attempts, maybe_applied=False, seconds=seconds)

    swap(call_with_retries, "with_history", sure)


def _around_do(change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    do = ClientBackend.do

    async def changed(self: Any, operation: Any, *, timeout: Any = UNSET, retry: Any = None) -> Any:
        operation, retry = change(operation, retry)
        return await do(self, operation, timeout=timeout, retry=retry)

    swap(ClientBackend, "do", changed)


def txn_repeated() -> None:
    def always(operation: Any, retry: Any) -> tuple[Any, Any]:
        is_guarded = isinstance(operation, op.TxnOp) and operation.when and not operation.is_read_only
        return operation, "always" if is_guarded and retry is None else retry

    _around_do(always)


def reads_by_any_member() -> None:
    def serializable(operation: Any, retry: Any) -> tuple[Any, Any]:
        if isinstance(operation, op.RangeOp) and not operation.revision:
            operation = replace(operation, serializable=True)
        return operation, retry

    _around_do(serializable)


def lost_put_acknowledged() -> None:
    do = ClientBackend.do
    newest = [0]

    async def hopeful(self: Any, operation: Any, *, timeout: Any = UNSET, retry: Any = None) -> Any:
        try:
            result = await do(self, operation, timeout=timeout, retry=retry)
        except EtcdError as error:
            if not isinstance(operation, op.PutOp) or not error.maybe_applied:
                raise
            return PutResult(Header(revision=newest[0] + 1))
        if result is not None and hasattr(result, "header"):
            newest[0] = max(newest[0], result.header.revision)
        return result

    swap(ClientBackend, "do", hopeful)


def revision_split() -> None:
    add = WatchState.add_events

    def split(self: WatchState, events: Any, *, is_fragment: bool, encoded_size: int = 0) -> bool:
        is_split = not is_fragment and len(events) > 1 and events[-1].revision == events[-2].revision
        if is_split:
            add(self, events[:-1], is_fragment=False)
            self.seen -= 1
            events = events[-1:]
        return add(self, events, is_fragment=is_fragment, encoded_size=encoded_size)

    swap(WatchState, "add_events", split)


def progress_too_early() -> None:
    add = WatchState.add_progress

    def early(self: WatchState, revision: int, *, is_reliable: bool) -> None:
        add(self, revision + 3, is_reliable=True)

    swap(WatchState, "add_progress", early)


def event_lost_at_a_pause() -> None:
    leave = OpenStream.leave

    def late(self: OpenStream, watch: WatchState) -> None:
        leave(self, watch)
        if watch.is_full:
            watch.resume_revision += 2

    swap(OpenStream, "leave", late)


def previous_value_of_another_revision() -> None:
    add = WatchState.add_events

    def wrong(self: WatchState, events: Any, *, is_fragment: bool, encoded_size: int = 0) -> bool:
        events = tuple(replace(event, prev_kv=event.kv) if event.prev_kv else event for event in events)
        return add(self, events, is_fragment=is_fragment, encoded_size=encoded_size)

    swap(WatchState, "add_events", wrong)


def exactly_once_without_guard() -> None:
    def careless(slot: Any, write: Any, id_key: Any) -> Any:
        return op.TxnOp((), write_through(slot, write, id_key).then, ())

    swap(writes, "write_through", careless)


def ordered_read_goes_back() -> None:
    def current(self: Any, header: Any, mark: int) -> bool:
        self.see(header.revision)
        return True

    swap(OrderedView, "_is_current", current)


def resync_forgets_deletes() -> None:
    def puts_alone(changed: Any, gone: Any, revision: int, *, hides_deletes: bool) -> Any:
        return difference(changed, (), revision, hides_deletes=hides_deletes)

    swap(service, "difference", puts_alone)


ALL: Final[Mapping[str, Sabotage]] = {
    "second-copy": Sabotage("sends a write again after its reply was lost", simulated.put_repeated),
    "not-applied-said-wrongly": Sabotage(
        "says that a write was not applied, although its reply was lost", not_applied_said_wrongly
    ),
    "refused-txn-repeated": Sabotage(
        "sends a txn again whose reply was lost, and tells the refusal of the second copy", txn_repeated
    ),
    "lost-put-acknowledged": Sabotage("tells a put as done before it is known to be applied", lost_put_acknowledged),
    "read-by-any-member": Sabotage(
        "answers linearizable reads from one member's own state", reads_by_any_member, _BEHIND
    ),
    "stale-cache": Sabotage("calls a cached read current without asking the store", simulated.stale_cache, _BEHIND),
    "ordered-read-goes-back": Sabotage(
        "lets an ordered read return an older state than the one before", ordered_read_goes_back, _BEHIND
    ),
    "watch-late": Sabotage("resumes a watch one revision late", simulated.event_lost_at_resume, has_caches=False),
    "watch-early": Sabotage("resumes a watch one revision early", simulated.event_repeated_at_resume, has_caches=False),
    "revision-split": Sabotage("delivers the events of a revision in two batches", revision_split, has_caches=False),
    "progress-too-early": Sabotage(
        "reports the progress of a watch ahead of its events", progress_too_early, has_caches=False
    ),
    "compaction-not-told": Sabotage(
        "resumes a watch behind a compaction and says nothing", streams.compaction_not_told, has_caches=False
    ),
    "event-lost-at-a-pause": Sabotage(
        "resumes the watch of a slow consumer behind what it has missed", event_lost_at_a_pause, _FEW, has_caches=False
    ),
    "wrong-previous-value": Sabotage(
        "delivers the previous value of another revision with an event",
        previous_value_of_another_revision,
        has_caches=False,
    ),
    "resync-forgets-deletes": Sabotage("reports the puts alone after a compaction", resync_forgets_deletes, _FEW),
    "exactly-once-unguarded": Sabotage("sends exactly-once writes without their condition", exactly_once_without_guard),
}
"""By name."""
