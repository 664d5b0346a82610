"""watch/deletion.py: wait_deleted: the watch before the look, what counts as the deletion, and how the wait ends."""

import asyncio
from typing import Any

import pytest

from etcd_aio.errors import CompactedError, EtcdTimeoutError, WatchCancelledError
from etcd_aio.types import Event, EventType, KeyValue
from etcd_aio.watch import deletion
from tests.support.virtual_time import turns
from tests.support.watch_service import ScriptedService, make

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Wait:
    """A wait, with a scripted service for each of its watches."""

    def __init__(self, found: KeyValue | None, revision: int = 0, timeout: float = 60.0) -> None:
        self.found = found
        self.looks = 0
        self.services: list[ScriptedService] = []
        deadline = asyncio.get_running_loop().time() + timeout
        self.task = asyncio.create_task(deletion.wait_deleted(self.watch, self.look, revision, deadline))

    def watch(self) -> Any:
        service, watcher = make(filters=["no_put"])
        self.services.append(service)
        return watcher

    async def look(self) -> KeyValue | None:
        self.looks += 1
        return self.found

    async def begin(self) -> ScriptedService:
        """Let its next watch be created; it looks then."""
        await turns()
        service = self.services[-1]
        assert self.looks == len(self.services) - 1, "the watch is on the server before the look"
        service.created()
        await turns()
        return service


def deleted(service: ScriptedService, revision: int) -> None:
    service.watch.add_events((Event(EventType.DELETE, KeyValue(b"k", mod_revision=revision)),), is_fragment=False)
    service.watch.on_change()


async def test_it_ends_with_the_deletion() -> None:
    wait = Wait(KeyValue(b"k", b"", 5, 8, 2))
    service = await wait.begin()
    assert not wait.task.done()
    deleted(service, 11)
    await wait.task
    assert service.said[-1] == "close"


async def test_a_deletion_before_the_last_change_of_the_key_is_an_older_one() -> None:
    wait = Wait(KeyValue(b"k", b"", 12, 12, 1))
    service = await wait.begin()
    deleted(service, 11)
    await turns()
    assert not wait.task.done()
    deleted(service, 13)
    await wait.task


@pytest.mark.parametrize(
    ("found", "revision", "ends"),
    [
        (None, 0, True),
        (None, 7, True),
        (KeyValue(b"k", b"", 5, 8, 2), 0, False),
        (KeyValue(b"k", b"", 5, 8, 2), 5, False),
        (KeyValue(b"k", b"", 5, 8, 2), 6, False),
        (KeyValue(b"k", b"", 5, 8, 2), 4, True),
    ],
)
async def test_a_key_that_is_gone_or_was_created_again_is_not_waited_for(
    found: KeyValue | None, revision: int, ends: bool
) -> None:
    wait = Wait(found, revision)
    service = await wait.begin()
    assert wait.task.done() == ends
    if not ends:
        deleted(service, 20)
    await wait.task


async def test_after_a_compaction_it_begins_anew() -> None:
    wait = Wait(KeyValue(b"k", b"", 5, 8, 2))
    (await wait.begin()).end(CompactedError())
    await turns()
    assert len(wait.services) == 2
    wait.found = None
    await wait.begin()
    await wait.task


async def test_another_end_of_the_watch_is_raised() -> None:
    wait = Wait(KeyValue(b"k", b"", 5, 8, 2))
    (await wait.begin()).end(WatchCancelledError())
    with pytest.raises(WatchCancelledError):
        await wait.task


@pytest.mark.parametrize("is_entered", [True, False])
async def test_its_deadline_raises_and_closes_the_watch(is_entered: bool) -> None:
    wait = Wait(KeyValue(b"k", b"", 5, 8, 2), timeout=1.0)
    if is_entered:
        await wait.begin()
    with pytest.raises(EtcdTimeoutError, match="not deleted in time"):
        await wait.task
    assert wait.services[-1].said[-1] == "close"


async def test_its_cancellation_closes_the_watch() -> None:
    wait = Wait(KeyValue(b"k", b"", 5, 8, 2))
    service = await wait.begin()
    wait.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait.task
    assert service.said[-1] == "close"
