"""OpenStream: one open watch stream: which watch a reply is about, what it means for it, and what to send. Pure.

Theory. `creations.py` matches replies to creations, `progress.py` asks how far the watches are, and `fragments.py` has
large messages split. Ids belong to one stream, and so do cancellations and all that is known of the member. So this is
created when a stream opens and dropped when it is lost: nothing is reset. A watch that ended while its creation was
unanswered is cancelled once that is answered.

Distrust. A peer that answers out of order all the same, or sends an event of a key that the watch does not cover, has
mixed up watches. Nothing more is taken from that stream, and from then on creations go one by one on all streams.

Silence. A peer that takes bytes and answers nothing (a frozen process, a lost network) is found by its connection's
keepalive, but only after many seconds. A creation is always answered at once, so if nothing is received for `SILENCE`
while one is unanswered, the stream is given up. Progress requests prove nothing, since they may stay unanswered.

Many watches. Requests for thousands of watches are sent in steps, with turns of the loop in between.
"""

from collections import deque
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final

from etcd_aio.errors import (
    CompactedError,
    EmptyWatcherRangeError,
    EtcdError,
    NotSupportedByServerError,
    PermissionDeniedError,
    RetryHint,
    ServerError,
    UnknownServerError,
    WatchCancelledError,
    server_error,
)
from etcd_aio.observing import WatchAdvance
from etcd_aio.types import WatchReply, shown_key
from etcd_aio.watch import requests
from etcd_aio.watch.creations import Creations, MixedUp
from etcd_aio.watch.open_watches import OpenWatches
from etcd_aio.watch.progress import ProgressRequests
from etcd_aio.watch.state import STEP, Phase, WatchState

if TYPE_CHECKING:
    from etcd_aio import pb

_ALL: Final = -1

SILENCE: Final = 2.0
"""Seconds without any reply while a creation is unanswered, after which the stream is given up. A member answers in
milliseconds; one that is so loaded that it takes seconds still sends other replies on the stream meanwhile."""


