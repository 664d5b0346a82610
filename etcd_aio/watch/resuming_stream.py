"""WatchStream: all watches of a client on one gRPC stream.

A pure state machine, the handler of a supervised stream. It knows neither connections nor consumers, and never reads a
clock.

Theory. `open_stream.py` has all that is known of one stream, `open_watches.py` what outlasts it. On a new stream every
watch is created again from its next revision, the oldest first.

Tokens. The token of a stream is fixed when it is opened, and etcd checks it whenever a watch is created, perhaps long
after the token has expired. A watch that is refused for it is set aside until there is another token; then the stream
is given up, and all watches go on on the next one. If there is no other token, only the watch that was refused ends.
Old releases (3.5.1 is one) only say that permission is denied, so that this too may be about the token; the service
finds out for each watch which it is.

Rollback. A store that goes back (a restored backup, wiped data) would leave its watches waiting for revisions that have
another meaning now. So if the member of a new stream is behind a revision that was seen before, the store is checked by
a linearizable read, since a follower may lag. If the store did go back, watches that are ahead of it end, or list the
keys.

Slow consumers. A watch whose consumer has left more than `max_pending` bytes untaken is cancelled on the server, and
created again from its next revision once half of them are taken. The stream is always read, however slow a consumer is.
A message or fragment that is arriving is taken whole: the rest of it would have to be sent again.

Large messages. The server joins up to a thousand revisions in one message. It is handed over in parts while it arrives,
each like a fragment: consumers work while the server sends, and what was handed over is not sent again if the
connection is lost in the middle.
"""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from etcd_aio.codec import WatchReplyDecoder
from etcd_aio.errors import EtcdError, ReplyTooLargeError, StoreRolledBackError
from etcd_aio.observing import WatchAdvance
from etcd_aio.types import Event, WatchReply
from etcd_aio.watch.open_stream import OpenStream
from etcd_aio.watch.open_watches import OpenWatches
from etcd_aio.watch.state import STEP, Phase, WatchState
from etcd_aio.watch.stream_owner import WatchStreamOwner

if TYPE_CHECKING:
    from etcd_aio import pb


