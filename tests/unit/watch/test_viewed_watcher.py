"""watch/viewed_watcher.py: batches of a wrapped store take time to be shown."""

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from etcd_aio import Event, EventType, KeyRange, KeyValue, WatchBatch
from etcd_aio.base.call_options import UNSET
from etcd_aio.errors import ClientUsageError, CompactedError, EtcdError
from etcd_aio.watch.state import WatchOptions
from etcd_aio.watch.viewed_watcher import ViewedWatcher
from etcd_aio.watch.watcher import Watcher
from tests.support.virtual_time import turns
from tests.support.watch_service import ScriptedService

if TYPE_CHECKING:
    from etcd_aio.watch.service import WatchService

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class View:
    """A view that shows another key, once it may."""

    def __init__(self, name: str) -> None:
        self.keys = KeyRange(name.encode())
        self.may = asyncio.Event()
        self.may.set()
        self.begun = 0

    async def batch(self, batch: WatchBatch) -> WatchBatch:
        self.begun += 1
        await self.may.wait()
        events = [Event(EventType.PUT, KeyValue(self.keys.key, mod_revision=event.revision)) for event in batch]
        return WatchBatch(tuple(events), batch.revision)

    def explain(self, error: EtcdError) -> None:
        error.call += f" as {self.keys.key.decode()}"


async def viewed(*views: View) -> tuple[ScriptedService, Watcher]:
    """A watch seen through these views, the innermost first; entered."""
    service = ScriptedService()
    options = WatchOptions(KeyRange(b"k"))
    watcher: Watcher = ViewedWatcher(cast("WatchService", service), options, 0, UNSET, views)
    entering = asyncio.create_task(watcher.__aenter__())
    await turns()
    service.created()
    return service, await entering


async def test_each_view_shows_what_the_one_within_shows() -> None:
    inner, outer = View("inner"), View("outer")
    service, watcher = await viewed(inner, outer)
    service.come(11, 12)
    assert [(event.key, event.revision) for event in [await anext(watcher), await anext(watcher)]] == [
        (b"outer", 11),
        (b"outer", 12),
    ]
    assert (inner.begun, outer.begun) == (1, 1)
    assert repr(watcher) == "<Watcher KeyRange(b'outer') live after revision 12>"
    await watcher.aclose()


async def test_a_step_that_is_cancelled_meanwhile_loses_nothing() -> None:
    view = View("k")
    service, watcher = await viewed(view)
    service.come(11, 12)
    view.may.clear()
    step = asyncio.ensure_future(anext(watcher))
    await turns()
    statistics = watcher.statistics()
    assert (watcher.revision, statistics.pending_events, statistics.delivered) == (10, 2, 0)
    with pytest.raises(ClientUsageError, match="two tasks"):
        await anext(watcher)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    view.may.set()
    assert [(await anext(watcher)).revision for _ in range(2)] == [11, 12]
    statistics = watcher.statistics()
    assert (watcher.revision, statistics.pending_events, statistics.delivered) == (12, 0, 2)
    await watcher.aclose()


@pytest.mark.parametrize("is_whole", [False, True], ids=["events", "batches"])
async def test_closing_meanwhile_ends_the_step_and_keeps_the_delivered_revision(is_whole: bool) -> None:
    """What was not shown yet is not delivered any more: a watch from `revision + 1` gets it."""
    view = View("k")
    service, watcher = await viewed(view)
    source = watcher.batches() if is_whole else watcher
    service.come(11)
    await anext(source)
    service.come(12, 13)
    view.may.clear()
    step = asyncio.ensure_future(anext(source))
    await turns()
    assert view.begun == 2
    await watcher.aclose()
    view.may.set()
    with pytest.raises(StopAsyncIteration):
        await step
    with pytest.raises(StopAsyncIteration):
        await anext(source)
    assert view.begun == 2
    statistics = watcher.statistics()
    assert (watcher.revision, statistics.pending_events, statistics.delivered) == (11, 0, 1)
    assert service.said == ["add", "close"]


async def test_an_end_meanwhile_comes_after_the_batch_and_is_explained() -> None:
    views = View("inner"), View("outer")
    service, watcher = await viewed(*views)
    service.come(11)
    views[0].may.clear()
    step = asyncio.ensure_future(anext(watcher))
    await turns()
    error = CompactedError()
    error.call = "watch"
    service.end(error)
    views[0].may.set()
    assert (await step).revision == 11
    with pytest.raises(CompactedError) as ended:
        await anext(watcher)
    assert ended.value.call == "watch as inner as outer"
    assert isinstance(watcher, ViewedWatcher)
    await watcher.aclose()
