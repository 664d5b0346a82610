"""A watch stream, and a test that is its owner, its supervisor and its server."""

from collections.abc import Callable
from dataclasses import replace

from etcd_aio.errors import (
    ConnectionLostError,
    EtcdError,
    NoAvailableEndpointsError,
    ServerError,
)
from etcd_aio.types import Event, EventType, Header, KeyValue, WatchReply
from etcd_aio.types.keys import KeyRange
from etcd_aio.watch.creations import FIRST_ID
from etcd_aio.watch.progress import ProgressRequests
from etcd_aio.watch.resuming_stream import WatchStream
from etcd_aio.watch.state import Phase, WatchOptions, WatchState

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


TOKEN_REFUSED = "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token"


def renewable(bench: Bench) -> list[ServerError]:
    """Promise another token from now on; returns for which refusals it was asked for."""
    bench.has_tokens = True
    return bench.renewals


def creations(bench: Bench) -> list[bool]:
    found = [request.create_request for request in bench.machine.requests(bench.now)]
    return [create.fragment for create in found if create is not None]
