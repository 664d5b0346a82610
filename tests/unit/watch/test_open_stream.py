"""watch/open_stream.py, watch/open_watches.py: which watch a reply is about, and what is sent on one stream."""

import sys
from collections.abc import Callable
from math import inf
from types import FrameType
from typing import Any

import pytest

from etcd_aio import codec, pb
from etcd_aio.errors import (
    CompactedError,
    InvalidTokenError,
    NoAvailableEndpointsError,
    NotSupportedByServerError,
    PermissionDeniedError,
    UnavailableError,
    WatchCancelledError,
    WatchError,
)
from etcd_aio.types import Header, WatchReply
from etcd_aio.watch.creations import FIRST_ID, WINDOW
from etcd_aio.watch.state import EVENT_BYTES, STEP, Phase
from tests.support.watch_bench import (
    TOKEN_REFUSED,
    Bench,
    changed,
    created,
    events,
    refused,
    renewable,
)


def test_many_creations_may_be_unanswered_and_are_matched_by_their_ids() -> None:
    bench = Bench()
    first, second = bench.watch(5), bench.watch(6)
    assert bench.said() == [("create", 5), ("create", 6)]
    assert bench.said() == []
    bench.hear(created(0))
    bench.hear(created(1))
    bench.hear(changed(1, 20))
    assert (first.watch_id, second.watch_id) == (FIRST_ID, FIRST_ID + 1)
    assert (len(first.pending), len(second.pending)) == (0, 1)


def test_the_number_of_unanswered_creations_is_limited() -> None:
    bench = Bench()
    for _ in range(WINDOW + 7):
        bench.watch()
    steps = []
    while bench.machine.due <= bench.now:
        steps.append(len(bench.said()))
    assert (sum(steps), max(steps)) == (WINDOW, 2 * STEP)
    assert bench.said() == []
    bench.hear(created(0))
    assert len(bench.said()) == 1
    for number in range(1, 6):
        bench.hear(created(number))
    assert len(bench.said()) == 5


def test_thousands_of_watches_are_cancelled_in_steps() -> None:
    bench = Bench()
    watches = [bench.watch() for _ in range(STEP + 9)]
    for number in range(len(watches)):
        bench.said()
        bench.hear(created(number))
    for watch in watches[1:]:
        bench.machine.close(watch)
    assert len(bench.said()) == STEP
    assert bench.machine.due <= bench.now
    assert bench.machine.on_time(bench.now) is None
    assert len(bench.said()) == 8
    assert bench.machine.due == inf


def test_a_refusal_with_the_id_of_its_creation_is_about_that_one() -> None:
    bench = Bench()  # 3.5.1 does so, where later ones say -1
    live, watch = bench.live(0), bench.watch()
    bench.said()
    bench.hear(WatchReply(Header(1, 1, 10), 1, True, True, 0, "etcdserver: permission denied"))
    assert (live.phase, watch.phase) == (Phase.LIVE, Phase.ENDED)


def test_an_unknown_id_is_cancelled_once() -> None:
    bench = Bench()
    bench.live(0)
    for _ in range(3):
        bench.hear(changed(9, 20))
    assert bench.said() == [("cancel", 9)]
    bench.hear(WatchReply(watch_id=9, canceled=True))
    assert bench.said() == []
    bench.hear(changed(9, 20))  # the server has confirmed the cancellation
    assert bench.said() == [("cancel", 9)]


def test_a_watch_that_ends_is_cancelled_at_once() -> None:
    bench = Bench()
    watch, other = bench.live(3), bench.live(4)
    wakes = bench.wakes
    bench.machine.close(watch)
    assert bench.wakes > wakes
    assert bench.said() == [("cancel", 3)]
    bench.hear(changed(3, 20))
    bench.hear(WatchReply(watch_id=3, canceled=True))
    assert not watch.pending
    assert bench.said() == []
    bench.machine.close(watch)
    assert bench.machine.is_needed
    bench.machine.close(other)
    assert not bench.machine.is_needed


def test_a_watch_that_ends_before_it_is_created_is_cancelled_when_its_id_is_known() -> None:
    bench = Bench()
    first, second, third = bench.watch(), bench.watch(), bench.watch()
    bench.said()
    bench.machine.close(second)
    assert bench.said() == []
    for watch_id in range(3):
        bench.hear(created(watch_id))
    assert bench.said() == [("cancel", 1)]
    assert (first.watch_id, third.watch_id) == (FIRST_ID, FIRST_ID + 2)


