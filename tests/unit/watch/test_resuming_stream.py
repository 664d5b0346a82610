"""watch/resuming_stream.py, watch/stream_owner.py: how watches go on from one stream to the next, and how they end."""

from math import inf

import pytest

from etcd_aio.errors import (
    CompactedError,
    InvalidTokenError,
    NoAvailableEndpointsError,
    ReplyTooLargeError,
    StoreRolledBackError,
)
from etcd_aio.types import Event, EventType, Header, KeyValue, WatchReply
from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.compaction_resync import KnownKeys
from etcd_aio.watch.creations import FIRST_ID
from etcd_aio.watch.open_stream import SILENCE
from etcd_aio.watch.state import EVENT_BYTES, STEP, Phase, WatchState
from tests.support.watch_bench import (
    LOST,
    TOKEN_REFUSED,
    Bench,
    changed,
    created,
    creations,
    events,
    refused,
    renewable,
)


def test_the_first_creation_on_a_stream_finds_out_whether_others_may_go_with_it() -> None:
    bench = Bench()
    watches = [bench.watch(start) for start in (5, 6, 7)]
    bench.reopen(is_known=False)
    assert bench.said() == [("create", 5)]
    bench.hear(refused("no"))  # which says nothing about ids
    assert bench.said() == [("create", 6)]
    bench.hear(created(1))
    bench.watch(8)
    assert bench.said() == [("create", 7), ("create", 8)]
    assert [watch.phase for watch in watches] == [Phase.ENDED, Phase.LIVE, Phase.CREATING]


def test_a_peer_with_ids_of_its_own_gets_one_creation_after_the_other() -> None:
    bench = Bench()
    watches = [bench.watch(start) for start in (5, 6, 7)]
    bench.reopen(is_known=False)
    for number, start in enumerate((5, 6, 7)):
        assert bench.said() == [("create", start)]
        assert bench.said() == []
        bench.machine.on_reply(created(number), bench.now)
    assert [watch.watch_id for watch in watches] == [0, 1, 2]
    bench.reopen(is_known=False)
    assert bench.said() == [("create", 5)]


def test_thousands_of_outages_end_in_steps() -> None:
    bench = Bench()
    watches = [bench.watch(max_outage=1.0) for _ in range(STEP + 9)]
    bench.machine.on_lost(LOST, bench.now)
    bench.now += 1
    for step in (STEP, 9):
        before = sum(watch.phase is Phase.ENDED for watch in watches)
        assert bench.machine.due <= bench.now
        bench.machine.on_time(bench.now)
        assert sum(watch.phase is Phase.ENDED for watch in watches) == before + step
    assert bench.machine.due == inf


@pytest.mark.parametrize("watch_id", [2, 17 - FIRST_ID], ids=["out of order", "an id of its own"])
def test_a_peer_that_mixes_up_creations_is_left_and_then_gets_one_after_the_other(watch_id: int) -> None:
    bench = Bench()
    bench.live(0, 4)
    watches = [bench.watch(start) for start in (5, 6, 7)]
    bench.said()
    bench.machine.on_reply(created(watch_id + FIRST_ID), bench.now)
    bench.hear(created(2))
    bench.hear(changed(0, 20))
    assert {watch.phase for watch in watches} == {Phase.CREATING}, "nothing more is believed of what it says"
    assert bench.machine.due <= bench.now
    assert "mixes up watches" in str(bench.machine.on_time(bench.now))
    for _ in range(2):
        bench.reopen()
        assert bench.said() == [("create", 4)]
        bench.hear(created(0))
        assert bench.said() == [("create", 5)]


