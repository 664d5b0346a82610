"""watch/watcher.py: entering, iterating and leaving. The service is scripted."""

import asyncio
import gc
import warnings

import pytest

from etcd_aio.errors import ClientUsageError, CompactedError, EtcdTimeoutError, PermissionDeniedError, WrongLoopError
from etcd_aio.types import KeyValue
from etcd_aio.watch.compaction_resync import difference
from etcd_aio.watch.state import Phase
from etcd_aio.watch.watcher import Watcher
from tests.support.virtual_time import turns
from tests.support.watch_service import entered, make

# Most of these tests drop what they entered.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:watch was not closed:ResourceWarning"),
    pytest.mark.virtual_time,
]


async def test_entering_waits_for_the_server_until_its_timeout() -> None:
    service, watcher = make(timeout=2.0)
    began = service.clock()
    with pytest.raises(EtcdTimeoutError):
        await watcher.__aenter__()
    assert service.clock() == began + 2.0
    assert service.said == ["add", "close"]


async def test_entering_raises_the_error_of_a_client_that_cannot_be_used() -> None:
    service, watcher = make()
    service.refusal = WrongLoopError()
    for _ in range(2):
        with pytest.raises(WrongLoopError):
            await watcher.__aenter__()
    await watcher.aclose()
    assert service.said == []
    with pytest.raises(ClientUsageError, match="once"):
        await watcher.__aenter__()


@pytest.mark.parametrize("how", ["refused", "cancelled", "not listed"])
async def test_entering_that_fails_leaves_nothing_behind(how: str) -> None:
    service, watcher = make(on_compaction="resync")
    entering = asyncio.create_task(watcher.__aenter__())
    await turns()
    if how == "refused":
        service.end(PermissionDeniedError())
    elif how == "cancelled":
        entering.cancel()
    else:
        service.listing = PermissionDeniedError()
        service.created()
    with pytest.raises(asyncio.CancelledError if how == "cancelled" else PermissionDeniedError):
        await entering
    assert service.said == ["add", "close"]


async def test_events_come_singly_and_revision_counts_whole_revisions() -> None:
    service, watcher = await entered()
    assert watcher.revision == 10
    service.come(11, 11, 12)
    found = [(watcher.revision, (await anext(watcher)).revision) for _ in range(3)]
    assert found == [(10, 11), (10, 11), (11, 12)]
    assert watcher.revision == 12
    assert watcher.statistics().delivered == 3


async def test_events_of_a_batch_are_pending_until_each_is_delivered() -> None:
    service, watcher = await entered()
    service.come(11, 11, 12)
    counts = []
    for _ in range(3):
        await anext(watcher)
        statistics = watcher.statistics()
        counts.append((statistics.delivered, statistics.pending_events))
    assert counts == [(1, 2), (2, 1), (3, 0)]


async def test_a_waiting_step_gets_the_next_event_and_a_cancelled_one_loses_none() -> None:
    service, watcher = await entered()
    step = asyncio.ensure_future(anext(watcher))
    await turns()
    service.come(11)
    step.cancel()  # after its future was resolved, before it ran
    with pytest.raises(asyncio.CancelledError):
        await step
    assert (await anext(watcher)).revision == 11


async def test_progress_advances_the_revision_and_is_no_event() -> None:
    service, watcher = await entered(progress_notify=True)
    step = asyncio.ensure_future(anext(watcher))
    await turns()
    service.watch.add_progress(20, is_reliable=True)
    service.watch.on_change()
    await turns()
    assert watcher.revision == 20
    assert not step.done()
    service.come(21)
    assert (await step).revision == 21


async def test_batches_are_whole() -> None:
    service, watcher = await entered()
    batches = watcher.batches()
    service.come(11, 11, 12)
    batch = await anext(batches)
    assert (len(batch), batch.revision, watcher.revision) == (3, 12, 12)
    assert watcher.batches() is not batches
    with pytest.raises(ClientUsageError, match="not both"):
        await anext(watcher)
    await batches.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(batches)


async def test_whoever_takes_from_a_paused_watch_has_it_go_on() -> None:
    service, watcher = await entered()
    for revision in (11, 12):
        service.come(revision)
    assert (await anext(watcher)).revision == 11
    assert service.said == ["add"]
    service.watch.move(Phase.PAUSED)
    assert (await anext(watcher)).revision == 12
    assert service.said == ["add", "resume"]


async def test_the_error_of_the_end_comes_after_the_events_every_time() -> None:
    service, watcher = await entered()
    service.come(11)
    service.end(CompactedError(compact_revision=20))
    assert (await anext(watcher)).revision == 11
    for _ in range(2):
        with pytest.raises(CompactedError) as caught:
            await anext(watcher)
        assert caught.value is service.watch.error
    assert watcher.revision == 11
    with pytest.raises(CompactedError):
        await watcher.request_progress()


