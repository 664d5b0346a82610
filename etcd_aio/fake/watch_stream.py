"""A stream of the service Watch. Pure."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from etcd_aio import pb
from etcd_aio.codec import decode, encode
from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.node import MOST_BYTES, Node
from etcd_aio.fake.refusals import Reason, Refusal
from etcd_aio.fake.server_streams import ServerStream
from etcd_aio.fake.watchers import HubWatcher, WatcherDelivery, WatcherState

_NO_ID: Final = -1
_FRAGMENT_BYTES: Final = MOST_BYTES + 2**19
_Filter: Final = pb.WatchCreateRequestFilterType
EMPTY_RANGE: Final = "mvcc: watcher range is empty"
DUPLICATE_ID: Final = "mvcc: duplicate watch ID provided on the WatchStream"


@dataclass(slots=True, eq=False)
class _Watch:
    """A watcher, as its stream knows it.

    Attributes:
        prev_kv: events have the key as it was before.
        fragment: large deliveries are split.
        wants_progress: the stream tells from time to time how far it is.
        was_quiet: there was no event since the last time.
    """

    watcher: HubWatcher
    prev_kv: bool
    fragment: bool
    wants_progress: bool
    was_quiet: bool = True


class ServerWatchStream(ServerStream):
    """One stream with its watchers.

    Args:
        permit: raises Refusal if the caller may not read an interval now.
        progress_every: seconds from one report of progress to the next.
        needs_leader: whether it ends when the member has no leader.
    """

    def __init__(
        self,
        cluster: FakeCluster,
        node: Node,
        permit: Callable[[float, bytes, bytes], None],
        progress_every: float,
        now: float,
        *,
        needs_leader: bool = False,
    ) -> None:
        super().__init__(node.streams, needs_leader=needs_leader)
        self._cluster = cluster
        self._node = node
        self._hub = node.hub
        self._permit = permit
        self._progress_every = progress_every
        self._watches: dict[int, _Watch] = {}
        self._next_id = 0
        self.due = now + progress_every

    def __len__(self) -> int:
        return len(self._watches)

    def watchers(self) -> Iterator[tuple[int, HubWatcher]]:
        """The watchers and their ids, but for those that were told of a compaction and get nothing more."""
        for watch_id, watch in self._watches.items():
            if watch.watcher.state is not WatcherState.COMPACTED:
                yield watch_id, watch.watcher

    def receive(self, payload: bytes, now: float) -> None:
        request = decode(pb.WatchRequest, payload)
        if request.create_request is not None:
            self._create(request.create_request, now)
        elif request.cancel_request is not None:
            self._cancel(request.cancel_request.watch_id)
        elif request.progress_request is not None:
            self._tell_progress()

    def half_close(self) -> None:
        """Do nothing: watchers go on until the stream is cancelled."""

    def tick(self, now: float) -> None:
        """Report the progress of the watchers that want it, and had no events since the last time."""
        if now < self.due:
            return
        self.due = now + self._progress_every
        for watch_id, watch in self._watches.items():
            if watch.wants_progress and watch.was_quiet:
                revision = self._hub.progress([watch.watcher])
                if revision:
                    self._reply(watch_id, revision)
            watch.was_quiet = True

    def close(self) -> None:
        for watch in self._watches.values():
            self._hub.remove(watch.watcher)
        self._watches.clear()
        super().close()

    # Requests.

    def _create(self, request: pb.WatchCreateRequest, now: float) -> None:
        key = request.key or b"\x00"
        end = request.range_end
        if request.start_revision < 0:
            self._refuse(Reason.COMPACTED.text)
            return
        try:
            is_open = end == b"\x00" and not self._cluster.release.guards_open_watches
            self._permit(now, key, b"" if is_open else end)
        except Refusal as refusal:
            self._refuse(refusal.printed)
            return
        if end and end != b"\x00" and key >= end:
            self._refuse(EMPTY_RANGE)
            return
        watch_id = request.watch_id
        if watch_id in self._watches and watch_id:
            self._refuse(DUPLICATE_ID)
            return
        if not watch_id:
            while self._next_id in self._watches:
                self._next_id += 1
            watch_id = self._next_id
            self._next_id += 1
        watcher = HubWatcher(
            key,
            end,
            request.start_revision,
            lambda delivery: self._deliver(watch_id, delivery),
            without_puts=_Filter.NOPUT in request.filters,
            without_deletes=_Filter.NODELETE in request.filters,
        )
        self._watches[watch_id] = _Watch(watcher, request.prev_kv, request.fragment, request.progress_notify)
        self._reply(watch_id, self._node.store.revision, created=True)
        self._hub.add(watcher, now)

    def _refuse(self, reason: str) -> None:
        revision = self._node.store.revision
        self._reply(_NO_ID, revision, created=True, canceled=True, cancel_reason=reason)

    def _cancel(self, id: int) -> None:
        watch = self._watches.pop(id, None)
        if watch is not None:
            self._hub.remove(watch.watcher)
            self._reply(id, self._node.store.revision, canceled=True)

    def _tell_progress(self) -> None:
        """Say how far all watchers are, if they are equally far."""
        if self._watches:
            revision = self._hub.progress(
                (watch.watcher for watch in self._watches.values()),
                waits_for_start=self._cluster.release.progress_waits_for_start,
            )
            if revision:
                self._reply(_NO_ID, revision)

    # Events.

    def _deliver(self, id: int, delivery: WatcherDelivery) -> None:
        watch = self._watches[id]
        if delivery.compacted:
            self._reply(id, 0, canceled=True, compact_revision=delivery.compacted)
            return
        events = [self._with_previous(event) for event in delivery.events] if watch.prev_kv else list(delivery.events)
        watch.was_quiet = False
        reply = self._response(id, delivery.revision, events=events)
        for fragment in _fragments(reply) if watch.fragment else (reply,):
            self.send(fragment)

    def _with_previous(self, event: pb.Event) -> pb.Event:
        """The event with the key as it was before; without that if the key is new, or its revision is compacted."""
        change = event.kv
        if change is not None and change.create_revision != change.mod_revision:
            with suppress(Refusal):
                event.prev_kv = self._node.store.get(change.key, change.mod_revision - 1)
        return event

    def _reply(self, id: int, revision: int, **fields: Any) -> None:
        self.send(self._response(id, revision, **fields))

    def _response(self, id: int, revision: int, **fields: Any) -> pb.WatchResponse:
        header = self._cluster.header(self._node)
        header.revision = revision
        return pb.WatchResponse(header=header, watch_id=id, **fields)


def _fragments(reply: pb.WatchResponse) -> Iterator[pb.WatchResponse]:
    """Split a delivery whose encoding is too large; each part has at least one event."""
    events = reply.events
    if len(events) < 2 or len(encode(reply)) < _FRAGMENT_BYTES:
        yield reply
        return
    reply.events = []
    empty = len(encode(reply)) + 2  # the flag
    start = 0
    while start < len(events):
        size, stop = empty, start
        while stop < len(events):
            size += len(encode(pb.WatchResponse(events=[events[stop]])))
            if stop > start and size >= _FRAGMENT_BYTES:
                break
            stop += 1
        yield pb.WatchResponse(
            header=reply.header, watch_id=reply.watch_id, events=events[start:stop], fragment=stop < len(events)
        )
        start = stop
