"""cache/waiting.py: waiting for a revision: who is woken, by what, and what stays."""

import asyncio
from typing import Any

import pytest

from etcd_aio import WatchBatch
from etcd_aio.base.deadline import NEVER
from etcd_aio.cache.state import Replica
from etcd_aio.cache.waiting import RevisionWaiters, raised_again
from etcd_aio.errors import CacheError
from tests.support.virtual_time import timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def at(revision: int) -> tuple[Replica[Any], RevisionWaiters]:
    replica: Replica[Any] = Replica(is_decoded=False)
    replica.loaded(replica.new_base(), revision, 0.0)
    return replica, RevisionWaiters(replica)


def move(replica: Replica[Any], waiters: RevisionWaiters, revision: int) -> None:
    replica.mark(WatchBatch((), revision))
    waiters.moved()


def wait(waiters: RevisionWaiters, revision: int, deadline: float = NEVER) -> "asyncio.Task[bool]":
    return asyncio.create_task(waiters.wait(revision, deadline))


async def test_a_revision_that_is_there_needs_no_waiting() -> None:
    _, waiters = at(10)
    assert waiters.has(10)
    assert not waiters.has(11)
    assert await waiters.wait(10, NEVER)
    assert await waiters.wait(3, 0.0), "not even if the time is over"
    assert not waiters.are_waiting


async def test_each_task_is_woken_by_its_own_revision() -> None:
    replica, waiters = at(10)
    tasks = [wait(waiters, revision) for revision in (11, 12, 12, 14)]
    await turns()
    assert (len(waiters), waiters.are_waiting) == (4, True)
    move(replica, waiters, 12)
    await turns()
    assert [task.done() for task in tasks] == [True, True, True, False]
    assert len(waiters) == 1
    move(replica, waiters, 100)
    assert await asyncio.gather(*tasks) == [True] * 4
    assert not waiters.are_waiting
    assert timers() == 0


async def test_a_deadline_ends_one_task_alone() -> None:
    replica, waiters = at(10)
    deadline = asyncio.get_running_loop().time() + 1.0
    late, patient = wait(waiters, 12, deadline), wait(waiters, 12)
    assert not await late
    assert asyncio.get_running_loop().time() == deadline
    assert len(waiters) == 1
    move(replica, waiters, 12)
    assert await patient
    assert not await waiters.wait(13, deadline)


async def test_a_cancelled_task_leaves_nothing() -> None:
    replica, waiters = at(10)
    cancelled, other = wait(waiters, 12), wait(waiters, 12)
    await turns()
    cancelled.cancel()
    await turns()
    assert len(waiters) == 1
    move(replica, waiters, 12)
    assert await other
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def test_the_revision_of_another_store_wakes_no_task() -> None:
    """A replaced store means nothing by its revisions, and a task that waited for one has to ask again."""
    replica, waiters = at(10)
    waiting = wait(waiters, 12)
    await turns()
    replica.store_replaced()
    assert not waiters.has(5)
    replica.revision = 50
    waiters.moved()
    await turns()
    assert not waiting.done()
    waiters.restart()
    assert not await waiting


async def test_an_outage_keeps_tasks_waiting_but_its_content_is_one_of_the_store() -> None:
    replica, waiters = at(10)
    replica.fall_behind()
    assert waiters.has(10)
    waiting = wait(waiters, 11)
    await turns()
    replica.resume()
    waiters.moved()
    await turns()
    assert not waiting.done()
    move(replica, waiters, 11)
    assert await waiting


async def test_before_the_keys_are_loaded_every_revision_is_waited_for() -> None:
    replica: Replica[Any] = Replica(is_decoded=False)
    waiters = RevisionWaiters(replica)
    waiting = wait(waiters, 0)
    await turns()
    assert not waiting.done()
    replica.loaded(replica.new_base(), 5, 0.0)
    waiters.moved()
    assert await waiting


async def test_the_end_is_raised_by_each_task_as_its_own_and_by_later_ones() -> None:
    _, waiters = at(10)
    tasks = [wait(waiters, 12) for _ in range(3)]
    await turns()
    reason = CacheError("over")
    waiters.close(reason)
    found = await asyncio.gather(*tasks, return_exceptions=True)
    with pytest.raises(CacheError) as later:
        await waiters.wait(1, NEVER)
    with pytest.raises(CacheError):
        waiters.has(1)
    errors = [*found, later.value, reason]
    assert len({id(error) for error in errors}) == 5
    assert {str(error) for error in errors} == {str(reason)}
    assert not waiters.are_waiting


def test_a_bug_is_raised_as_it_is() -> None:
    bug = RuntimeError("a bug")
    assert raised_again(bug) is bug
    error = CacheError("over")
    error.__cause__ = bug
    again = raised_again(error)
    assert again is not error
    assert again.__cause__ is bug
