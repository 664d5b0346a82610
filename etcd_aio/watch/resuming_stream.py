"""WatchStream: all watches of a client on one gRPC stream.

A pure state machine, the handler of a supervised stream: which watch a reply is about, what to send, when silence is
too long. It knows neither connections nor consumers, and never reads a clock.

Theory. `creations.py` matches replies to creations, `progress.py` asks how far the watches are, and `fragments.py` has
large messages split. Ids belong to one stream: on a new one every watch is created again from its next revision, the
oldest first. A watch that ended while its creation was unanswered is cancelled once that is answered.

Distrust. A peer that answers out of order all the same, or sends an event of a key that the watch does not cover, has
mixed up watches. Nothing more is taken from that stream, and from then on creations go one by one on all streams.

Silence. A peer that takes bytes and answers nothing (a frozen process, a lost network) is found by its connection's
keepalive, but only after many seconds. A creation is always answered at once, so if nothing is received for `SILENCE`
while one is unanswered, the stream is given up. Progress requests prove nothing, since they may stay unanswered.

Tokens. The token of a stream is fixed when it is opened, and etcd checks it whenever a watch is created, perhaps long
after the token has expired. A watch that is refused for it is set aside until there is another token; then the stream
is given up, and all watches go on on the next one. If there is no other token, only the watch that was refused ends.
Old releases (3.5.1 is one) only say that permission is denied, so that this too may be about the token; the service
finds out for each watch which it is.

Rollback. A store that goes back (a restored backup, wiped data) would leave its watches waiting for revisions that have
another meaning now. So if the member of a new stream is behind a revision that was seen before, the store is checked by
a linearizable read, since a follower may lag. If the store did go back, watches that are ahead of it end, or list the
keys.

Many watches. Work for thousands of watches is done in steps of `STEP`, with turns of the loop in between.

Slow consumers. A watch whose consumer has left more than `max_pending` bytes untaken is cancelled on the server, and
created again from its next revision once half of them are taken. The stream is always read, however slow a consumer is.
A message or fragment that is arriving is taken whole: the rest of it would have to be sent again.

Large messages. The server joins up to a thousand revisions in one message. It is handed over in parts while it arrives,
each like a fragment: consumers work while the server sends, and what was handed over is not sent again if the
connection is lost in the middle.
"""

import copy
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from etcd_aio.codec import WatchReplyDecoder
from etcd_aio.errors import (
    CompactedError,
    EmptyWatcherRangeError,
    EtcdError,
    PermissionDeniedError,
    ReplyTooLargeError,
    RetryHint,
    ServerError,
    StoreRolledBackError,
    UnknownServerError,
    WatchCancelledError,
    server_error,
)
from etcd_aio.observing import WatchAdvance
from etcd_aio.types import Event, WatchReply, shown_key
from etcd_aio.watch import requests
from etcd_aio.watch.creations import Creations, MixedUp
from etcd_aio.watch.fragments import Fragments
from etcd_aio.watch.outages import Outages
from etcd_aio.watch.progress import ProgressRequests
from etcd_aio.watch.state import Phase, Transition, WatchState
from etcd_aio.watch.stream_owner import WatchStreamOwner

if TYPE_CHECKING:
    from etcd_aio import pb

SILENCE: Final = 2.0
"""Seconds without any reply while a creation is unanswered, after which the stream is given up. A member answers in
milliseconds; one that is so loaded that it takes seconds still sends other replies on the stream meanwhile."""

STEP: Final = 512
"""Watches that are handled in one turn of the loop: a few milliseconds."""

_ALL: Final = -1


