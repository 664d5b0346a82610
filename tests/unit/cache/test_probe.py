"""cache/probe.py: a caller joins only a read that is sent after its call, and any number share one."""

import asyncio

import pytest

from etcd_aio import EtcdError, EtcdTimeoutError
from etcd_aio.base.deadline import NEVER
from etcd_aio.cache.probe import SharedProbe
from tests.support.virtual_time import turns

pytestmark = pytest.mark.anyio


class Reads:
    """Reads that end when the test says so."""

    def __init__(self) -> None:
        self.sent: list[asyncio.Future[int]] = []

    async def __call__(self) -> int:
        self.sent.append(asyncio.get_running_loop().create_future())
        return await self.sent[-1]


async def call(probe: SharedProbe, deadline: float = NEVER) -> "asyncio.Task[int | None]":
    task = asyncio.create_task(probe.revision(deadline))
    await turns()
    return task


async def test_callers_of_one_turn_share_a_read() -> None:
    reads = Reads()
    probe = SharedProbe(reads)
    callers = [asyncio.create_task(probe.revision(NEVER)) for _ in range(100)]
    await turns()
    assert len(reads.sent) == 1
    reads.sent[0].set_result(7)
    assert await asyncio.gather(*callers) == [7] * 100
    assert probe.reads == 1


async def test_a_caller_joins_only_a_read_that_is_sent_later() -> None:
    reads = Reads()
    probe = SharedProbe(reads)
    first = await call(probe)
    late = [await call(probe) for _ in range(3)]
    assert len(reads.sent) == 1
    reads.sent[0].set_result(7)
    await turns()
    assert await first == 7
    assert not any(task.done() for task in late), "the first read may have been answered before their calls"
    assert len(reads.sent) == 2, "one for all of them"
    reads.sent[1].set_result(8)
    assert await asyncio.gather(*late) == [8] * 3
    again = await call(probe)
    reads.sent[2].set_result(9)
    assert await again == 9


async def test_an_error_is_raised_by_each_caller_as_its_own() -> None:
    reads = Reads()
    probe = SharedProbe(reads)
    callers = [await call(probe)]
    callers += [asyncio.create_task(probe.revision(NEVER)) for _ in range(2)]
    await turns()
    cause = ValueError()
    for number in range(2):
        error = EtcdTimeoutError("late")
        error.__cause__ = cause
        reads.sent[number].set_exception(error)
        await turns()
    found = await asyncio.gather(*callers, return_exceptions=True)
    assert len({id(error) for error in found}) == 3
    assert all(isinstance(error, EtcdTimeoutError) and error.__cause__ is cause for error in found)


async def test_a_bug_in_the_read_reaches_the_callers() -> None:
    reads = Reads()
    probe = SharedProbe(reads)
    caller = await call(probe)
    reads.sent[0].set_exception(RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        await caller


async def test_a_deadline_ends_one_caller_alone() -> None:
    reads = Reads()
    probe = SharedProbe(reads)
    patient = await call(probe)
    assert await probe.revision(asyncio.get_running_loop().time()) is None
    reads.sent[0].set_result(7)
    assert await patient == 7


async def test_cancelled_callers_need_no_read() -> None:
    reads = Reads()
    probe = SharedProbe(reads)
    first, second = await call(probe), await call(probe)
    second.cancel()
    reads.sent[0].set_result(7)
    assert await first == 7
    await turns()
    assert len(reads.sent) == 1
    assert not [task for task in asyncio.all_tasks() if "probe" in task.get_name()]


async def test_closing_ends_the_read_and_all_callers() -> None:
    reads = Reads()
    probe = SharedProbe(reads)
    callers = [await call(probe), await call(probe)]
    unwinding = probe.close(EtcdError("closed"))
    await asyncio.wait(unwinding, timeout=60)
    for caller in callers:
        with pytest.raises(EtcdError, match="closed"):
            await caller
    assert reads.sent[0].cancelled()
    assert SharedProbe(reads).close(EtcdError()) == ()


async def test_a_task_that_is_cancelled_from_outside_leaves_no_caller_waiting() -> None:
    reads = Reads()
    probe = SharedProbe(reads)
    callers = [await call(probe), await call(probe)]
    for task in asyncio.all_tasks():
        if "probe" in task.get_name():
            task.cancel()
    await turns()
    for caller in callers:
        with pytest.raises(EtcdError, match="cancelled"):
            await asyncio.wait_for(caller, 60)
    again = await call(probe)
    reads.sent[-1].set_result(9)
    assert await asyncio.wait_for(again, 60) == 9