def test_a_watch_that_ends_before_its_creation_is_sent_is_never_created() -> None:
    bench = Bench()
    watch = bench.watch()
    bench.machine.close(watch)
    assert bench.said() == []


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("rpc error: code = PermissionDenied desc = etcdserver: permission denied", PermissionDeniedError),
        ("rpc error: code = Unauthenticated desc = etcdserver: invalid auth token", InvalidTokenError),
        ("something new", WatchCancelledError),
        ("", WatchCancelledError),
    ],
)
def test_a_refused_watch_ends_with_the_reason_and_no_other_does(reason: str, error: type[Exception]) -> None:
    bench = Bench()
    watch, other = bench.watch(), bench.watch()
    bench.said()
    bench.hear(refused(reason))
    bench.hear(created(0))
    assert type(watch.error) is error
    assert other.phase is Phase.LIVE
    assert issubclass(WatchCancelledError, WatchError)


def test_without_another_token_only_refused_watches_end() -> None:
    bench = Bench()
    asked = renewable(bench)
    live = bench.live(0)
    watches = [bench.watch() for _ in range(3)]
    bench.said()
    for _ in watches:
        bench.hear(refused(TOKEN_REFUSED))
    bench.machine.close(watches[2])
    for watch, error in zip(watches, asked, strict=True):
        bench.machine.denied(watch, error)
    assert [watch.error for watch in watches] == [asked[0], asked[1], None]
    assert live.phase is Phase.LIVE
    assert bench.machine.on_time(bench.now) is None, "the stream is as good as before"


def test_a_watch_that_waits_for_a_token_ends_by_its_max_outage() -> None:
    bench = Bench()
    renewable(bench)
    watch = bench.watch(5, max_outage=10.0)
    bench.said()
    bench.hear(refused(TOKEN_REFUSED))
    assert bench.machine.due == bench.now + 10.0
    bench.machine.on_time(bench.now + 10.0)
    assert isinstance(watch.error, NoAvailableEndpointsError)
    bench.machine.renewed()
    assert watch.phase is Phase.ENDED


def test_a_watch_that_the_server_cancels_later_ends_with_the_reason() -> None:
    bench = Bench()
    watch = bench.live(0)
    bench.hear(WatchReply(watch_id=0, canceled=True, cancel_reason="rpc error: code = Unavailable desc = no"))
    assert type(watch.error) is UnavailableError


def test_compaction_ends_a_watch_after_its_pending_events_and_is_confirmed() -> None:
    bench = Bench()
    watch = bench.live(0, 5)
    bench.hear(changed(0, 7))
    bench.hear(WatchReply(watch_id=0, canceled=True, compact_revision=20))
    assert isinstance(watch.error, CompactedError)
    assert watch.error.compact_revision == 20
    assert len(watch.pending) == 1
    # etcd keeps such a watcher, and gives no mark for all because of it, until it is cancelled.
    assert bench.said() == [("cancel", 0)]


def test_compaction_of_events_that_were_handed_over_is_harmless() -> None:
    bench = Bench()
    watch = bench.live(0, 5)
    bench.hear(changed(0, 7))
    bench.hear(WatchReply(watch_id=0, canceled=True, compact_revision=8))
    assert bench.said() == [("cancel", 0), ("create", 8)]
    assert watch.error is None


def test_progress_of_one_watch_is_about_it_alone() -> None:
    bench = Bench()
    one, other = bench.live(0, 5), bench.live(1, 5)
    bench.hear(WatchReply(Header(1, 1, 30), 0))
    assert (one.next_revision, other.next_revision) == (31, 5)


def test_progress_for_all_counts_for_watches_that_existed_at_the_request() -> None:
    bench = Bench()
    asking, old = bench.live(0, 5), bench.live(1, 5)
    bench.machine.request_progress(asking)
    assert bench.said() == [("progress", 0)]
    young = bench.live(2, 5)  # its creation overtakes the mark, and the store has not moved on since
    bench.hear(WatchReply(Header(1, 1, 10), -1))
    assert (asking.next_revision, old.next_revision, young.next_revision) == (11, 11, 5)
    assert [(len(watch.pending), watch.wants_progress) for watch in (asking, old, young)] == [
        (1, False),
        (0, 0),
        (0, 0),
    ]
    bench.machine.request_progress(asking)
    bench.said()
    bench.hear(WatchReply(Header(1, 1, 10), -1))
    assert young.next_revision == 11
    younger = bench.live(3, 5)
    bench.hear(WatchReply(Header(1, 1, 11), -1))  # not asked for, but later than its creation
    assert younger.next_revision == 12


