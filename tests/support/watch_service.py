"""A scripted watch service: a watcher, and the replies that a test makes up."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from etcd_aio.backend import ClientBackend
from etcd_aio.base.call_options import Timeout
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import EtcdError, EtcdTimeoutError
from etcd_aio.types import Event, EventType, KeyValue
from etcd_aio.watch.service import WatchService
from etcd_aio.watch.state import Phase, WatchState
from etcd_aio.watch.watcher import Watcher
from tests.support.backends import shared
from tests.support.virtual_time import turns


def events(*revisions: int) -> tuple[Event, ...]:
    return tuple(Event(EventType.PUT, KeyValue(b"k", b"v", mod_revision=revision)) for revision in revisions)


class ScriptedService:
    """The calls of a watcher, and the replies that a test makes up."""

    def __init__(self) -> None:
        self.state: WatchState | None = None
        self.said: list[str] = []
        self.listing: EtcdError | None = None
        self.refusal: EtcdError | None = None

    @property
    def watch(self) -> WatchState:
        assert self.state is not None
        return self.state

    def clock(self) -> float:
        return asyncio.get_running_loop().time()

    def deadline(self, timeout: Timeout) -> float:
        return self.clock() + (timeout if isinstance(timeout, int | float) else 5.0)

    def add(self, watch: WatchState) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.state = watch
        self.said.append("add")

    def close(self, watch: WatchState) -> None:
        self.said.append("close")
        if watch.phase is not Phase.ENDED:
            watch.move(Phase.ENDED)
        watch.drop()

    def resume(self, watch: WatchState) -> None:
        assert watch.phase is Phase.PAUSED
        self.said.append("resume")

    def request_progress(self, watch: WatchState) -> None:
        del watch
        self.said.append("progress")

    def timeout_error(self, watch: WatchState, since: float) -> EtcdError:
        del watch, since
        return EtcdTimeoutError()

    async def list_first_keys(self, watch: WatchState, deadline: float) -> None:
        del watch, deadline
        if self.listing is not None:
            raise self.listing

    # The server's side.

    def created(self, revision: int = 10) -> None:
        self.watch.move(Phase.CREATING)
        self.watch.begin(1, revision, self.clock())
        self.watch.on_change()

    def come(self, *revisions: int) -> None:
        self.watch.add_events(events(*revisions), is_fragment=False)
        self.watch.on_change()

    def end(self, error: EtcdError) -> None:
        self.watch.error = error
        self.watch.move(Phase.ENDED)
        self.watch.on_change()


def store_on(service_on: Callable[[str], ScriptedService]) -> StoreCalls:
    """A store whose watches are on these services."""

    class Scripted(ClientBackend):
        def _service_on(self, stream: str) -> WatchService:
            return cast("WatchService", service_on(stream))  # as much of one as a watcher uses

    return StoreCalls(Scripted(cast("Any", None), cast("Any", None), shared()))


def make(**options: Any) -> tuple[ScriptedService, Watcher]:
    service = ScriptedService()
    return service, store_on(lambda stream: service).watch("k", **options)


async def entered(**options: Any) -> tuple[ScriptedService, Watcher]:
    service, watcher = make(**options)
    entering = asyncio.create_task(watcher.__aenter__())
    await turns()
    assert not entering.done()
    service.created()
    assert await entering is watcher
    return service, watcher
