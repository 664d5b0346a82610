"""WatchStream: all watches of a client on one stream.

Knows: which watch an answer is about, what is to be said on the stream, when silence is too long. Never knows: how the
stream travels, what a watch makes of its events (`watch_state.py`), or who waits; it is told the time.

Theory of operation. Which watch the answer to a creation is about is the matter of `creations.py`. Ids belong to one
stream: on a new one every watch is created again from its next revision, the oldest first. A watch that ended while its
creation was under way is cancelled once that is answered.

Distrust. A peer that answers out of order all the same, or sends an event of a key that the watch does not cover, has
mixed up watches. Nothing more is taken from that stream, and from then on creations go one by one on all streams.

Progress marks. A mark for one id is about that watch. A mark for all watches (id -1) answers a request of ours, but it
carries no sign of which: it speaks only for the watches that the server had when it met that request, and the server
lets marks and `created` replies overtake each other. So a mark speaks for a watch only if the store has moved on since
that watch was created, or if every request that was sent before has had its answer. The server says nothing at all as
long as any watch of the stream is behind, or was created from a revision that the store has not reached: that of a
watch that has seen everything is one. It is asked again until it answers, and if it does not at once, such watches are
created again from a revision that is there; what comes twice is dropped. All watches could be created so in the first
place, but then etcd serves them only after up to 0.1 s.

Releases before 3.4.25 and 3.5.8 send a mark for all at once, ahead of events that it covers. If such a stream is lost
before these come, going on behind the mark would lose them. So marks for all count for the consumer, and for where a
watch goes on only once the member's release is known to be a later one.

Silence. Whoever takes bytes and answers nothing (a frozen process, a lost network) is found by its connection's
keepalive, but only after many seconds. A creation is always answered at once, so `SILENCE` without any word while one
is unanswered means: give this stream up. Requests for marks prove nothing, since they may rightly stay unanswered.

Fragments. A server joins a thousand revisions in one message if it is not asked for fragments, and takes time that
grows with the square of their events if it is. So they are asked for, unless a user decided otherwise, only on the
stream that follows one which brought a message too large to be taken, and for the watch that it was for: its first
bytes say which. One that was in fragments already, or may not be, is over, and no other. Where the bytes do not say it,
all are asked for in fragments.

Tokens. The token of a stream is fixed when it is opened, and etcd asks for it whenever a watch is created: long after
the token has expired, maybe. A watch that is refused for it stays aside until another token is there; then the stream
is given up, and all watches go on at the next one. If there is none, only the watch that was refused is over. Old
releases (3.5.1 is one) say no more than that permission is denied, so that this too may be about the token; what it is
about is found out for each watch by itself.

Rollback. A store that goes back (a restored backup, wiped data) would leave its watches waiting for revisions that have
another meaning now. So a new stream whose member is behind what was seen before raises a doubt. A follower may lag, so
a linearizable read has to confirm it. Then whoever has been told more than the store holds is over, or lists the keys.

Many watches. What is to be done for thousands of them is done in steps of `STEP`, with turns of the loop between.
Slow consumers. A watch whose consumer has left more than `max_pending` bytes lying is cancelled on the server, and
created again from its next revision once half of that was taken. The stream is always read, whoever is slow.
"""

import copy
from collections import deque
from collections.abc import Callable
from itertools import islice
from math import inf
from typing import Final

from etcd_aio.errors import (
    CompactedError,
    EmptyWatcherRangeError,
    EtcdError,
    PermissionDeniedError,
    Remedy,
    ReplyTooLargeError,
    ServerError,
    StoreRolledBackError,
    UnknownServerError,
    WatchCancelledError,
    server_error,
)
from etcd_aio.pb import WatchRequest
from etcd_aio.types import Event, WatchReply, shown_key
from etcd_aio.watch import requests
from etcd_aio.watch.creations import Creations, MixedUp
from etcd_aio.watch.state import Phase, Transition, WatchState