@pytest.mark.parametrize(
    ("keys", "inside", "outside"),
    [
        (KeyRange.of("k"), [b"k"], [b"j", b"k\0", b"l"]),
        (KeyRange.of("k", range_end="m"), [b"k", b"l"], [b"j", b"m"]),
        (KeyRange.of(from_key="k"), [b"k", b"z"], [b"j"]),
        (KeyRange.of(all_keys=True), [b"\0", b"\xff"], []),
    ],
)
def test_no_event_is_delivered_of_a_key_that_the_watch_does_not_cover(
    keys: KeyRange, inside: list[bytes], outside: list[bytes]
) -> None:
    bench = Bench()
    watch = bench.live(0, 5, keys=keys)
    other = bench.live(1, 5)

    def of(*some: bytes) -> WatchReply:
        kvs = (KeyValue(key, mod_revision=20 + number) for number, key in enumerate(some))
        return WatchReply(watch_id=0, events=tuple(Event(EventType.PUT, kv) for kv in kvs))

    for key in outside:
        bench.hear(of(*inside, key))
        bench.hear(changed(1, 20))
        assert not watch.pending
        assert not other.pending
        reason = str(bench.machine.on_time(bench.now))
        assert repr(key) in reason
        assert repr(keys) in reason
        bench.reopen()
        assert bench.said() == [("create", 5)]
        bench.hear(created(0))
        assert bench.said() == [("create", 5)]
        bench.hear(created(1))
    bench.hear(of(*inside))
    assert [event.key for event in watch.take()] == inside


def test_an_unanswered_creation_does_not_block_the_others() -> None:
    bench = Bench()
    stuck, other = bench.watch(5), bench.watch(6)
    bench.reopen(is_known=False)
    bench.said()
    bench.now += SILENCE
    assert bench.machine.on_time(bench.now) is not None
    bench.reopen(is_known=False)
    assert bench.said() == [("create", 6)]
    bench.hear(created(0))
    assert (other.phase, bench.said()) == (Phase.LIVE, [("create", 5)])
    bench.machine.close(stuck)
    bench.now += SILENCE
    assert bench.machine.on_time(bench.now) is not None


def test_on_a_new_stream_all_are_created_again_from_their_next_revision_the_oldest_first() -> None:
    bench = Bench()
    watches = [bench.live(watch_id, 5 + watch_id) for watch_id in range(4)]
    bench.hear(changed(2, 7, 30))
    late = bench.watch(50)
    bench.said()
    bench.reopen()
    assert bench.said() == [("create", 5), ("create", 6), ("create", 31), ("create", 8), ("create", 50)]
    bench.hear(changed(2, 31))  # an id of the old stream means nothing
    assert bench.said() == [("cancel", 2)]
    assert len(watches[2].pending) == 1
    assert [watch.reconnects for watch in (*watches, late)] == [1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    "reason",
    [
        TOKEN_REFUSED,
        "rpc error: code = InvalidArgument desc = etcdserver: user name is empty",
        "etcdserver: revision of auth store is old",
        "etcdserver: permission denied",
    ],
)
def test_a_watch_refused_for_its_token_waits_for_another_and_all_watches_move_to_its_stream(reason: str) -> None:
    bench = Bench()
    asked = renewable(bench)
    stays = bench.live(0, 5)
    watch = bench.watch(7)
    bench.said()
    bench.hear(refused(reason))
    assert (watch.phase, watch.error, len(asked)) == (Phase.REFUSED, None, 1)
    bench.hear(changed(0, 6))  # the others go on meanwhile
    assert bench.said() == []
    assert bench.machine.on_time(bench.now + 1) is None
    wakes = bench.wakes
    bench.machine.renewed()
    assert bench.wakes == wakes + 1
    assert bench.machine.due <= bench.now + 1
    assert bench.machine.on_time(bench.now + 1) == "the next stream carries the new token"
    bench.reopen()
    assert bench.said() == [("create", 7), ("create", 7)]
    bench.hear(created(0))
    bench.hear(created(1))
    assert (watch.phase, stays.phase) == (Phase.LIVE, Phase.LIVE)
    bench.reopen()  # a watch that was on a server since may ask for another token
    bench.said()
    bench.hear(created(0))
    bench.hear(refused(reason))
    assert (watch.error, len(asked)) == (None, 2)


def test_a_watch_that_is_refused_again_and_again_ends_alone() -> None:
    """Users may be changed while a token is fetched, so that it is old already; but not every time."""
    bench = Bench()
    asked = renewable(bench)
    watch, other = bench.watch(), bench.watch()
    for renewals in range(1, 11):
        bench.said()
        bench.hear(refused(TOKEN_REFUSED))
        assert (watch.phase, len(asked)) == (Phase.REFUSED, renewals)
        bench.hear(created(0))
        bench.machine.renewed()
        bench.reopen()
    bench.said()
    bench.hear(refused(TOKEN_REFUSED))
    bench.hear(created(0))
    assert isinstance(watch.error, InvalidTokenError)
    assert (other.phase, len(asked)) == (Phase.LIVE, 10)
    bench.reopen()  # one that was on a server since may ask again
    bench.said()
    bench.hear(refused(TOKEN_REFUSED))
    assert (other.phase, len(asked)) == (Phase.REFUSED, 11)


