"""watch/state.py, watch/limits.py: WatchState: phases, revisions, whole revisions, and pending batches."""

import itertools

import pytest

from etcd_aio.types import Event, EventType, KeyValue
from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.state import EVENT_BYTES, Phase, WatchOptions, WatchState

KEYS = KeyRange.of("k")


def events(*revisions: int) -> tuple[Event, ...]:
    return tuple(Event(EventType.PUT, KeyValue(b"k", b"v", mod_revision=revision)) for revision in revisions)


def state(start: int = 1, **options: object) -> WatchState:
    return WatchState(WatchOptions(KEYS, **options), start, lambda: None)  # type: ignore[arg-type]


def on_server(watch: WatchState, revision: int = 10, watch_id: int = 1) -> WatchState:
    watch.move(Phase.CREATING)
    watch.begin(watch_id, revision, 0.0)
    return watch


def taken(watch: WatchState) -> list[tuple[list[int], int]]:
    found = []
    while watch.pending:
        batch = watch.take()
        found.append(([event.revision for event in batch], batch.revision))
    return found


def test_only_the_table_leads_from_phase_to_phase() -> None:
    allowed = 0
    for before, after in itertools.product(Phase, Phase):
        watch = state()
        watch.phase = before
        try:
            watch.move(after)
        except RuntimeError:
            assert watch.phase is before
        else:
            allowed += 1
            assert watch.phase is after
            assert before is not Phase.ENDED
    assert allowed == 10 + 6 + 6


def test_a_watch_that_leaves_its_server_has_no_id_and_no_half_a_revision() -> None:
    watch = on_server(state())
    watch.add_events(events(3), is_fragment=True)
    watch.move(Phase.WAITING)
    assert (watch.watch_id, watch.partial) == (-1, None)
    on_server(watch).add_events(events(3, 4), is_fragment=False)
    assert taken(watch) == [([3, 4], 4)]


def test_a_watch_from_now_begins_behind_the_store() -> None:
    watch = state(0)
    assert watch.next_revision == 0
    on_server(watch)
    assert (watch.next_revision, watch.taken_revision) == (11, 10)
    watch.move(Phase.WAITING)
    on_server(watch, 20)  # another one, later
    assert watch.next_revision == 11
    watch.add_events(events(10, 11), is_fragment=False)  # registered before the server looked at its revision
    assert taken(watch) == [([11], 11)]


def test_a_watch_from_a_revision_begins_there() -> None:
    watch = state(5)
    on_server(watch)
    assert watch.next_revision == 5
    watch.add_events(events(5), is_fragment=False)
    assert watch.next_revision == 6


def test_events_that_come_twice_are_dropped() -> None:
    watch = state()
    watch.add_events(events(2, 3), is_fragment=False)
    watch.add_events(events(2, 3), is_fragment=False)
    watch.add_events(events(3, 4), is_fragment=False)
    assert taken(watch) == [([2, 3], 3), ([4], 4)]


def test_of_a_fragment_all_but_the_last_revision_is_handed_over() -> None:
    watch = state()
    watch.add_events(events(2, 3, 3), is_fragment=True)
    assert taken(watch) == [([2], 2)]
    watch.add_events(events(3), is_fragment=True)
    assert taken(watch) == []
    watch.add_events(events(3, 4), is_fragment=True)
    assert taken(watch) == [([3, 3, 3, 3], 3)]
    watch.add_events(events(5), is_fragment=False)
    assert taken(watch) == [([4, 5], 5)]
    assert watch.next_revision == 6


def test_the_events_of_a_revision_in_many_fragments_are_read_once() -> None:
    reads = 0

    class Counted(Event):
        def __getattribute__(self, name: str) -> object:
            nonlocal reads
            reads += name == "kv"
            return super().__getattribute__(name)

    watch = state()
    for number in range(200):
        watch.add_events((Counted(EventType.DELETE, KeyValue(b"k", mod_revision=7)),) * 5, is_fragment=number < 199)
    assert len(watch.take()) == 1000
    assert reads < 5000  # each when it comes, and by the sum of sizes


def test_a_fragment_may_begin_where_the_one_before_ended_a_revision() -> None:
    watch = state()
    watch.add_events(events(3), is_fragment=True)
    watch.add_events(events(4), is_fragment=True)
    assert taken(watch) == [([3], 3)]
    watch.add_events(events(4), is_fragment=False)
    assert taken(watch) == [([4, 4], 4)]


def test_revisions_covered_by_progress_without_a_batch_stay_covered() -> None:
    watch = state()
    watch.add_progress(20, is_reliable=True)
    watch.add_events(events(21), is_fragment=False)
    assert watch.taken_revision == 20
    late = state()
    late.add_progress(20, is_reliable=True)
    late.add_events(events(15), is_fragment=False)  # the mark was wrong
    assert late.taken_revision == 0


def test_progress_advances_the_revision_and_is_delivered_on_request() -> None:
    quiet = state()
    quiet.add_progress(7, is_reliable=True)
    assert (quiet.next_revision, taken(quiet)) == (8, [])
    asking = state()
    asking.wants_progress = True
    asking.add_progress(7, is_reliable=True)
    asking.add_progress(8, is_reliable=True)
    assert (asking.next_revision, taken(asking), asking.wants_progress) == (9, [([], 7)], False)
    notified = state(progress_notify=True)
    notified.add_progress(7, is_reliable=True)
    notified.add_progress(8, is_reliable=True)
    notified.add_progress(8, is_reliable=True)
    assert taken(notified) == [([], 8)]  # the newer one says all