class WatchStream:
    """The handler of the watch stream; see `StreamHandler` for the calls of its supervisor.

    Args:
        owner, on_advance, client: see `OpenWatches`.
    """

    def __init__(
        self, owner: WatchStreamOwner, on_advance: Callable[[WatchAdvance], None] | None = None, client: str = ""
    ) -> None:
        self._owner = owner
        self._watches = OpenWatches(owner, on_advance, client)
        self._outages = self._watches.outages
        self._stream: OpenStream | None = None
        self._lost_at = 0.0  # when the last stream was lost

    def __len__(self) -> int:
        return len(self._watches.all)

    # Changes by the consumers of watches.

    def add(self, watch: WatchState, now: float) -> None:
        """Add a new watch.

        Raises:
            ClientUsageError: raised by `wake`, before anything is changed.
        """
        self._owner.wake()
        self._watches.all[watch] = None
        watch.since = now
        self._outages.begin(watch, now)
        self._create_soon(watch)

    def close(self, watch: WatchState) -> None:
        """End a watch for its consumer: cancel it on the server, and forget the batches that were not taken."""
        if watch.phase is not Phase.ENDED:
            self._end(watch, None)
            self._owner.wake()
        watch.drop()

    def resume(self, watch: WatchState) -> None:
        """The consumer of a paused watch has taken a batch; if enough is taken, the watch goes on."""
        if watch.phase is Phase.PAUSED and watch.is_drained:
            self._go_on(watch)

    def request_progress(self, watch: WatchState) -> None:
        """Ask the server how far a watch is."""
        watch.wants_progress = True
        self._watches.asking[watch] = None
        if self._stream is not None:
            self._stream.progress.ask_now()
        self._owner.wake()

    # Changes by the owner.

    def fail(self, watch: WatchState, error: EtcdError) -> None:
        """End a watch by an error, which its consumer gets behind the batches that it has not taken yet."""
        if watch.phase is not Phase.ENDED:
            self._end(watch, error)
            self._owner.wake()

    def listed(self, watch: WatchState, events: tuple[Event, ...], revision: int) -> None:
        """The events that replace a compacted history up to a revision."""
        if watch.phase is Phase.LISTING:
            self._watches.highest = max(self._watches.highest, revision)
            watch.add_resync(events, revision)
            self._go_on(watch)
            if watch.is_full:
                watch.move(Phase.PAUSED)
            watch.on_change()

    def store_is_at(self, revision: int) -> bool:
        """The revision that a linearizable read returned, some time after `check_store` was called.

        Returns:
            Whether the store went back.
        """
        watches = self._watches
        if revision >= watches.highest:
            return False
        seen, watches.highest = watches.highest, revision
        for watch in tuple(watches.all):
            # A watch that begins in the future has no events yet.
            if revision < watch.next_revision - 1 <= seen:
                if watch.options.resync:
                    watches.refused.pop(watch, None)
                    self._leave_server(watch)
                    watch.move(Phase.LISTING)
                    watch.rewind()
                    self._owner.start_listing(watch)
                else:
                    self.fail(watch, StoreRolledBackError(revision=revision, seen=seen))
        self._owner.wake()
        return True

    def renewed(self) -> None:
        """Go on with another token than the stream's: refused watches are created on the next stream."""
        refused, self._watches.refused = self._watches.refused, {}
        for watch in refused:
            watch.move(Phase.WAITING)
        if refused:
            if self._stream is not None:
                self._stream.outdate_token()
            self._owner.wake()

    def denied(self, watch: WatchState, error: EtcdError) -> None:
        """Another token would not help a watch that was refused."""
        if watch in self._watches.refused:
            self.fail(watch, error)

    def _go_on(self, watch: WatchState) -> None:
        watch.move(Phase.WAITING)
        if self._stream is None and watch.outage_since is None:
            self._outages.begin(watch, self._lost_at)
        self._create_soon(watch)
        self._owner.wake()

    def _create_soon(self, watch: WatchState) -> None:
        """Queue a watch for creation; a stream that opens later creates all waiting watches."""
        if self._stream is not None:
            self._stream.waiting.append(watch)

    # Calls of the supervisor.

    @property
    def is_needed(self) -> bool:
        """Whether there are watches. Paused ones keep the stream, since they come back."""
        return bool(self._watches.all)

    @property
    def due(self) -> float:
        """The instant at which something is to be sent, or a wait is over."""
        end, stream = self._outages.due, self._stream
        if stream is None or end < (due := stream.due):
            return end
        return due

    def requests(self, now: float) -> "list[pb.WatchRequest]":
        """The requests to send now."""
        return [] if self._stream is None else self._stream.requests(now)

    def on_open(self, endpoint: str, now: float) -> None:
        """A stream is open: all waiting watches are to be created on it."""
        del endpoint
        self._stream = OpenStream(self._watches, now)
        for watch in self._watches.all:
            if watch.phase is Phase.LISTING:
                self._outages.end(watch)

    def make_decoder(self) -> WatchReplyDecoder:
        """The decoder of a large message: a watch that was taken off the server drops its events."""
        return WatchReplyDecoder(self._drops_events, self._has_fragments)

    def _drops_events(self, watch_id: int) -> bool:
        return self._stream is not None and watch_id in self._stream.cancelled

    def _has_fragments(self, watch_id: int) -> bool:
        watch = None if self._stream is None else self._stream.live.get(watch_id)
        return watch is not None and self._watches.fragments.is_requested_for(watch)

    def on_reply(self, reply: WatchReply, now: float) -> None:
        """A message of the server."""
        if self._stream is not None:
            self._stream.on_reply(reply, now)

    def on_time(self, now: float) -> str | None:
        """End the outages that last too long; returns why to give the stream up, if so."""
        if now >= self._outages.due:
            for watch in self._outages.expired(now):
                self.fail(watch, self._owner.outage_error())
        return None if self._stream is None else self._stream.reason_to_leave(now)

    def on_lost(self, error: EtcdError, now: float) -> bool:
        """The stream is gone; returns whether the next one avoids a message that was too large."""
        watches, stream, self._stream = self._watches, self._stream, None
        live: Mapping[int, WatchState] = {}
        if stream is not None:
            live = stream.live
            watches.highest = max(watches.highest, stream.store_revision)
        is_avoided = False
        if isinstance(error, ReplyTooLargeError):
            is_avoided = self._after_too_large(error, live)
        else:
            watches.fragments.clear()
        self._lost_at = now
        for watch in watches.all:
            if watch.phase is Phase.LIVE:
                watch.reconnects += 1
                watch.since = now
                # It may be full by parts of a message that was being taken whole.
                watch.move(Phase.PAUSED if watch.is_full else Phase.WAITING)
            elif watch.phase is Phase.CREATING:
                watch.move(Phase.WAITING)
            if watch.outage_since is None and watch.phase is not Phase.PAUSED:
                watches.outages.begin(watch, now)
        return is_avoided

    def _after_too_large(self, error: ReplyTooLargeError, live: Mapping[int, WatchState]) -> bool:
        watches, watch = self._watches, None if error.watch_id is None else live.get(error.watch_id)
        if watch is None:
            return watches.fragments.request_for_all(watches.all)
        if not watches.fragments.request_for(watch):
            self.fail(watch, copy.copy(error))
        return True

    def on_refused(self, error: EtcdError, now: float) -> bool:
        """Another stream would be refused: all watches end, since they have no deadlines of their own."""
        return False

    def on_end(self, error: EtcdError) -> None:
        """End all watches, since no further stream will be opened."""
        self._stream = None
        ending, self._watches.all = self._watches.all, {}
        self._end_some(ending, error)

    def _end_some(self, ending: dict[WatchState, None], error: EtcdError) -> None:
        """End the oldest of these watches now, and the others in later turns of the loop."""
        for watch in tuple(islice(ending, STEP)):
            del ending[watch]
            if watch.phase is not Phase.ENDED:  # its consumer may have closed it meanwhile
                self._end(watch, copy.copy(error))  # a copy for each: raising an error adds a traceback to it
        if ending:
            self._owner.call_soon(partial(self._end_some, ending, error))

    def _end(self, watch: WatchState, error: EtcdError | None) -> None:
        self._leave_server(watch)
        self._watches.end(watch, error)

    def _leave_server(self, watch: WatchState) -> None:
        if self._stream is not None:
            self._stream.leave(watch)