def test_a_token_may_be_renewed_at_once() -> None:
    bench = Bench()
    bench.has_tokens = True
    bench.on_renewal = bench.machine.renewed
    watch = bench.watch(5)
    bench.said()
    bench.hear(refused(TOKEN_REFUSED))
    assert watch.phase is Phase.WAITING
    assert bench.machine.on_time(bench.now) == "the next stream carries the new token"
    bench.reopen()
    assert bench.said() == [("create", 5)]


def test_a_watch_refused_while_the_stream_is_given_up_for_a_new_token_is_created_on_the_next_one() -> None:
    bench = Bench()
    asked = renewable(bench)
    first, second = bench.watch(5), bench.watch(6)
    bench.said()
    bench.hear(refused(TOKEN_REFUSED))
    bench.machine.renewed()
    bench.hear(refused(TOKEN_REFUSED))
    assert (first.phase, second.phase, len(asked)) == (Phase.WAITING, Phase.WAITING, 1)
    bench.machine.on_time(bench.now)
    bench.reopen()
    assert bench.said() == [("create", 5), ("create", 6)]


def test_a_stream_that_ends_while_a_token_is_fetched_changes_nothing_about_it() -> None:
    bench = Bench()
    renewable(bench)
    watch = bench.watch(5, max_outage=10.0)
    bench.said()
    bench.hear(refused(TOKEN_REFUSED))
    bench.reopen()
    assert bench.said() == []
    assert (watch.phase, watch.renewals) == (Phase.REFUSED, 1)
    bench.machine.on_lost(LOST, bench.now)
    bench.machine.renewed()
    assert (watch.phase, watch.error) == (Phase.WAITING, None)
    bench.open()
    assert bench.said() == [("create", 5)]


def test_a_stream_that_the_member_is_closing_refuses_no_watch_for_good() -> None:
    bench = Bench()
    watch, later = bench.watch(5), bench.watch(6)
    bench.said()
    for _ in (watch, later):
        bench.hear(refused("mvcc: watcher range is empty"))  # which is checked before it is sent
    assert bench.said() == []  # it would hear the same
    assert bench.machine.due <= bench.now
    assert bench.machine.on_time(bench.now) == "the member is closing the stream"
    bench.reopen()
    assert bench.said() == [("create", 5), ("create", 6)]
    assert watch.error is None


def test_a_resync_lists_and_goes_on_behind_it() -> None:
    bench = Bench()
    watch = bench.watch(5, resync=True)
    bench.said()
    bench.hear(refused(compact_revision=20))
    assert watch.phase is Phase.LISTING
    assert bench.listings == [watch]
    bench.reopen()
    assert bench.said() == []
    bench.machine.listed(watch, events(12, 22), 30)
    assert bench.said() == [("create", 31)]
    assert [event.revision for event in watch.take()] == [12, 22]
    bench.machine.listed(watch, events(40), 40)  # it has ended meanwhile, or is listed twice
    assert not watch.pending


def mark_for_all(bench: Bench, revision: int) -> None:
    bench.hear(WatchReply(Header(1, 1, revision), -1))


def test_progress_that_overtook_events_loses_none_with_the_stream() -> None:
    bench = Bench()
    watch = bench.live(0, 5)
    bench.hear(changed(0, 11))
    mark_for_all(bench, 20)  # events up to 20 are still to come
    assert watch.next_revision == 21
    bench.reopen()
    assert bench.said() == [("create", 12)]
    bench.hear(created(0, 20))
    bench.hear(changed(0, 12, 20))
    assert [event.revision for batch, _ in watch.pending for event in batch] == [11, 12, 20]


def test_watches_resume_behind_the_progress_of_a_reliable_release() -> None:
    bench = Bench()
    checked = bench.progress_checks
    watch = bench.live(0, 5)
    mark_for_all(bench, 20)
    mark_for_all(bench, 21)
    assert len(checked) == 1, "once for each stream"
    checked[0].is_reliable = True
    mark_for_all(bench, 22)
    assert watch.resume_revision == 23
    bench.reopen()
    assert bench.said() == [("create", 23)]
    bench.hear(created(0))
    checked[0].is_reliable = True  # of a stream that is gone
    mark_for_all(bench, 30)
    assert (watch.resume_revision, len(checked)) == (23, 2)