def test_progress_never_goes_back() -> None:
    watch = state(progress_notify=True)
    watch.add_events(events(9), is_fragment=False)
    watch.add_progress(5, is_reliable=True)
    assert (watch.next_revision, taken(watch)) == (10, [([9], 9)])
    watch.wants_progress = True
    watch.add_progress(5, is_reliable=True)
    assert (watch.next_revision, taken(watch)) == (10, [([], 9)])


def test_an_event_that_its_progress_overtook_is_late_and_not_lost() -> None:
    watch = state()
    watch.add_progress(7, is_reliable=True)
    watch.add_events(events(6), is_fragment=False)
    assert taken(watch) == [([6], 7)]
    assert watch.next_revision == 8


def test_progress_in_the_middle_of_a_fragment_is_ignored() -> None:
    watch = state()
    watch.add_events(events(3), is_fragment=True)
    watch.add_progress(7, is_reliable=True)
    assert watch.next_revision == 1
    watch.add_events(events(3), is_fragment=False)
    assert taken(watch) == [([3, 3], 3)]


def test_pending_events_and_bytes_are_counted() -> None:
    watch = state(max_pending=3 * EVENT_BYTES)
    watch.add_events(events(2), is_fragment=False)
    assert (watch.pending_events, watch.pending_bytes) == (1, 2 * EVENT_BYTES + 2)
    assert not watch.is_full
    watch.add_events(events(3, 4), is_fragment=False)
    assert watch.is_full
    watch.take()
    assert not watch.is_drained
    watch.take()
    assert watch.is_drained
    assert (watch.pending_events, watch.pending_bytes) == (0, 0)


def test_the_size_of_a_batch_has_its_keys_and_values() -> None:
    kv = KeyValue(b"kk", b"vvv", mod_revision=1)
    watch = state()
    watch.add_events((Event(EventType.PUT, kv, kv),), is_fragment=False)
    assert watch.pending_bytes == 2 * EVENT_BYTES + 10


def test_the_size_of_a_whole_message_is_that_of_its_bytes() -> None:
    watch = state()
    watch.add_events(events(2, 3), is_fragment=False, encoded_size=50)
    assert watch.pending_bytes == 3 * EVENT_BYTES + 50
    watch.take()
    assert watch.pending_bytes == 0


def test_the_sizes_of_the_fragments_of_a_message_are_counted_once() -> None:
    watch = state()
    watch.add_events(events(2, 3), is_fragment=True, encoded_size=50)  # the last revision may go on
    assert watch.pending_bytes == 2 * EVENT_BYTES + 50
    watch.add_events(events(3), is_fragment=False, encoded_size=25)
    assert watch.pending_bytes == 2 * EVENT_BYTES + 50 + 3 * EVENT_BYTES + 25


def test_the_size_of_a_fragment_counts_with_the_batch_that_has_its_events() -> None:
    watch = state()
    watch.add_events(events(3, 3), is_fragment=True, encoded_size=20)
    watch.add_events(events(3), is_fragment=True, encoded_size=10)
    assert watch.pending_bytes == 0
    watch.add_events(events(4), is_fragment=True, encoded_size=5)
    assert watch.pending_bytes == 4 * EVENT_BYTES + 35
    watch.add_events(events(5), is_fragment=False, encoded_size=5)
    assert watch.pending_bytes == 4 * EVENT_BYTES + 35 + 3 * EVENT_BYTES + 5


def test_the_size_of_a_part_of_a_message_is_that_of_its_keys_and_values() -> None:
    watch = state()
    watch.add_events(events(2, 3), is_fragment=False, encoded_size=50)
    watch.add_events(events(3, 4), is_fragment=False, encoded_size=50)  # the first was handed over already
    assert watch.pending_bytes == 3 * EVENT_BYTES + 50 + 2 * EVENT_BYTES + 2


def test_nothing_follows_the_end() -> None:
    watch = state()
    watch.move(Phase.ENDED)
    for phase in Phase:
        with pytest.raises(RuntimeError, match="a watch that is ended cannot become"):
            watch.move(phase)


def test_no_batch_of_events_covers_what_may_still_follow() -> None:
    watch = state(5)
    watch.add_progress(20, is_reliable=False)
    watch.add_events(events(6), is_fragment=False)
    watch.add_events(events(9), is_fragment=False)
    assert taken(watch) == [([6], 6), ([9], 9)]  # a new watch from 21 would miss 9
    watch.add_progress(20, is_reliable=True)
    watch.add_events(events(12), is_fragment=False)
    assert taken(watch) == [([12], 20)]


def test_unreliable_progress_does_not_advance_the_resume_revision() -> None:
    watch = state(5)
    watch.add_events(events(6), is_fragment=False)
    watch.add_progress(20, is_reliable=False)
    assert (watch.next_revision, watch.resume_revision) == (21, 7)
    watch.add_events(events(9), is_fragment=False)
    assert (watch.next_revision, watch.resume_revision) == (21, 10)
    watch.add_progress(15, is_reliable=True)
    assert (watch.next_revision, watch.resume_revision) == (21, 16)
    watch.add_progress(30, is_reliable=True)
    assert (watch.next_revision, watch.resume_revision) == (31, 31)