async def test_the_traceback_of_an_error_that_is_raised_often_does_not_grow() -> None:
    service, watcher = await entered()
    service.end(CompactedError(compact_revision=20))
    depths = []
    for _ in range(3):
        for use in (lambda: anext(watcher), watcher.request_progress):
            with pytest.raises(CompactedError) as caught:
                await use()
            depths.append(len(caught.traceback))
    assert depths[0] == depths[2] == depths[4]
    assert depths[1] == depths[3] == depths[5]


async def test_the_revision_does_not_advance_before_a_whole_resync_is_delivered() -> None:
    # The deletes come last, and may have happened before the puts: a new watch from a put would not tell of them.
    service, watcher = await entered()
    service.watch.add_progress(15, is_reliable=True)
    found = difference([KeyValue(b"a", b"", mod_revision=25)], [b"gone"], 30, hides_deletes=False)
    service.watch.add_resync(found, 30)
    service.watch.on_change()
    seen = [((await anext(watcher)).key, watcher.revision) for _ in range(2)]
    assert seen == [(b"a", 15), (b"gone", 30)]


async def test_one_batch_may_be_taken_by_itself() -> None:
    service, watcher = make()
    with pytest.raises(ClientUsageError, match="not entered"):
        await watcher.next_batch()
    service, watcher = await entered()
    service.come(11, 12)
    assert len(await watcher.next_batch()) == 2
    assert watcher.statistics().delivered == 2
    with pytest.raises(ClientUsageError, match="not both"):
        await anext(watcher)


async def test_a_watch_that_was_not_closed_is_closed_when_it_is_collected() -> None:
    service, watcher = await entered()
    await turns()  # what it was entered by is gone
    with pytest.warns(ResourceWarning, match="watch was not closed: <Watcher"):
        del watcher
    await turns()
    assert service.said == ["add", "close"]


async def test_a_watch_that_an_unreferenced_task_waits_for_is_not_collected() -> None:
    service, _ = made = make()
    del made
    seen: list[int] = []

    async def follow(watcher: Watcher) -> None:
        async with watcher:
            async for event in watcher:
                seen.append(event.revision)
                if event.revision == 12:
                    break

    asyncio.create_task(follow(_))  # noqa: RUF006 - what is tested
    del _
    await turns()
    gc.collect()
    service.created()
    await turns()
    gc.collect()
    service.come(11)
    await turns()
    gc.collect()
    service.come(12)
    await turns()
    assert seen == [11, 12]
    assert service.said == ["add", "close"]


@pytest.mark.parametrize("how", ["left", "ended", "never entered"])
async def test_a_watch_that_is_not_on_the_server_is_collected_without_a_warning(how: str) -> None:
    service, watcher = make() if how == "never entered" else await entered()
    if how == "left":
        await watcher.aclose()
    elif how == "ended":
        service.end(CompactedError())
    await turns()
    said = list(service.said)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del watcher
        gc.collect()
    await turns()
    assert service.said == said


async def test_closing_ends_a_waiting_step_and_keeps_the_delivered_revision() -> None:
    service, watcher = await entered()
    service.come(11, 12)
    service.come(13)
    assert (await anext(watcher)).revision == 11
    await watcher.aclose()
    await watcher.aclose()
    assert service.said == ["add", "close"]
    assert watcher.revision == 11
    assert watcher.statistics().delivered == 1
    with pytest.raises(StopAsyncIteration):
        await anext(watcher)
    other, waiting = await entered()
    step = asyncio.ensure_future(anext(waiting))
    await turns()
    await waiting.aclose()
    with pytest.raises(StopAsyncIteration):
        await step
    assert other.said == ["add", "close"]


async def test_wrong_use_raises_an_error_that_says_what_to_do() -> None:
    service, watcher = make()
    for use in (lambda: anext(watcher), watcher.request_progress):
        with pytest.raises(ClientUsageError, match="not entered"):
            await use()
    with pytest.raises(ClientUsageError, match="not entered"):
        watcher.batches()
    with pytest.raises(ClientUsageError, match="write `async with"):
        await watcher  # type: ignore[misc] # what is tested
    service, watcher = await entered()
    with pytest.raises(ClientUsageError, match="once"):
        await watcher.__aenter__()
    step = asyncio.ensure_future(anext(watcher))
    await turns()
    with pytest.raises(ClientUsageError, match="two tasks"):
        await anext(watcher)
    service.come(11)
    await step
    await watcher.request_progress()
    assert service.said == ["add", "progress"]