def test_a_watch_whose_progress_was_unreliable_and_whose_events_are_compacted_does_not_skip_them() -> None:
    bench = Bench()
    watch = bench.live(0, 5)
    mark_for_all(bench, 20)
    bench.reopen()
    assert bench.said() == [("create", 5)]
    bench.hear(created(0, 30))
    bench.hear(WatchReply(Header(1, 1, 30), 0, canceled=True, compact_revision=15))
    assert bench.said() == [("cancel", 0)]
    assert isinstance(watch.error, CompactedError), "the notification may have been ahead of the events from 5 to 14"


def test_a_progress_request_is_repeated_until_it_is_answered_on_new_streams_too() -> None:
    bench = Bench()
    watch = bench.live(0, 5)
    bench.machine.request_progress(watch)
    times = 0
    for _ in range(300):
        times += len(bench.said())
        bench.now += 0.01
    assert 4 <= times <= 7
    bench.reopen()
    assert bench.said() == [("create", 5)]
    assert bench.machine.due == bench.now + SILENCE
    bench.hear(created(0))
    assert bench.said() == [("progress", 0)]
    bench.hear(WatchReply(Header(1, 1, 10), -1))
    bench.now += 60
    assert bench.said() == []
    assert bench.machine.due == inf


def test_silence_while_a_creation_is_unanswered_gives_the_stream_up() -> None:
    bench = Bench()
    bench.live(0)
    assert bench.machine.due == inf
    bench.now += 60
    bench.watch()
    bench.said()
    assert bench.machine.due == bench.now + SILENCE
    bench.now += SILENCE - 0.1
    assert bench.machine.on_time(bench.now) is None
    bench.hear(changed(0, 20))  # it lives
    bench.now += SILENCE - 0.1
    assert bench.machine.on_time(bench.now) is None
    bench.now += 0.1
    reason = bench.machine.on_time(bench.now)
    assert reason is not None
    assert "2 s" in reason
    assert bench.machine.due > bench.now  # once is enough
    bench.machine.on_lost(LOST, bench.now)
    assert bench.machine.due == inf


def test_an_id_for_two_watches_gives_the_stream_up() -> None:
    bench = Bench()
    bench.open(is_known=False)
    for _ in range(2):
        bench.watch()
        bench.said()
        bench.machine.on_reply(created(0), bench.now)
    assert bench.machine.due <= bench.now
    assert bench.machine.on_time(bench.now) == "the member gave two watches the id 0"


def test_a_slow_consumer_stays_off_over_a_new_stream() -> None:
    bench = Bench()
    slow = bench.live(0, 5, max_pending=EVENT_BYTES)
    bench.hear(changed(0, 20))
    assert slow.phase is Phase.PAUSED
    bench.reopen()
    assert bench.said() == []
    assert bench.machine.is_needed
    slow.take()
    bench.machine.resume(slow)
    assert bench.said() == [("create", 21)]


def test_a_slow_consumer_is_sent_no_more_after_the_stream_was_lost_within_a_message() -> None:
    bench = Bench()
    watch = bench.live(0, 5, max_pending=EVENT_BYTES)
    bench.hear(WatchReply(watch_id=0, fragment=True, events=events(20, 21, 22)))
    assert watch.is_full
    bench.reopen()
    assert watch.phase is Phase.PAUSED
    assert bench.said() == []
    assert (watch.pauses, watch.reconnects) == (1, 1)
    assert len(watch.take()) == 2
    bench.machine.resume(watch)
    assert bench.said() == [("create", 22)]


def test_half_a_revision_is_dropped_with_its_stream() -> None:
    bench = Bench()
    watch = bench.live(0, 5)
    bench.hear(WatchReply(watch_id=0, fragment=True, events=events(20, 21)))
    bench.reopen()
    assert bench.said() == [("create", 21)]
    bench.hear(created(0))
    bench.hear(changed(0, 21, 21))
    assert [len(batch) for batch, _ in watch.pending] == [1, 2]


