"""A small model of etcd's side of the watch stream, as its source describes it: nothing runs by itself.

It has revisions, watchers that are behind or not, the two channels of a stream that overtake each other, and fragments.
"""

from collections import deque
from dataclasses import dataclass, field

from etcd_aio import pb
from etcd_aio.types import Event, EventType, Header, KeyValue, WatchReply

Change = tuple[bytes, bool]
"""A key, and whether it is put."""


class ModelStore:
    """Every revision that ever was."""

    def __init__(self) -> None:
        self.history: list[tuple[Event, ...]] = [(), ()]  # revisions 0 and 1
        self.compacted = 0

    @property
    def revision(self) -> int:
        return len(self.history) - 1

    def write(self, *changes: Change) -> int:
        revision = len(self.history)
        self.history.append(
            tuple(
                Event(
                    EventType.PUT if is_put else EventType.DELETE, KeyValue(key, b"v" * is_put, mod_revision=revision)
                )
                for key, is_put in dict(changes).items()
            )
        )
        return revision

    def events(self, first: int, last: int, key: bytes | None) -> tuple[Event, ...]:
        found = (event for revision in self.history[first : last + 1] for event in revision)
        return tuple(event for event in found if key is None or event.key == key)

    def state(self, revision: int, key: bytes | None = None) -> dict[bytes, int]:
        """The keys that there were, and their revisions."""
        there: dict[bytes, int] = {}
        for event in self.events(0, revision, key):
            if event.is_put:
                there[event.key] = event.revision
            else:
                there.pop(event.key, None)
        return there


@dataclass
class Watcher:
    """One watcher of a stream."""

    id: int
    key: bytes | None
    next: int
    fragment: bool
    start: int
    is_dead: bool = False


@dataclass
class ModelStream:
    """The server's end of one stream, on a member that may be behind the others.

    Either etcd's, which takes the ids that the client chooses and answers in order, or that of etcd's grpc-proxy, which
    chooses its own and answers in any order.
    """

    store: ModelStore
    visible: int
    is_proxy: bool = False
    inbox: deque[pb.WatchRequest] = field(default_factory=deque)
    control: deque[WatchReply] = field(default_factory=deque)
    channel: deque[WatchReply] = field(default_factory=deque)
    wire: deque[WatchReply] = field(default_factory=deque)
    watchers: dict[int, Watcher] = field(default_factory=dict)
    announced: set[int] = field(default_factory=set)
    early: dict[int, list[WatchReply]] = field(default_factory=dict)
    next_id: int = 0
    refusal: str = ""

    def header(self, revision: int = 0) -> Header:
        return Header(1, 1, revision or self.visible, 1)

    def serve(self) -> None:
        """Take one request."""
        if not self.inbox:
            return
        request = self.inbox.popleft()
        if request.create_request is not None:
            create = request.create_request
            if self.refusal:
                reason, self.refusal = self.refusal, ""
                self.control.append(WatchReply(self.header(), -1, True, True, 0, reason))
                return
            start = create.start_revision
            key = None if create.range_end else create.key
            watch_id = self.next_id if self.is_proxy else create.watch_id
            watcher = Watcher(watch_id, key, start or self.visible + 1, create.fragment, start)
            self.next_id += 1
            self.watchers[watcher.id] = watcher
            self.control.append(WatchReply(self.header(), watcher.id, created=True))
        elif request.cancel_request is not None:
            if self.watchers.pop(request.cancel_request.watch_id, None) is not None:
                self.control.append(WatchReply(self.header(), request.cancel_request.watch_id, canceled=True))
        elif self.watchers and all(self.is_synced(one) for one in self.watchers.values()):
            self.channel.append(WatchReply(self.header(), -1))

    def created_late(self) -> None:
        """As `serve`, but the store moves on before the reply reads how far it is."""
        before = self.next_id
        self.serve()
        self.catch_up()
        if self.next_id != before:
            reply = self.control.pop()
            self.control.append(WatchReply(self.header(), reply.watch_id, created=True))

    def is_synced(self, watcher: Watcher) -> bool:
        return watcher.next > self.visible and self.visible >= watcher.start and not watcher.is_dead

    def sync(self, watcher: Watcher, revisions: int) -> None:
        """Send a watcher what it lacks, of at most so many revisions."""
        if watcher.is_dead:
            return
        if watcher.next <= self.visible and watcher.next < self.store.compacted:
            watcher.is_dead = True
            reply = WatchReply(self.header(), watcher.id, False, True, self.store.compacted)
            self.channel.append(reply)
            return
        sent = 0
        while watcher.next <= self.visible and sent < revisions:
            last = watcher.next
            events = self.store.events(watcher.next, last, watcher.key)
            while last < self.visible and sent + 1 < revisions:
                last += 1
                sent += 1
                events = self.store.events(watcher.next, last, watcher.key)
            watcher.next = last + 1
            sent += 1
            if events:
                # The header has the revision of the store, not of the events.
                self.channel.append(WatchReply(self.header(), watcher.id, events=events))

    def progress(self, watcher: Watcher) -> None:
        if self.is_synced(watcher):
            self.channel.append(WatchReply(self.header(), watcher.id))

    def catch_up(self) -> None:
        self.visible = self.store.revision

    def send(self, *, control_first: bool, cuts: int) -> None:
        """Move one reply to the wire, from one channel or the other."""
        if self.control and (control_first or not self.channel):
            reply = self.control.pop() if self.is_proxy else self.control.popleft()
            self.wire.append(reply)
            if reply.created and not reply.canceled:
                self.announced.add(reply.watch_id)
                for early in self.early.pop(reply.watch_id, []):
                    self.wire.append(early)
        elif self.channel:
            reply = self.channel.popleft()
            if reply.watch_id >= 0 and reply.watch_id not in self.announced:
                self.early.setdefault(reply.watch_id, []).append(reply)
                return
            watcher = self.watchers.get(reply.watch_id)
            if watcher is not None and watcher.fragment:
                self.wire.extend(fragments(reply, cuts))
            else:
                self.wire.append(reply)


def fragments(reply: WatchReply, cuts: int) -> list[WatchReply]:
    """The reply in pieces, cut where `cuts` has a bit."""
    pieces: list[list[Event]] = [[]]
    for number, event in enumerate(reply.events):
        if pieces[-1] and cuts >> number % 10 & 1:
            pieces.append([])
        pieces[-1].append(event)
    if len(pieces) == 1:
        return [reply]
    return [
        WatchReply(reply.header, reply.watch_id, fragment=number + 1 < len(pieces), events=tuple(piece))
        for number, piece in enumerate(pieces)
    ]