class OpenStream:
    """One open stream.

    Args:
        watches: all watches; those that wait are to be created.
        now: the time.

    Attributes:
        waiting: the watches to create, the oldest first; some may not be waiting any more.
        live: the watches by their ids.
        cancelled: the ids whose cancellation the server has not confirmed yet.
        creations: the creations that the server has not answered yet.
        progress: the progress requests.
        store_revision: the last that the member is known to have.
    """

    def __init__(self, watches: OpenWatches, now: float) -> None:
        self._watches = watches
        self._cancels: list[int] = []  # ids to cancel
        self._heard_at = now
        self._is_distrusted = self._is_store_checked = self._is_token_outdated = False
        self._give_up_reason: str | None = None
        self.waiting = deque(watch for watch in watches.all if watch.phase is Phase.WAITING)
        self.live: dict[int, WatchState] = {}
        self.cancelled: set[int] = set()
        self.creations = Creations(is_careful=watches.is_careful)
        self.progress = ProgressRequests(watches.asking)
        self.store_revision = 0

    # What to do, and when.

    @property
    def due(self) -> float:
        """The instant at which something is to be sent, or the silence is too long."""
        creations, progress = self.creations, self.progress
        if self._give_up_reason is not None or self._cancels or (self.waiting and creations.may_begin):
            return self._heard_at
        due = self._heard_at + SILENCE if creations.unanswered else inf
        return min(due, progress.due) if progress.asking else due

    def requests(self, now: float) -> "list[pb.WatchRequest]":
        """The requests to send now: cancellations, creations, and one for progress."""
        progress = self.progress
        if not (self.waiting or self._cancels or progress.asking):  # nearly always
            return []
        is_asking = bool(progress.asking) and now >= progress.due
        if is_asking and progress.is_repeating:
            self._recreate_for_progress()
        found: list[pb.WatchRequest] = []
        if self._cancels:
            found += map(requests.watch_cancel_request, self._cancels[:STEP])
            del self._cancels[:STEP]
        while self.waiting and self.creations.may_begin and len(found) < 2 * STEP:
            watch = self.waiting.popleft()
            if watch.phase is Phase.WAITING:
                if not self.creations.unanswered:
                    self._heard_at = now
                found.append(self._create(watch))
        if is_asking and progress.send(now):
            found.append(requests.watch_progress_request())
        return found

    def reason_to_leave(self, now: float) -> str | None:
        """Why to give the stream up, once; None if it is not."""
        reason, self._give_up_reason = self._give_up_reason, None
        creations = self.creations
        if reason is None and creations.unanswered and now >= self._heard_at + SILENCE:
            reason = f"the member sent nothing for {SILENCE:g} s while the creation of a watch was unanswered"
            self._watches.put_last(creations.oldest)  # it must not block the others where creations go one by one
        if reason is not None:
            self._heard_at = now
        return reason

    # Replies.

    def on_reply(self, reply: WatchReply, now: float) -> None:
        """A message of the server."""
        self._heard_at = now
        if self._is_distrusted:
            return
        header = reply.header
        if header.revision > self.store_revision and header.member_id:  # without an id a proxy made the header up
            self.store_revision = header.revision
        if reply.created:
            self._on_created(reply, now)
        elif reply.canceled:
            self._on_cancelled(reply)
        elif reply.watch_id == _ALL:
            if not reply.events:
                self._on_progress_for_all(header.revision)
        elif (watch := self.live.get(reply.watch_id)) is None:
            self._cancel(reply.watch_id)
        elif reply.events:
            self._on_events(watch, reply)
        elif not reply.fragment:
            self._watches.add_progress(watch, header.revision, is_reliable=True)

    def _on_events(self, watch: WatchState, reply: WatchReply) -> None:
        foreign = watch.foreign_key(reply.events)
        if foreign is not None:
            self._distrust(f"{watch.options.keys} was sent an event of {shown_key(foreign)}")
            return
        if not watch.add_events(reply.events, is_fragment=reply.fragment, encoded_size=reply.encoded_size):
            return
        watches = self._watches
        # What was not requested as a fragment is a part of a message; the rest would have to be sent again.
        if watch.is_full and not (reply.fragment and not watches.fragments.is_requested_for(watch)):
            self.leave(watch)
            watch.move(Phase.PAUSED)
        watch.on_change()
        if watches.on_advance is not None:
            batch = watch.pending[-1][0]
            watches.on_advance(WatchAdvance(len(batch.events), batch.revision, watch.pending_events, watches.client))

    def _on_progress_for_all(self, revision: int) -> None:
        progress = self.progress
        is_reliable = progress.is_reliable
        if is_reliable is None:
            progress.is_reliable = is_reliable = False
            self._watches.owner.check_progress(progress)
        for watch in progress.answered(self.live.values(), revision):
            self._watches.add_progress(watch, revision, is_reliable=is_reliable)

    def _on_created(self, reply: WatchReply, now: float) -> None:
        try:
            watch = self.creations.answered(reply)
        except MixedUp as mixed_up:
            self._distrust(str(mixed_up))
            return
        if watch is not None and watch.phase is not Phase.CREATING:
            watch = None  # it has ended meanwhile
        if reply.canceled or reply.watch_id < 0:
            if watch is not None:
                self._on_refused(watch, reply)
        elif reply.watch_id in self.live:
            self._give_up_reason = f"the member gave two watches the id {reply.watch_id}"
        elif watch is None:
            self._cancel(reply.watch_id)
        else:
            self._on_begun(watch, reply, now)

    def _on_begun(self, watch: WatchState, reply: WatchReply, now: float) -> None:
        watches, revision = self._watches, reply.header.revision
        watch.begin(reply.watch_id, revision, now)
        watches.outages.end(watch)
        self.live[reply.watch_id] = watch
        if reply.header.member_id and revision < watches.highest and not self._is_store_checked:
            self._is_store_checked = True
            watches.owner.check_store(watch)
        self.progress.on_created(watch, now)
        if watch.wants_progress and watch.next_revision > revision:
            watches.add_progress(watch, watch.next_revision - 1, is_reliable=False)  # the store has nothing more
        watch.on_change()

    def _on_refused(self, watch: WatchState, reply: WatchReply) -> None:
        error = None if reply.compact_revision else _cancel_error(reply.cancel_reason)
        if isinstance(error, ServerError) and watch.renewals < _most_renewals(error):
            if self._is_token_outdated:
                watch.move(Phase.WAITING)  # refused for the old token: it is created on the next stream
                return
            watch.renewals += 1
            watch.move(Phase.REFUSED)
            self._watches.refused[watch] = None
            if self._watches.owner.renew_token(error, watch):
                return
        creations = self.creations
        if isinstance(error, NotSupportedByServerError) and creations.sends_ids and not creations.takes_ids:
            creations.sends_ids = False  # perhaps it was refused for its id
            watch.move(Phase.WAITING)
            self.waiting.appendleft(watch)
        elif isinstance(error, EmptyWatcherRangeError):
            # No such range is sent. etcd also answers this for every range on a stream that it has begun to close.
            self._give_up_reason = "the member is closing the stream"
            watch.move(Phase.WAITING)  # it is created on the next one
        else:
            self._on_ended(watch, reply)

    def _on_cancelled(self, reply: WatchReply) -> None:
        self.cancelled.discard(reply.watch_id)
        watch = self.live.pop(reply.watch_id, None)
        if watch is not None:
            if reply.compact_revision:
                # etcd keeps a watcher whose history is gone, and answers no progress requests, until it is cancelled.
                self._cancel(reply.watch_id)
            self._on_ended(watch, reply)

    def _on_ended(self, watch: WatchState, reply: WatchReply) -> None:
        """The server has ended a watch, or refused it."""
        if not reply.compact_revision:
            self._watches.end(watch, _cancel_error(reply.cancel_reason))
        elif reply.compact_revision <= watch.resume_revision:
            # Only events that were handed over, or lie before the beginning, are compacted. What an unreliable progress
            # notification covers may not have been handed over: etcd 3.5.1 answers for watches that it has yet to read.
            watch.move(Phase.WAITING)
            self.waiting.append(watch)
        elif watch.options.resync:
            watch.move(Phase.LISTING)
            self._watches.owner.start_listing(watch)
        else:
            self._watches.end(watch, CompactedError(compact_revision=reply.compact_revision))

    # Changes.

    def leave(self, watch: WatchState) -> None:
        """Take a watch off the server, if it is there. Its owner moves it to its next phase."""
        if self.live.pop(watch.watch_id, None) is not None:
            self._cancel(watch.watch_id)

    def outdate_token(self) -> None:
        """Note that another token exists: a watch that is refused from now on is created on the next stream."""
        self._is_token_outdated = True
        self._give_up_reason = "the next stream carries the new token"

    def _distrust(self, reason: str) -> None:
        """The peer mixes up watches: leave the stream, and create watches one by one from now on."""
        self._watches.is_careful = self._is_distrusted = True
        self._give_up_reason = f"the server, or a proxy before it, mixes up watches: {reason}"

    def _cancel(self, watch_id: int) -> None:
        """Have the server cancel an id, once."""
        if watch_id not in self.cancelled:
            self.cancelled.add(watch_id)
            self._cancels.append(watch_id)

    def _create(self, watch: WatchState) -> "pb.WatchRequest":
        watch.move(Phase.CREATING)
        watch_id = self.creations.begin(watch)
        watch.start = watch.resume_revision
        if self.progress.asking and self.store_revision:
            watch.start = min(watch.start, self.store_revision)
        in_fragments = self._watches.fragments.is_requested_for(watch)
        return requests.watch_request(watch.options, watch_id, watch.start, in_fragments)

    def _recreate_for_progress(self) -> None:
        """Create those watches again that keep the server from answering progress requests."""
        blocking = (watch for watch in self.live.values() if watch.start > self.store_revision)
        for watch in tuple(islice(blocking, STEP)):
            self.leave(watch)
            watch.move(Phase.WAITING)
            self.waiting.append(watch)


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