def test_an_outage_ends_watches_with_a_max_outage() -> None:
    bench = Bench()
    patient, impatient = bench.live(0), bench.live(1, max_outage=5.0)
    assert bench.machine.due == inf
    bench.now += 60
    bench.machine.on_lost(LOST, bench.now)
    assert bench.machine.due == bench.now + 5
    bench.now += 3
    bench.open()  # which answers nothing
    bench.said()
    bench.now += 1
    bench.machine.on_lost(LOST, bench.now)
    bench.now += 1
    assert bench.machine.on_time(bench.now) is None
    assert isinstance(impatient.error, NoAvailableEndpointsError)
    assert patient.error is None
    assert bench.machine.due == inf


def test_the_longest_outages_end_one_by_one() -> None:
    bench = Bench()
    watches = [bench.live(number, max_outage=longest) for number, longest in enumerate((7.0, 5.0, 9.0))]
    bench.machine.on_lost(LOST, bench.now)
    ended: list[WatchState] = []
    while bench.machine.due < inf:
        bench.now = bench.machine.due
        bench.machine.on_time(bench.now)
        ended += [watch for watch in watches if watch.phase is Phase.ENDED and watch not in ended]
    assert ended == [watches[1], watches[0], watches[2]]
    assert bench.now == 100.0 + 9.0


def test_an_outage_ends_with_the_answer_of_a_server() -> None:
    bench = Bench()
    watch = bench.live(0, max_outage=5.0)
    bench.machine.on_lost(LOST, bench.now)
    bench.now += 4
    bench.open()
    bench.said()
    bench.hear(created(0))
    assert bench.machine.due == inf
    assert watch.outage_since is None


def test_a_final_error_ends_all_watches_each_with_a_copy() -> None:
    bench = Bench()
    one, other = bench.live(0), bench.watch()
    bench.machine.on_lost(LOST, bench.now)
    assert not bench.machine.on_refused(CompactedError(compact_revision=7), 0.0)
    bench.machine.on_end(CompactedError(compact_revision=7))
    assert not bench.machine.is_needed
    assert one.error is not other.error
    assert isinstance(other.error, CompactedError)
    assert other.error.compact_revision == 7
    again = bench.watch()
    bench.open()
    assert bench.said() == [("create", 0)]
    assert again.error is None


def test_a_final_error_ends_thousands_of_watches_in_steps_and_new_ones_are_not_among_them() -> None:
    bench = Bench()
    watches = [bench.watch() for _ in range(2 * STEP + 2)]
    bench.machine.on_lost(LOST, bench.now)
    bench.machine.on_end(LOST)
    assert not bench.machine.is_needed
    assert [watch.phase is Phase.ENDED for watch in watches] == [True] * STEP + [False] * (STEP + 2)
    bench.machine.close(watches[-1])
    again = bench.watch()
    turns = 0
    while bench.later:
        turns += 1
        bench.later.pop()()
    assert turns == 2
    assert all(watch.phase is Phase.ENDED for watch in watches)
    assert watches[-2].error is not watches[0].error
    assert watches[-1].error is None, "its consumer closed it first"
    assert bench.changes == watches[:-1]
    assert again.phase is Phase.WAITING
    assert bench.machine.is_needed


def test_an_outage_collects_nothing_of_closed_watches() -> None:
    bench = Bench()
    bench.live(0)
    bench.machine.on_lost(LOST, bench.now)
    for _ in range(10):
        bench.machine.close(bench.watch())
    assert len(bench.machine) == 1
    assert bench.machine._stream is None
    assert len(bench.machine._watches.all) == 1
    late = bench.watch(7)
    bench.open()
    assert bench.said() == [("create", 11), ("create", 7)]
    bench.machine.close(late)


# --- a store that went back ---


def test_a_member_that_is_behind_a_seen_revision_has_the_store_checked_once_for_each_stream() -> None:
    bench = Bench()
    asked = bench.store_checks
    watch, other = bench.live(0, 5), bench.live(1)
    bench.hear(created(2, 52))
    assert not asked
    for _ in range(2):
        bench.reopen()
        bench.said()
        bench.hear(created(0, 30))
        bench.hear(created(1, 30))
    assert asked == [watch, watch]
    bench.machine.store_is_at(52)  # a follower that lags
    bench.machine.store_is_at(60)
    assert (watch.phase, other.phase) == (Phase.LIVE, Phase.LIVE)
    bench.reopen()
    bench.said()
    bench.hear(created(0, 52))
    assert len(asked) == 2


