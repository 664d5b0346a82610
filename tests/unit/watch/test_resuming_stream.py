"""watch/resuming_stream.py, watch/open_stream.py, watch/open_watches.py, watch/stream_owner.py: WatchStream: which watch
a reply is about, what is sent when, and how each watch ends.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from math import inf
from types import FrameType
from typing import Any

import pytest

from etcd_aio import codec, pb
from etcd_aio.errors import (
    CompactedError,
    ConnectionLostError,
    EtcdError,
    InvalidTokenError,
    NoAvailableEndpointsError,
    PermissionDeniedError,
    ReplyTooLargeError,
    ServerError,
    StoreRolledBackError,
    UnavailableError,
    WatchCancelledError,
    WatchError,
)
from etcd_aio.types import Event, EventType, Header, KeyValue, WatchReply
from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.compaction_resync import KnownKeys
from etcd_aio.watch.creations import FIRST_ID, WINDOW
from etcd_aio.watch.open_stream import SILENCE
from etcd_aio.watch.progress import ProgressRequests
from etcd_aio.watch.resuming_stream import WatchStream
from etcd_aio.watch.state import EVENT_BYTES, STEP, Phase, WatchOptions, WatchState

LOST = ConnectionLostError("lost")


def events(*revisions: int) -> tuple[Event, ...]:
    return tuple(Event(EventType.PUT, KeyValue(b"k", b"v", mod_revision=revision)) for revision in revisions)


def created(watch_id: int, revision: int = 10) -> WatchReply:
    return WatchReply(Header(1, 1, revision), watch_id, created=True)


def changed(watch_id: int, *revisions: int) -> WatchReply:
    return WatchReply(Header(1, 1, 99), watch_id, events=events(*revisions))


def refused(reason: str = "", compact_revision: int = 0) -> WatchReply:
    return WatchReply(Header(1, 1, 10), -1, True, True, compact_revision, reason)


class Bench:
    """A machine on an open stream, and a clock.

    The peer is known to take the ids that are chosen for it, which begin at 0 here, unless a test says otherwise.
    """

    def __init__(self) -> None:
        self.machine = WatchStream(self)
        self.wakes = 0
        self.later: list[Callable[[], None]] = []
        self.changes: list[WatchState] = []
        self.listings: list[WatchState] = []
        self.store_checks: list[WatchState] = []
        self.progress_checks: list[ProgressRequests] = []
        self.renewals: list[ServerError] = []
        self.has_tokens = False
        self.on_renewal: Callable[[], None] = lambda: None
        self.now = 100.0
        self.open()

    # As the owner of the machine.

    def wake(self) -> None:
        self.wakes += 1

    def call_soon(self, work: Callable[[], None]) -> None:
        self.later.append(work)

    def renew_token(self, error: ServerError, watch: WatchState) -> bool:
        assert watch.phase is Phase.REFUSED  # what follows may follow at once
        if self.has_tokens:
            self.renewals.append(error)
            self.on_renewal()
        return self.has_tokens

    def check_store(self, watch: WatchState) -> None:
        self.store_checks.append(watch)

    def check_progress(self, progress: ProgressRequests) -> None:
        self.progress_checks.append(progress)

    def start_listing(self, watch: WatchState) -> None:
        assert watch.phase is Phase.LISTING
        self.listings.append(watch)

    def stop_listing(self, watch: WatchState) -> None:
        self.listings.remove(watch)

    def explain(self, watch: WatchState, error: EtcdError) -> None:
        del watch, error

    def outage_error(self) -> EtcdError:
        return NoAvailableEndpointsError()

    # As its supervisor, and the server.

    def open(self, *, is_known: bool = True) -> None:
        self.machine.on_open("m1", self.now)
        assert self.machine._stream is not None
        self.machine._stream.creations.takes_ids = is_known

    def watch(self, start: int = 0, **options: object) -> WatchState:
        keys = options.pop("keys", KeyRange.of(prefix="k"))
        state = WatchState(WatchOptions(keys, **options), start, lambda: self.changes.append(state))  # type: ignore[arg-type]
        self.machine.add(state, self.now)
        return state

    def live(self, watch_id: int, start: int = 0, **options: object) -> WatchState:
        state = self.watch(start, **options)
        self.said()
        self.hear(created(watch_id))
        assert state.phase is Phase.LIVE
        return state

    def hear(self, reply: WatchReply) -> None:
        if reply.watch_id >= 0:
            reply = replace(reply, watch_id=reply.watch_id + FIRST_ID)
        self.machine.on_reply(reply, self.now)

    def said(self) -> list[tuple[str, int]]:
        """What is sent: the start of creations, the id of cancellations, 0 for progress."""
        found = []
        for request in self.machine.requests(self.now):
            if request.create_request is not None:
                found.append(("create", request.create_request.start_revision))
            elif request.cancel_request is not None:
                found.append(("cancel", request.cancel_request.watch_id - FIRST_ID))
            else:
                found.append(("progress", 0))
        return found

    def reopen(self, *, is_known: bool = True) -> None:
        self.machine.on_lost(LOST, self.now)
        self.open(is_known=is_known)


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


def test_a_refusal_with_the_id_of_its_creation_is_about_that_one() -> None:
    bench = Bench()  # 3.5.1 does so, where later ones say -1
    live, watch = bench.live(0), bench.watch()
    bench.said()
    bench.hear(WatchReply(Header(1, 1, 10), 1, True, True, 0, "etcdserver: permission denied"))
    assert (live.phase, watch.phase) == (Phase.LIVE, Phase.ENDED)


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


TOKEN_REFUSED = "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token"


def renewable(bench: Bench) -> list[ServerError]:
    """Promise another token from now on; returns for which refusals it was asked for."""
    bench.has_tokens = True
    return bench.renewals


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


def test_a_batch_beyond_the_bound_is_taken_alone() -> None:
    bench = Bench()
    watch = bench.live(0, 5, max_pending=EVENT_BYTES)
    bench.hear(changed(0, *range(20, 40)))
    assert len(watch.take()) == 20


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


def test_nothing_is_added_if_the_client_cannot_be_used() -> None:
    class Unusable(Bench):
        def wake(self) -> None:
            raise RuntimeError

    bench = Unusable()
    with pytest.raises(RuntimeError):
        bench.watch()
    assert not bench.machine.is_needed


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


def creations(bench: Bench) -> list[bool]:
    found = [request.create_request for request in bench.machine.requests(bench.now)]
    return [create.fragment for create in found if create is not None]


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
