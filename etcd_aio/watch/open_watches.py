"""OpenWatches: all watches of a client on a stream, and what is known of them from one stream to the next. Pure."""

from collections.abc import Callable

from etcd_aio.errors import EtcdError
from etcd_aio.observing import WatchAdvance
from etcd_aio.watch.fragments import Fragments
from etcd_aio.watch.outages import Outages
from etcd_aio.watch.state import Phase, WatchState
from etcd_aio.watch.stream_owner import WatchStreamOwner


class OpenWatches:
    """The watches that have not ended.

    Args:
        owner: their surroundings.
        on_advance: called when a watch got events; None if that is not observed.
        client: name of the client; empty if it has none.

    Attributes:
        owner, on_advance, client: the same.
        all: the watches, the oldest first.
        refused: the watches that wait for another token.
        asking: the watches whose consumers have asked for their progress.
        outages: of the watches.
        fragments: which watches request fragments.
        highest: the last revision that any member was seen to have.
        is_careful: creations go one by one, since a peer has mixed up watches.
    """

    def __init__(
        self, owner: WatchStreamOwner, on_advance: Callable[[WatchAdvance], None] | None = None, client: str = ""
    ) -> None:
        self.owner = owner
        self.on_advance = on_advance
        self.client = client
        self.all: dict[WatchState, None] = {}
        self.refused: dict[WatchState, None] = {}
        self.asking: dict[WatchState, None] = {}
        self.outages = Outages()
        self.fragments = Fragments()
        self.highest = 0
        self.is_careful = False

    def put_last(self, watch: WatchState | None) -> None:
        """Make a watch the youngest, which is created behind all others."""
        if watch is not None and watch in self.all:
            del self.all[watch]
            self.all[watch] = None

    def end(self, watch: WatchState, error: EtcdError | None) -> None:
        """End a watch that is on no server; an error reaches its consumer behind the batches that it has not taken."""
        if error is not None:
            self.owner.explain(watch, error)
        if watch.phase is Phase.LISTING:
            self.owner.stop_listing(watch)
        watch.error = error
        watch.move(Phase.ENDED)
        self.outages.end(watch)
        self.fragments.forget(watch)
        for watches in (self.all, self.refused, self.asking):
            watches.pop(watch, None)
        if error is not None:
            watch.on_change()

    def add_progress(self, watch: WatchState, revision: int, *, is_reliable: bool) -> None:
        """Everything up to a revision was handed over; see `WatchState.add_progress`."""
        before = len(watch.pending)
        was_asked = watch.wants_progress
        watch.add_progress(revision, is_reliable=is_reliable)
        if was_asked and not watch.wants_progress:
            self.asking.pop(watch, None)
        if watch.pending and (was_asked or len(watch.pending) != before):
            watch.on_change()