class WatchStream:
    """The handler of the watch stream; see `StreamHandler` for the calls of its supervisor.

    Args:
        owner: its surroundings.
        on_advance: called when a watch got events; None if that is not observed.
        client: name of the client; empty if it has none.
    """

    def __init__(
        self, owner: WatchStreamOwner, on_advance: Callable[[WatchAdvance], None] | None = None, client: str = ""
    ) -> None:
        self._owner = owner
        self._client = client
        self._on_advance = on_advance
        # For as long as the watches live. A dict keeps the order of age.
        self._watches: dict[WatchState, None] = {}
        self._refused: dict[WatchState, None] = {}  # until the token is renewed, or they are denied
        self._outages = Outages()
        self._creations = Creations()
        self._fragments = Fragments()
        self._progress = ProgressRequests()
        self._highest = 0  # the last revision that any member was seen to have
        self._stream_number = 0
        # For as long as the stream lives.
        self._is_open = False
        self._is_distrusted = False
        self._is_store_checked = False
        self._is_token_outdated = False
        self._waiting: deque[WatchState] = deque()  # may hold some that are not waiting any more
        self._live: dict[int, WatchState] = {}
        self._cancels: list[int] = []
        self._cancelled: set[int] = set()  # ids whose cancellation was sent and not confirmed yet
        self._heard_at = 0.0
        self._store_revision = 0  # the last that the member is known to have
        self._lost_at = 0.0
        self._give_up_reason: str | None = None

    def __len__(self) -> int:
        return len(self._watches)

    # Changes by the consumers of watches.

    def add(self, watch: WatchState, now: float) -> None:
        """Add a new watch.

        Raises:
            ClientUsageError: raised by `wake`, before anything is changed.
        """
        self._owner.wake()
        self._watches[watch] = None
        watch.since = now
        self._outages.begin(watch, now)
        self._wait(watch)

    def close(self, watch: WatchState) -> None:
        """End a watch for its consumer: cancel it on the server, and forget the batches that were not taken."""
        if watch.phase is not Phase.ENDED:
            self._end(watch, None)
            self._owner.wake()
        watch.drop()

    def resume(self, watch: WatchState) -> None:
        """The consumer of a paused watch has taken a batch; if enough is taken, the watch goes on."""
        if watch.phase is Phase.PAUSED and watch.is_drained:
            self._go_on(watch, Transition.DRAINED)

    def request_progress(self, watch: WatchState) -> None:
        """Ask the server how far a watch is."""
        self._progress.ask(watch)
        self._owner.wake()

    # Changes by the owner.

    def fail(self, watch: WatchState, error: EtcdError) -> None:
        """End a watch by an error, which its consumer gets behind the batches that it has not taken yet."""
        if watch.phase is not Phase.ENDED:
            self._end(watch, error)
            self._owner.wake()
            watch.on_change()

    def listed(self, watch: WatchState, events: tuple[Event, ...], revision: int) -> None:
        """The events that replace a compacted history up to a revision."""
        if watch.phase is Phase.LISTING:
            self._highest = max(self._highest, revision)
            watch.add_resync(events, revision)
            self._go_on(watch, Transition.LISTED)
            if watch.is_full:
                watch.move(Transition.FILLED)
                watch.pauses += 1
            watch.on_change()

    def progress_is_reliable(self, stream: int) -> None:
        """The member of the stream of that number never sends a progress notification ahead of its events."""
        if stream == self._stream_number and self._is_open:
            self._progress.is_reliable = True

    def store_is_at(self, revision: int) -> bool:
        """The revision that a linearizable read returned, some time after `check_store` was called.

        Returns:
            Whether the store went back.
        """
        if revision >= self._highest:
            return False
        seen, self._highest = self._highest, revision
        for watch in tuple(self._watches):
            # A watch that begins in the future has no events yet.
            if revision < watch.next_revision - 1 <= seen:
                if watch.options.resync:
                    self._refused.pop(watch, None)
                    self._leave_server(watch, Transition.ROLLED_BACK)
                    watch.rewind()
                    self._owner.start_listing(watch)
                else:
                    self.fail(watch, StoreRolledBackError(revision=revision, seen=seen))
        self._owner.wake()
        return True

    def renewed(self) -> None:
        """There is another token than the stream's: refused watches go on with it, on another stream."""
        refused, self._refused = self._refused, {}
        for watch in refused:
            watch.move(Transition.RENEWED)
        if refused:
            if self._is_open:
                self._is_token_outdated = True
                self._give_up_reason = "the next stream carries the new token"
            self._owner.wake()

    def denied(self, watch: WatchState, error: EtcdError) -> None:
        """Another token would not help a watch that was refused."""
        if watch in self._refused:
            self.fail(watch, error)

    def _go_on(self, watch: WatchState, transition: Transition) -> None:
        watch.move(transition)
        if not self._is_open and watch.outage_since is None:
            self._outages.begin(watch, self._lost_at)
        self._wait(watch)
        self._owner.wake()

    def _wait(self, watch: WatchState) -> None:
        """Queue a watch for creation; a stream that opens later creates all waiting watches."""
        if self._is_open:
            self._waiting.append(watch)

    # Calls of the supervisor.

    @property
    def is_needed(self) -> bool:
        """Whether there are watches. Paused ones keep the stream, since they come back."""
        return bool(self._watches)

    @property
    def due(self) -> float:
        """The instant at which something is to be sent, or a wait is over."""
        due = self._outages.due
        if self._is_open:
            creations, progress = self._creations, self._progress
            if self._give_up_reason is not None or self._cancels or (self._waiting and creations.may_begin):
                return self._heard_at
            if creations.unanswered:
                due = min(due, self._heard_at + SILENCE)
            if progress.asking and progress.due < due:
                due = progress.due
        return due

    def requests(self, now: float) -> "list[pb.WatchRequest]":
        """The requests to send now: cancellations, creations, and one for progress."""
        progress = self._progress
        is_asking = bool(progress.asking) and now >= progress.due
        if is_asking and progress.is_repeating:
            self._recreate_for_progress()
        found: list[pb.WatchRequest] = []
        if self._cancels:
            found += map(requests.watch_cancel_request, self._cancels[:STEP])
            del self._cancels[:STEP]
        while self._waiting and self._creations.may_begin and len(found) < 2 * STEP:
            watch = self._waiting.popleft()
            if watch.phase is Phase.WAITING:
                if not self._creations.unanswered:
                    self._heard_at = now
                found.append(self._create(watch))
        if is_asking and progress.send(now):
            found.append(requests.watch_progress_request())
        return found

    def _create(self, watch: WatchState) -> "pb.WatchRequest":
        watch.move(Transition.REQUESTED)
        watch_id = self._creations.begin(watch)
        watch.start = watch.resume_revision
        if self._progress.asking and self._store_revision:
            watch.start = min(watch.start, self._store_revision)
        in_fragments = self._fragments.is_requested_for(watch)
        return requests.watch_request(watch.options, watch_id, watch.start, in_fragments)

    def _recreate_for_progress(self) -> None:
        """Create those watches again that keep the server from answering progress requests."""
        blocking = (watch for watch in self._live.values() if watch.start > self._store_revision)
        for watch in tuple(islice(blocking, STEP)):
            self._leave_server(watch, Transition.LOST)
            self._waiting.append(watch)

    def on_open(self, endpoint: str, now: float) -> None:
        """A stream is open: all waiting watches are to be created on it."""
        del endpoint
        self._is_open = True
        self._stream_number += 1
        self._heard_at = now
        self._waiting = deque(watch for watch in self._watches if watch.phase is Phase.WAITING)
        for watch in self._watches:
            if watch.phase is Phase.LISTING:
                self._outages.end(watch)

    def make_decoder(self) -> WatchReplyDecoder:
        """The decoder of a large message: a watch that was taken off the server drops its events."""
        return WatchReplyDecoder(self._cancelled.__contains__, self._has_fragments)

    def _has_fragments(self, watch_id: int) -> bool:
        watch = self._live.get(watch_id)
        return watch is not None and self._fragments.is_requested_for(watch)

    def on_reply(self, reply: WatchReply, now: float) -> None:
        """A message of the server."""
        self._heard_at = now
        if self._is_distrusted:
            return
        header = reply.header
        if header.revision > self._store_revision and header.member_id:  # without an id a proxy made the header up
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
                self._on_progress_for_all(header.revision)
            return
        watch = self._live.get(watch_id)
        if watch is None:
            self._cancel(watch_id)
        elif reply.events:
            foreign = watch.foreign_key(reply.events)
            if foreign is not None:
                self._distrust(f"{watch.options.keys} was sent an event of {shown_key(foreign)}")
                return
            before = len(watch.pending)
            watch.add_events(reply.events, is_fragment=reply.fragment, encoded_size=reply.encoded_size)
            if len(watch.pending) != before:
                # What was not requested as a fragment is a part of a message; the rest would have to be sent again.
                is_part = reply.fragment and not self._fragments.is_requested_for(watch)
                if watch.is_full and not is_part:
                    self._leave_server(watch, Transition.FILLED)
                    watch.pauses += 1
                watch.on_change()
                if self._on_advance is not None:
                    batch = watch.pending[-1][0]
                    advance = WatchAdvance(len(batch.events), batch.revision, watch.pending_events, self._client)
                    self._on_advance(advance)
        elif not reply.fragment:
            self._add_progress(watch, header.revision, is_reliable=True)

    def on_time(self, now: float) -> str | None:
        """End the outages that last too long; returns why to give the stream up, if so."""
        if now >= self._outages.due:
            for watch in self._outages.expired(now):
                self.fail(watch, self._owner.outage_error())
        if not self._is_open:
            return None
        reason, self._give_up_reason = self._give_up_reason, None
        if reason is None and self._creations.unanswered and now >= self._heard_at + SILENCE:
            reason = f"the member sent nothing for {SILENCE:g} s while the creation of a watch was unanswered"
            self._create_last(self._creations.oldest)
        if reason is not None:
            self._heard_at = now  # once is enough
        return reason

    def _create_last(self, watch: WatchState | None) -> None:
        """Create a watch behind all others: an unanswered creation must not block them where they go one by one."""
        if watch is not None and watch in self._watches:
            del self._watches[watch]
            self._watches[watch] = None

    def on_lost(self, error: EtcdError, now: float) -> bool:
        """The stream is gone; returns whether the next one avoids a message that was too large."""
        is_avoided = False
        if isinstance(error, ReplyTooLargeError):
            is_avoided = self._after_too_large(error)
        else:
            self._fragments.clear()
        self._forget_stream()
        self._lost_at = now
        for watch in self._watches:
            if watch.phase is Phase.LIVE:
                watch.reconnects += 1
                watch.since = now
                if watch.is_full:  # parts of a message that was being taken whole
                    watch.move(Transition.FILLED)
                    watch.pauses += 1
            watch.move(Transition.LOST)
            watch.watch_id = -1
            watch.partial = None
            if watch.outage_since is None and watch.phase is not Phase.PAUSED:
                self._outages.begin(watch, now)
        return is_avoided

    def _after_too_large(self, error: ReplyTooLargeError) -> bool:
        watch = None if error.watch_id is None else self._live.get(error.watch_id)
        if watch is None:
            return self._fragments.request_for_all(self._watches)
        if not self._fragments.request_for(watch):
            self.fail(watch, copy.copy(error))
        return True

    def on_refused(self, error: EtcdError, now: float) -> bool:
        """Another stream would be refused: all watches end, since they have no deadlines of their own."""
        return False

    def on_end(self, error: EtcdError) -> None:
        """There will be no further stream: all watches end."""
        self._forget_stream()
        ending, self._watches = self._watches, {}
        self._end_some(ending, error)

    def _end_some(self, ending: dict[WatchState, None], error: EtcdError) -> None:
        """End the oldest of these watches now, and the others in later turns of the loop."""
        for watch in tuple(islice(ending, STEP)):
            del ending[watch]
            if watch.phase is not Phase.ENDED:  # its consumer may have closed it meanwhile
                self._end(watch, copy.copy(error))  # a copy for each: raising an error adds a traceback to it
                watch.on_change()
        if ending:
            self._owner.call_soon(partial(self._end_some, ending, error))

    # Replies.

    def _distrust(self, reason: str) -> None:
        """The peer mixes up watches: leave the stream, and create watches one by one from now on."""
        self._creations.is_careful = self._is_distrusted = True
        self._give_up_reason = f"the server, or a proxy before it, mixes up watches: {reason}"

    def _on_created(self, reply: WatchReply, now: float) -> None:
        try:
            watch = self._creations.answered(reply)
        except MixedUp as mixed_up:
            self._distrust(str(mixed_up))
            return
        watch_id = reply.watch_id
        if reply.canceled or watch_id < 0:
            if watch is not None and watch.phase is Phase.CREATING:
                self._on_watch_refused(watch, reply)
            return
        if watch_id in self._live:
            self._give_up_reason = f"the member gave two watches the id {watch_id}"
        elif watch is None or watch.phase is not Phase.CREATING:
            self._cancel(watch_id)
        else:
            self._go_live(watch, reply, now)

    def _go_live(self, watch: WatchState, reply: WatchReply, now: float) -> None:
        header = reply.header
        watch.move(Transition.CREATED)
        watch.renewals = 0
        watch.watch_id = reply.watch_id
        watch.created_revision = header.revision
        watch.begin(header.revision)
        watch.since = now
        self._outages.end(watch)
        self._live[reply.watch_id] = watch
        if header.member_id and header.revision < self._highest and not self._is_store_checked:
            self._is_store_checked = True
            self._owner.check_store(watch)
        self._progress.on_created(watch, now)
        if watch.wants_progress and watch.next_revision > watch.created_revision:
            self._add_progress(watch, watch.next_revision - 1, is_reliable=False)  # the store has nothing more
        watch.on_change()

    def _on_watch_refused(self, watch: WatchState, reply: WatchReply) -> None:
        error = None if reply.compact_revision else _cancel_error(reply.cancel_reason)
        if isinstance(error, ServerError) and watch.renewals < _most_renewals(error):
            if self._is_token_outdated:
                watch.move(Transition.LOST)  # refused for the old token: it is created on the next stream
                return
            watch.renewals += 1
            watch.move(Transition.REFUSED)
            self._refused[watch] = None
            if self._owner.renew_token(error, watch):
                return
        if isinstance(error, EmptyWatcherRangeError):
            # No such range is sent. etcd also answers this for every range on a stream that it has begun to close.
            self._give_up_reason = "the member is closing the stream"
            watch.move(Transition.LOST)  # it is created on the next one
        else:
            self._on_server_ended(watch, reply)

    def _on_cancelled(self, reply: WatchReply) -> None:
        self._cancelled.discard(reply.watch_id)
        watch = self._live.pop(reply.watch_id, None)
        if watch is not None:
            watch.watch_id = -1
            if reply.compact_revision:
                # etcd keeps a watcher whose history is gone, and answers no progress requests, until it is cancelled.
                self._cancel(reply.watch_id)
            self._on_server_ended(watch, reply)

    def _on_server_ended(self, watch: WatchState, reply: WatchReply) -> None:
        watch.partial = None
        if not reply.compact_revision:
            self.fail(watch, _cancel_error(reply.cancel_reason))
        elif reply.compact_revision <= watch.resume_revision:
            # Only events that were handed over, or lie before the beginning, are compacted. What an unreliable progress
            # notification covers may not have been handed over: etcd 3.5.1 answers for watches that it has yet to read.
            self._go_on(watch, Transition.LOST)
        elif watch.options.resync:
            watch.move(Transition.COMPACTED)
            self._owner.start_listing(watch)
        else:
            self.fail(watch, CompactedError(compact_revision=reply.compact_revision))

    def _on_progress_for_all(self, revision: int) -> None:
        progress = self._progress
        is_reliable = progress.is_reliable
        if is_reliable is None:
            progress.is_reliable = is_reliable = False
            self._owner.check_progress(self._stream_number)
        for watch in progress.answered(self._live.values(), revision):
            self._add_progress(watch, revision, is_reliable=is_reliable)

    def _add_progress(self, watch: WatchState, revision: int, *, is_reliable: bool) -> None:
        before = len(watch.pending)
        was_asked = watch.wants_progress
        watch.add_progress(revision, is_reliable=is_reliable)
        if was_asked and not watch.wants_progress:
            self._progress.forget(watch)
        if watch.pending and (was_asked or len(watch.pending) != before):
            watch.on_change()

    # Ends.

    def _cancel(self, watch_id: int) -> None:
        """Have the server cancel an id, once."""
        if watch_id not in self._cancelled:
            self._cancelled.add(watch_id)
            self._cancels.append(watch_id)

    def _leave_server(self, watch: WatchState, transition: Transition) -> None:
        """Take a watch off the server."""
        watch.move(transition)
        watch.partial = None
        if self._live.pop(watch.watch_id, None) is not None:
            self._cancel(watch.watch_id)
        watch.watch_id = -1

    def _end(self, watch: WatchState, error: EtcdError | None) -> None:
        if error is not None:
            self._owner.explain(watch, error)
        if watch.phase is Phase.LISTING:
            self._owner.stop_listing(watch)
        watch.error = error
        self._outages.end(watch)
        self._leave_server(watch, Transition.ENDED)
        self._watches.pop(watch, None)
        self._refused.pop(watch, None)
        self._fragments.forget(watch)
        self._progress.forget(watch)

    def _forget_stream(self) -> None:
        self._is_open = self._is_distrusted = self._is_store_checked = self._is_token_outdated = False
        self._highest = max(self._highest, self._store_revision)
        self._store_revision = 0
        self._waiting.clear()
        self._creations.forget_stream()
        self._progress.forget_stream()
        self._live.clear()
        self._cancels.clear()
        self._cancelled.clear()
        self._give_up_reason = None


def _most_renewals(error: ServerError) -> int:
    """Return how often the token is renewed in a row for one watch: users may be changed often, but not that often."""
    return 10 if error.retry_hint is RetryHint.REFRESH_TOKEN else int(isinstance(error, PermissionDeniedError))


def _cancel_error(reason: str) -> EtcdError:
    """The error of a watch that the server has cancelled."""
    if not reason:
        return WatchCancelledError("the server cancelled the watch and gave no reason")
    error = server_error(None, reason)
    if type(error) is UnknownServerError:
        return WatchCancelledError(error.message)
    return error