def test_a_header_that_a_proxy_makes_up_causes_no_check_of_the_store() -> None:
    bench = Bench()
    asked = bench.store_checks
    bench.watch(500)
    bench.said()
    bench.hear(WatchReply(Header(revision=500), 0, created=True))
    bench.reopen()
    bench.said()
    bench.hear(created(0, 30))
    bench.hear(WatchReply(Header(revision=5), 0, created=True))
    assert not asked


def test_a_store_that_went_back_ends_watches_that_are_ahead_of_it() -> None:
    bench = Bench()
    ahead, quiet, future = bench.live(0, 5), bench.live(1, 5), bench.live(2, 500)
    listed, resync = bench.live(3, 53), bench.live(4, 53, resync=True)
    resync.known = KnownKeys()
    resync.known.begin([b"ka"])
    bench.hear(WatchReply(Header(1, 1, 52), 0, events=events(52)))
    bench.reopen()
    bench.said()
    bench.hear(created(0, 30))
    late = bench.watch(40)
    bench.machine.store_is_at(31)
    for watch in (ahead, listed, late):
        assert isinstance(watch.error, StoreRolledBackError)
        assert (watch.error.revision, watch.error.seen) == (31, 52)
    assert (quiet.error, future.error) == (None, None)
    assert (resync.phase, resync.next_revision, bench.listings) == (Phase.LISTING, 1, [resync])
    bench.said()
    bench.machine.listed(resync, events(20), 33)
    assert bench.said() == [("create", 34)]
    assert resync.take().revision == 33
    bench.machine.store_is_at(40)
    assert quiet.error is None


# --- messages that are too large ---


def test_fragments_are_requested_after_a_message_was_too_large() -> None:
    bench = Bench()
    bench.watch()
    bench.watch(fragment=False)
    bench.watch(fragment=True)
    assert creations(bench) == [False, False, True]
    assert bench.machine.on_lost(ReplyTooLargeError("too large"), bench.now), "it is worth another stream"
    bench.open()
    assert creations(bench) == [True, False, True]
    assert not bench.machine.on_lost(ReplyTooLargeError("too large"), bench.now), "even in fragments"


def test_fragments_are_requested_no_longer_than_needed() -> None:
    bench = Bench()
    bench.watch()
    assert bench.machine.on_lost(ReplyTooLargeError("too large"), bench.now)
    bench.open()
    assert creations(bench) == [True]
    assert not bench.machine.on_lost(LOST, bench.now)
    bench.open()
    assert creations(bench) == [False]


def test_an_explicit_fragment_option_is_never_changed() -> None:
    bench = Bench()
    bench.watch(fragment=False)
    assert not bench.machine.on_lost(ReplyTooLargeError("too large"), bench.now)


def too_large(number: int) -> ReplyTooLargeError:
    """A message was too large that was for the watch created as number `number` of the stream."""
    error = ReplyTooLargeError("too large")
    error.watch_id = FIRST_ID + number
    return error


def test_fragments_are_requested_only_for_the_watch_whose_message_was_too_large() -> None:
    bench = Bench()
    one, other = bench.live(0), bench.live(1)
    assert bench.machine.on_lost(too_large(1), bench.now)
    bench.open()
    assert creations(bench) == [False, True]
    bench.hear(created(0))
    bench.hear(created(1))
    assert bench.machine.on_lost(too_large(0), bench.now)
    bench.open()
    assert creations(bench) == [True, True]
    assert (one.error, other.error) == (None, None)
    bench.reopen()
    assert creations(bench) == [False, False]


@pytest.mark.parametrize("fragment", [None, True, False])
def test_a_message_that_is_still_too_large_ends_its_watch_and_no_other(fragment: bool | None) -> None:
    bench = Bench()
    watch, other = bench.live(0, fragment=fragment), bench.live(1)
    for _ in range(2 if fragment is None else 1):
        assert watch.error is None
        assert bench.machine.on_lost(too_large(0), bench.now)
        bench.open()
        for number, _ in enumerate(creations(bench)):
            bench.hear(created(number))
    assert isinstance(watch.error, ReplyTooLargeError)
    assert other.phase is Phase.LIVE