def test_watches_that_block_progress_are_created_again_from_a_revision_that_exists() -> None:
    bench = Bench()
    asking = bench.live(0, 5)
    listed, future, now = bench.live(1, 11), bench.live(2, 500), bench.live(3)  # the store is at 10
    bench.machine.request_progress(asking)
    assert bench.said() == [("progress", 0)]
    bench.now = bench.machine.due
    assert bench.said() == [("cancel", 1), ("cancel", 2), ("create", 10), ("create", 10), ("progress", 0)]
    bench.hear(created(4))
    bench.hear(created(5))
    bench.hear(changed(4, 10, 11))
    bench.hear(changed(5, 10, 11))
    assert [event.revision for event in listed.take()] == [11], "what lay before the beginning does"
    assert not future.pending
    assert (listed.reconnects, future.next_revision, now.watch_id) == (0, 500, FIRST_ID + 3)
    bench.now = bench.machine.due
    assert bench.said() == [("progress", 0)], "once is enough"


def test_a_request_of_a_watch_behind_the_end_of_the_store_is_answered_when_it_is_created_again() -> None:
    bench = Bench()
    watch = bench.live(0, 11)
    bench.machine.request_progress(watch)
    bench.said()
    bench.now = bench.machine.due
    assert bench.said() == [("cancel", 0), ("create", 10)]
    bench.hear(created(1))
    assert [batch.revision for batch, _ in watch.pending] == [10]


def test_no_watch_is_created_again_for_progress_once_the_store_has_moved_on() -> None:
    bench = Bench()
    asking, listed = bench.live(0, 5), bench.live(1, 11)
    bench.hear(changed(0, 12))
    bench.machine.request_progress(asking)
    bench.said()
    bench.now = bench.machine.due
    assert bench.said() == [("progress", 0)]
    assert listed.phase is Phase.LIVE


def test_a_compaction_meanwhile_does_not_keep_a_watch_from_being_created_again() -> None:
    bench = Bench()
    asking, watch = bench.live(0, 5), bench.live(1, 20)
    bench.machine.request_progress(asking)
    bench.said()
    bench.now = bench.machine.due
    assert ("create", 10) in bench.said()
    bench.hear(created(2, 15))
    bench.hear(WatchReply(Header(1, 1, 16), 2, canceled=True, compact_revision=14))
    assert bench.said() == [("cancel", 2), ("create", 16)]
    assert watch.error is None


def test_a_watch_that_is_created_at_the_end_of_the_store_has_its_progress_at_once() -> None:
    bench = Bench()
    watch = bench.watch()
    bench.machine.request_progress(watch)
    assert bench.said() == [("create", 0)]
    bench.hear(created(0, 10))
    assert [batch.revision for batch, _ in watch.pending] == [10]


def test_an_answer_to_no_creation_is_cancelled() -> None:
    bench = Bench()
    bench.live(0)
    bench.hear(created(5))
    bench.hear(refused("whatever"))
    assert bench.said() == [("cancel", 5)]


def test_a_slow_consumer_is_taken_off_the_server_until_half_is_taken() -> None:
    bench = Bench()
    slow, other = bench.live(0, 5, max_pending=5 * EVENT_BYTES), bench.live(1, 5)
    for revision in (20, 21, 22):
        bench.hear(changed(0, revision))
        bench.hear(changed(1, revision))
    assert slow.phase is Phase.PAUSED
    assert bench.said() == [("cancel", 0)]
    bench.hear(changed(0, 23))  # was under way
    assert (len(slow.pending), len(other.pending), slow.pauses) == (3, 3, 1)
    slow.take()
    bench.machine.resume(slow)
    assert bench.said() == []
    slow.take()
    bench.machine.resume(slow)
    assert bench.said() == [("create", 23)]


def test_the_events_of_a_watch_that_was_taken_off_the_server_are_not_needed() -> None:
    bench = Bench()
    slow, other = bench.live(0, 5, max_pending=EVENT_BYTES), bench.live(1, 5)

    def message(watch_id: int) -> bytes:
        return codec.encode(pb.WatchResponse(watch_id=watch_id, events=[pb.Event(kv=pb.KeyValue(key=b"k"))]))

    def events_read(watch_id: int) -> int:
        decoder = bench.machine.make_decoder()
        decoder.feed(message(watch_id))
        reply = decoder.finish()
        assert reply.watch_id == watch_id
        return len(reply.events)

    assert [events_read(slow.watch_id), events_read(other.watch_id)] == [1, 1]
    slow_id = slow.watch_id
    bench.hear(changed(0, 20))
    assert slow.phase is Phase.PAUSED
    assert [events_read(slow_id), events_read(other.watch_id)] == [0, 1]