SILENCE: Final = 2.0
"""Seconds without any word while a creation is unanswered, after which the stream is given up. A member answers in
milliseconds; one that is so loaded that it takes seconds still says something to others on the stream meanwhile."""

STEP: Final = 512
"""Watches that are looked after without a turn of the loop: a few milliseconds."""

_FIRST_ASK: Final = 0.1  # seconds until a mark is asked for again: etcd looks after watches that are behind as often
_LONGEST_ASK: Final = 1.0
_ALL: Final = -1
_NEW_TOKEN: Final = "another stream carries the new token"  # noqa: S105 - no password


class WatchStream:
    """The handler of the watch stream; see `StreamHandler` for what its supervisor calls.

    Args:
        outage_error: makes the error of a watch that had no stream for longer than it wanted to wait.
    """

    def __init__(self, outage_error: Callable[[], EtcdError]) -> None:
        self.wake: Callable[[], None] = lambda: None
        """Called when the supervisor has to look again, since something changed that it did not bring about."""
        self.renew_token: Callable[[ServerError, WatchState], bool] = lambda error, watch: False
        """Called when the server refused a watch, maybe for the stream's token. True promises `renewed` or `denied`."""
        self.check_store: Callable[[WatchState], None] = lambda watch: None
        """Called when a member is behind what was seen before; a linearizable read gives `store_is_at`."""
        self.check_marks: Callable[[int], None] = lambda stream: None
        """Called when it matters whether a stream's member is a release with `marks_are_sure`."""
        self.explain: Callable[[WatchState, EtcdError], None] = lambda watch, error: None
        """Called with the error of a watch, to note on it which watch it ends."""
        self._outage_error = outage_error
        # For as long as the watches live. A dict keeps the order of age.
        self._watches: dict[WatchState, None] = {}
        self._asking: dict[WatchState, None] = {}
        self._refused: dict[WatchState, None] = {}  # until the token is renewed, or they are denied
        self._outages: dict[WatchState, float] = {}  # those that have no server and will not wait for ever: until when
        self._outage_due = inf  # no later than the first of these, so that `due` looks at none of ten thousand
        self._creations = Creations()
        self._highest = 0  # the last revision that any member was seen to have
        self._stream_number = 0
        # For as long as the stream lives.
        self._is_open = False
        self._has_sure_marks: bool | None = None  # those for all; None as long as there was none
        self._is_distrusted = False
        self._is_in_doubt = False
        # Since the streams before, one after the other, brought messages that were too large.
        self._in_fragments: set[WatchState] = set()
        self._is_all_in_fragments = False
        self._waiting: deque[WatchState] = deque()  # may hold some that are not waiting any more
        self._live: dict[int, WatchState] = {}
        self._cancels: list[int] = []
        self._cancelled: set[int] = set()  # ids that the server was told to cancel, until it says that it did
        self._heard = 0.0
        self._store_revision = 0  # the last that the member is known to have
        self._lost_at = 0.0
        self._marks_to_come = 0
        self._next_ask = inf
        self._ask_wait = _FIRST_ASK
        self._complaint: str | None = None

    def __len__(self) -> int:
        return len(self._watches)

    # What users bring about.

    def add(self, watch: WatchState, now: float) -> None:
        """A new watch.

        Raises:
            ClientUsageError: what `wake` raises, before anything is changed.
        """
        self.wake()
        self._watches[watch] = None
        watch.since = now
        self._begin_outage(watch, now)
        self._wait(watch)

    def close(self, watch: WatchState) -> None:
        """Its consumer wants no more of it: it is cancelled on the server, and what it has not taken is forgotten."""
        if watch.phase is not Phase.ENDED:
            self._end(watch, None)
            self.wake()
        watch.drop()

    def fail(self, watch: WatchState, error: EtcdError) -> None:
        """It is over; its consumer gets the error behind what it has not taken yet."""
        if watch.phase is not Phase.ENDED:
            self._end(watch, error)
            self.wake()
            watch.on_change()

    def after_take(self, watch: WatchState) -> None:
        """Its consumer took something; a watch that was too slow may go on."""
        if watch.phase is Phase.PAUSED and watch.is_drained:
            self._go_on(watch, Transition.DRAINED)

    def ask_for_mark(self, watch: WatchState) -> None:
        """Its consumer wants to know how far it is."""
        watch.wants_mark = True
        self._asking[watch] = None
        self._ask_wait = _FIRST_ASK
        self._next_ask = 0.0
        self.wake()

    def listed(self, watch: WatchState, events: tuple[Event, ...], revision: int) -> None:
        """What there is instead of the history that is gone."""
        if watch.phase is Phase.LISTING:
            self._highest = max(self._highest, revision)
            watch.add_resync(events, revision)
            self._go_on(watch, Transition.LISTED)
            if watch.is_full:
                watch.move(Transition.FILLED)
                watch.pauses += 1
            watch.on_change()

    def marks_are_sure(self, stream: int) -> None:
        """The member of that stream, of the number that `check_marks` told, never sends a mark ahead of its events."""
        if stream == self._stream_number and self._is_open:
            self._has_sure_marks = True

    def store_is_at(self, revision: int) -> None:
        """What a linearizable read said, some time after `check_store` was called."""
        if revision >= self._highest:
            return
        seen, self._highest = self._highest, revision
        for watch in tuple(self._watches):
            # One that begins in the future has been told nothing yet.
            if revision < watch.next_revision - 1 <= seen:
                if watch.options.resync:
                    self._refused.pop(watch, None)
                    self._leave_server(watch, Transition.ROLLED_BACK)
                    watch.rewind()
                    watch.on_change()
                else:
                    self.fail(watch, StoreRolledBackError(revision=revision, seen=seen))
        self.wake()

    def renewed(self) -> None:
        """There is another token than the stream's: whoever was refused goes on with it, on another stream."""
        refused, self._refused = self._refused, {}
        for watch in refused:
            watch.move(Transition.RENEWED)
        if refused:
            if self._is_open:
                self._complaint = _NEW_TOKEN
            self.wake()

    def denied(self, watch: WatchState, error: EtcdError) -> None:
        """The refusal of a watch was not for want of another token."""
        if watch in self._refused:
            self.fail(watch, error)

    def _put_last(self, watch: WatchState | None) -> None:
        """Create it behind all others: where creations go one by one, one that gets no answer must not hide them."""
        if watch is not None and watch in self._watches:
            del self._watches[watch]
            self._watches[watch] = None

    def _go_on(self, watch: WatchState, transition: Transition) -> None:
        watch.move(transition)
        if not self._is_open and watch.outage_since is None:
            self._begin_outage(watch, self._lost_at)
        self._wait(watch)
        self.wake()

    def _wait(self, watch: WatchState) -> None:
        """It is to be created; on a stream that is still to be opened all are that wait by then."""
        if self._is_open:
            self._waiting.append(watch)

    # The handler.

    @property
    def is_needed(self) -> bool:
        """See `StreamHandler`. Watches that are paused keep the stream, for they come back."""
        return bool(self._watches)

    @property
    def due(self) -> float:
        """See `StreamHandler`."""
        due = inf
        if self._is_open:
            if self._complaint is not None or self._cancels or (self._waiting and self._creations.may_begin):
                return self._heard
            if self._creations:
                due = self._heard + SILENCE
            if self._asking and self._next_ask < due:
                due = self._next_ask
        return min(due, self._outage_due)

    def requests(self, now: float) -> list[WatchRequest]:
        """See `StreamHandler`."""
        is_asking = self._asking and now >= self._next_ask
        if is_asking and self._ask_wait > _FIRST_ASK:
            self._let_marks_come()
        found = [requests.watch_cancel_request(watch_id) for watch_id in self._cancels[:STEP]]
        del self._cancels[:STEP]
        while self._waiting and self._creations.may_begin and len(found) < 2 * STEP:
            watch = self._waiting.popleft()
            if watch.phase is Phase.WAITING:
                if not self._creations:
                    self._heard = now
                found.append(self._create(watch))
        if is_asking:
            if any(watch.phase is Phase.LIVE for watch in self._asking):
                found.append(requests.watch_progress_request())
                self._marks_to_come += 1
                self._next_ask = now + self._ask_wait
                self._ask_wait = min(self._ask_wait * 2, _LONGEST_ASK)
            else:
                self._next_ask = inf  # until one is created
        return found

    def _create(self, watch: WatchState) -> WatchRequest:
        watch.move(Transition.ASKED)
        watch_id = self._creations.begin(watch)
        watch.start = watch.resume_revision
        if self._asking and self._store_revision:
            watch.start = min(watch.start, self._store_revision)
        in_fragments = self._is_all_in_fragments or watch in self._in_fragments
        return requests.watch_request(watch.options, watch_id, watch.start, in_fragments)

    def _let_marks_come(self) -> None:
        """Create those watches again for which the server gives no mark."""
        waiting = (watch for watch in self._live.values() if watch.start > self._store_revision)
        for watch in tuple(islice(waiting, STEP)):
            self._leave_server(watch, Transition.LOST)
            self._waiting.append(watch)

    def on_open(self, endpoint: str, now: float) -> None:
        """See `StreamHandler`."""
        del endpoint
        self._is_open = True
        self._stream_number += 1
        self._heard = now
        self._waiting = deque(watch for watch in self._watches if watch.phase is Phase.WAITING)
        for watch in self._watches:
            if watch.phase is Phase.LISTING:
                self._end_outage(watch)

    def on_reply(self, reply: WatchReply, now: float) -> None:
        """See `StreamHandler`."""
        self._heard = now
        if self._is_distrusted:
            return
        header = reply.header
        if header.revision > self._store_revision and header.member_id:  # a proxy may make up what no member said
            self._store_revision = header.revision
        watch_id = reply.watch_id
        if reply.created:
            self._on_created(reply, now)
            return
        if reply.canceled:
            self._on_cancelled(reply)
            return
        if watch_id == _ALL:
            if not reply.events:
                self._on_mark_for_all(reply.header.revision)
            return
        watch = self._live.get(watch_id)
        if watch is None:
            self._cancel(watch_id)
        elif reply.events:
            stray = watch.stray(reply.events)
            if stray is not None:
                self._distrust(f"{watch.options.keys} was sent an event of {shown_key(stray)}")
                return
            had = len(watch.pending)
            watch.add_events(reply.events, is_fragment=reply.fragment)
            if len(watch.pending) != had:
                if watch.is_full:
                    self._leave_server(watch, Transition.FILLED)
                    watch.pauses += 1
                watch.on_change()
        elif not reply.fragment:
            self._mark(watch, reply.header.revision, is_sure=True)

    def on_time(self, now: float) -> str | None:
        """See `StreamHandler`."""
        if now >= self._outage_due:
            over = (watch for watch, until in self._outages.items() if now >= until)
            for watch in tuple(islice(over, STEP)):
                self.fail(watch, self._outage_error())
            self._outage_due = min(self._outages.values(), default=inf)
        if not self._is_open:
            return None
        reason, self._complaint = self._complaint, None
        if reason is None and self._creations and now >= self._heard + SILENCE:
            reason = f"the member said nothing for {SILENCE:g} s though a watch was to be created"
            self._put_last(self._creations.oldest)
        if reason is not None:
            self._heard = now  # once is enough
        return reason

    def on_lost(self, error: EtcdError, now: float) -> bool:
        """See `StreamHandler`."""
        says_otherwise = self._after_too_large(error) if isinstance(error, ReplyTooLargeError) else self._in_one_piece()
        self._forget_stream()
        self._lost_at = now
        for watch in self._watches:
            if watch.phase is Phase.LIVE:
                watch.reconnects += 1
                watch.since = now
            watch.move(Transition.LOST)
            watch.watch_id = -1
            watch.partial = None
            if watch.outage_since is None and watch.phase is not Phase.PAUSED:
                self._begin_outage(watch, now)
        return says_otherwise

    def _after_too_large(self, error: ReplyTooLargeError) -> bool:
        """Have it said in smaller pieces, or by no watch any more; whether that is possible."""
        watch = None if error.watch_id is None else self._live.get(error.watch_id)
        if watch is None:
            had_fragments, self._is_all_in_fragments = self._is_all_in_fragments, True
            return not had_fragments and any(watch.options.fragment is None for watch in self._watches)
        if watch.options.fragment is None and not self._is_all_in_fragments and watch not in self._in_fragments:
            self._in_fragments.add(watch)
        else:
            self.fail(watch, copy.copy(error))
        return True

    def _in_one_piece(self) -> bool:
        self._in_fragments.clear()
        self._is_all_in_fragments = False
        return False

    def on_refused(self, error: EtcdError, now: float) -> bool:
        """See `StreamHandler`. Watches have no deadlines of their own: they end, and say why."""
        return False

    def on_end(self, error: EtcdError) -> None:
        """See `StreamHandler`."""
        self._forget_stream()
        for watch in tuple(self._watches):
            # Each its own: whoever raises an error adds the traceback to it.
            self._end(watch, copy.copy(error))
            watch.on_change()

    # Answers.

    def _distrust(self, reason: str) -> None:
        """The peer mixes up watches: leave the stream, and create watches one by one from now on."""
        self._creations.is_careful = self._is_distrusted = True
        self._complaint = f"the server, or a proxy before it, mixes up watches: {reason}"

    def _on_created(self, reply: WatchReply, now: float) -> None:
        try:
            watch = self._creations.answered(reply)
        except MixedUp as mixed_up:
            self._distrust(str(mixed_up))
            return
        watch_id = reply.watch_id
        if reply.canceled or watch_id < 0:
            if watch is not None and watch.phase is Phase.CREATING:
                self._on_refused(watch, reply)
            return
        if watch_id in self._live:
            self._complaint = f"the member gave two watches the id {watch_id}"
        elif watch is None or watch.phase is not Phase.CREATING:
            self._cancel(watch_id)
        else:
            watch.move(Transition.CREATED)
            watch.renewals = 0
            watch.watch_id = watch_id
            watch.created_revision = reply.header.revision
            watch.marks_before = self._marks_to_come
            watch.begin(reply.header.revision)
            self._end_outage(watch)
            watch.since = now
            self._live[watch_id] = watch
            if reply.header.member_id and reply.header.revision < self._highest and not self._is_in_doubt:
                self._is_in_doubt = True
                self.check_store(watch)
            if watch.wants_mark:
                self._next_ask = now
                if watch.next_revision > watch.created_revision:
                    self._mark(watch, watch.next_revision - 1, is_sure=False)  # the store has nothing more
            watch.on_change()

    def _on_refused(self, watch: WatchState, reply: WatchReply) -> None:
        error = None if reply.compact_revision else _reason(reply.cancel_reason)
        if isinstance(error, ServerError) and watch.renewals < _most_renewals(error):
            if self._complaint is _NEW_TOKEN:
                watch.move(Transition.LOST)  # of the old one: it is created on the next stream
                return
            watch.renewals += 1
            watch.move(Transition.REFUSED)
            self._refused[watch] = None
            if self.renew_token(error, watch):
                return
        if isinstance(error, EmptyWatcherRangeError):
            # No such range is sent. It is also what etcd says of every range on a stream that it has begun to close.
            self._complaint = "the member is closing the stream"
            watch.move(Transition.LOST)  # it is created on the next one
        else:
            self._over(watch, reply)

    def _on_cancelled(self, reply: WatchReply) -> None:
        self._cancelled.discard(reply.watch_id)
        watch = self._live.pop(reply.watch_id, None)
        if watch is not None:
            watch.watch_id = -1
            if reply.compact_revision:
                # etcd keeps a watcher whose history is gone, and then never gives a mark for all, until it is told.
                self._cancel(reply.watch_id)
            self._over(watch, reply)

    def _over(self, watch: WatchState, reply: WatchReply) -> None:
        """The server has ended a watch."""
        watch.partial = None
        if not reply.compact_revision:
            self.fail(watch, _reason(reply.cancel_reason))
        elif reply.compact_revision <= watch.next_revision:
            # What is gone is what was handed over, or lay before the beginning, and the server had not sent it yet.
            watch.resume_revision = max(watch.resume_revision, reply.compact_revision)
            self._go_on(watch, Transition.LOST)
        elif watch.options.resync:
            watch.move(Transition.COMPACTED)
            watch.on_change()
        else:
            self.fail(watch, CompactedError(compact_revision=reply.compact_revision))

    def _on_mark_for_all(self, revision: int) -> None:
        is_sure = self._has_sure_marks
        if is_sure is None:
            self._has_sure_marks = is_sure = False
            self.check_marks(self._stream_number)
        for watch in tuple(self._live.values()):
            if revision > watch.created_revision or not watch.marks_before:
                self._mark(watch, revision, is_sure=is_sure)
            else:
                watch.marks_before -= 1
        if self._marks_to_come:
            self._marks_to_come -= 1

    def _mark(self, watch: WatchState, revision: int, *, is_sure: bool) -> None:
        had = len(watch.pending)
        was_asked = watch.wants_mark
        watch.add_mark(revision, is_sure=is_sure)
        if was_asked and not watch.wants_mark:
            self._asking.pop(watch, None)
        if watch.pending and (was_asked or len(watch.pending) != had):
            watch.on_change()

    # Outages.

    def _begin_outage(self, watch: WatchState, since: float) -> None:
        watch.outage_since = since
        longest = watch.options.max_outage
        if longest is not None:
            self._outages[watch] = until = since + longest
            self._outage_due = min(self._outage_due, until)

    def _end_outage(self, watch: WatchState) -> None:
        watch.outage_since = None
        if self._outages.pop(watch, None) is not None and not self._outages:
            self._outage_due = inf

    # Ends.

    def _cancel(self, watch_id: int) -> None:
        """Have the server cancel an id, once."""
        if watch_id not in self._cancelled:
            self._cancelled.add(watch_id)
            self._cancels.append(watch_id)

    def _leave_server(self, watch: WatchState, transition: Transition) -> None:
        """The watch stays on the server no longer."""
        watch.move(transition)
        watch.partial = None
        if self._live.pop(watch.watch_id, None) is not None:
            self._cancel(watch.watch_id)
        watch.watch_id = -1

    def _end(self, watch: WatchState, error: EtcdError | None) -> None:
        if error is not None:
            self.explain(watch, error)
        watch.error = error
        self._end_outage(watch)
        self._leave_server(watch, Transition.ENDED)
        del self._watches[watch]
        self._asking.pop(watch, None)
        self._refused.pop(watch, None)
        self._in_fragments.discard(watch)

    def _forget_stream(self) -> None:
        self._is_open = self._is_distrusted = self._is_in_doubt = False
        self._highest = max(self._highest, self._store_revision)
        self._store_revision = 0
        self._has_sure_marks = None
        self._waiting.clear()
        self._creations.forget_stream()
        self._live.clear()
        self._cancels.clear()
        self._cancelled.clear()
        self._marks_to_come = 0
        self._complaint = None
        if self._asking:
            self._next_ask = 0.0
            self._ask_wait = _FIRST_ASK


def _most_renewals(error: ServerError) -> int:
    """For one watch in a row: users may be changed all the time, but not so often."""
    return 10 if error.remedy is Remedy.REFRESH_TOKEN else int(isinstance(error, PermissionDeniedError))


def _reason(text: str) -> EtcdError:
    """Why the server has cancelled a watch."""
    if not text:
        return WatchCancelledError("the server cancelled the watch and gave no reason")
    error = server_error(None, text)
    if type(error) is UnknownServerError:
        return WatchCancelledError(error.message)
    return error