def test_fragments_have_no_parts_of_their_own() -> None:
    """A watch may be paused behind each fragment: what was not taken of one would be sent again."""
    bench = Bench()
    whole, split = bench.live(0, 5), bench.live(1, 5, fragment=True)

    def has_part(watch_id: int) -> bool:
        decoder = bench.machine.make_decoder()
        changes = [pb.Event(kv=pb.KeyValue(key=b"k", value=bytes(1000))) for _ in range(500)]
        decoder.feed(codec.encode(pb.WatchResponse(watch_id=watch_id, events=changes))[:-1])
        while decoder.work():
            pass
        return decoder.has_part

    assert [has_part(whole.watch_id), has_part(split.watch_id)] == [True, False]


@pytest.mark.parametrize("fragment", [None, True])
def test_the_rest_of_a_message_is_taken_before_a_watch_is_paused(fragment: bool | None) -> None:
    """It is on its way, and would have to be sent again. Of fragments, which were asked for, there may be many."""
    bench = Bench()
    watch = bench.live(0, 5, max_pending=EVENT_BYTES, fragment=fragment)
    bench.hear(WatchReply(watch_id=0, fragment=True, events=events(20, 21, 22)))
    assert watch.is_full
    assert watch.phase is (Phase.LIVE if fragment is None else Phase.PAUSED)
    bench.hear(changed(0, 22, 23))
    assert watch.phase is Phase.PAUSED
    assert sum(len(batch) for batch, _ in watch.pending) == (5 if fragment is None else 2)


def test_a_batch_beyond_the_bound_is_taken_alone() -> None:
    bench = Bench()
    watch = bench.live(0, 5, max_pending=EVENT_BYTES)
    bench.hear(changed(0, *range(20, 40)))
    assert len(watch.take()) == 20


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of Python a call runs: what it costs, on any machine."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def test_the_cost_of_an_answer_does_not_grow_with_the_watches_in_an_outage() -> None:
    costs = []
    for others in (1, 1, 1000):  # the first one may compile a decoder
        bench = Bench()
        watches = [bench.watch(max_outage=5.0) for _ in range(others + 2)]
        bench.said()
        bench.hear(created(0))  # the others are in their outage

        def answer(bench: Bench = bench) -> None:
            bench.hear(created(1))
            assert bench.machine.due < inf

        costs.append(lines_run(answer))
        assert watches[1].phase is Phase.LIVE
    assert costs[1] == costs[2]


def test_nothing_is_added_if_the_client_cannot_be_used() -> None:
    class Unusable(Bench):
        def wake(self) -> None:
            raise RuntimeError

    bench = Unusable()
    with pytest.raises(RuntimeError):
        bench.watch()
    assert not bench.machine.is_needed


KINE = "etcdserver: unsupported options in watch request"


def test_a_watch_that_is_refused_for_its_id_is_created_without_one() -> None:
    """kine refuses the ids that clients choose."""
    bench = Bench()
    bench.reopen(is_known=False)
    first, second = bench.watch(5), bench.watch(6)
    assert bench.said() == [("create", 5)]
    bench.hear(refused(KINE))
    for watch, watch_id in ((first, 1), (second, 2)):
        (request,) = bench.machine.requests(bench.now)
        assert request.create_request is not None
        assert request.create_request.watch_id == 0
        bench.machine.on_reply(WatchReply(Header(revision=9), watch_id=watch_id, created=True), bench.now)
        assert (watch.phase, watch.watch_id) == (Phase.LIVE, watch_id)


def test_a_watch_that_is_refused_without_an_id_as_well_ends() -> None:
    bench = Bench()
    bench.reopen(is_known=False)
    watch = bench.watch(5)
    for _ in range(2):
        bench.said()
        bench.hear(refused(KINE))
    assert watch.phase is Phase.ENDED
    assert isinstance(watch.error, NotSupportedByServerError)
    assert bench.said() == []


def test_a_member_that_takes_ids_and_refuses_a_watch_ends_it() -> None:
    bench = Bench()
    bench.live(0)
    watch = bench.watch(5)
    bench.said()
    bench.hear(refused(KINE))
    assert watch.phase is Phase.ENDED
