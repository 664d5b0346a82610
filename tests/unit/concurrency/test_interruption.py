"""concurrency/interruption.py: what it does to the task that waits, among other cancellations."""

import asyncio

import anyio
import pytest

from etcd_aio.concurrency.interruption import Interruption
from etcd_aio.errors import EtcdError, LeaseLostError, LockLostError, LockTimeoutError

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def requests() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


async def nothing_to_leave(is_cancelled: bool) -> None:
    """There is no key."""


async def wait(interruption: Interruption, seconds: float = 3600.0) -> None:
    async with interruption:
        await asyncio.sleep(seconds)


async def test_a_timeout_becomes_its_error() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(LockTimeoutError):
        await wait(Interruption(2.0, LockTimeoutError, nothing_to_leave))
    assert loop.time() - began == pytest.approx(2.0)
    assert requests() == 0


async def test_the_first_reason_counts() -> None:
    interruption = Interruption(2.0, LockTimeoutError, nothing_to_leave)
    loop = asyncio.get_running_loop()
    loop.call_later(1.0, interruption.interrupt, LockLostError("first"))
    loop.call_later(1.0, interruption.interrupt, LockLostError("second"))
    with pytest.raises(LockLostError, match="first"):
        await wait(interruption)
    assert requests() == 0


async def test_after_it_was_stopped_nothing_interrupts() -> None:
    interruption = Interruption(2.0, LockTimeoutError, nothing_to_leave)
    await wait(interruption, 1.0)
    interruption.interrupt(LockLostError())
    await asyncio.sleep(5)
    assert requests() == 0


async def test_a_reason_that_the_task_itself_brings_about_is_raised_at_the_end() -> None:
    interruption = Interruption(None, LockTimeoutError, nothing_to_leave)
    interruption.interrupt(LockLostError("own"))
    with pytest.raises(LockLostError, match="own") as caught:
        await wait(interruption, 1.0)
    assert caught.value.__cause__ is None
    assert requests() == 0


async def test_an_error_at_the_same_time_becomes_the_cause() -> None:
    interruption = Interruption(None, LockTimeoutError, nothing_to_leave)
    interruption.interrupt(LockLostError())
    with pytest.raises(LockLostError) as caught:
        async with interruption:
            raise EtcdError("what failed")
    assert str(caught.value.__cause__) == "what failed"
    interruption = Interruption(None, LockTimeoutError, nothing_to_leave)
    error = LockLostError()
    error.__cause__ = lost = LeaseLostError()
    interruption.interrupt(error)
    with pytest.raises(LockLostError) as caught:
        async with interruption:
            raise EtcdError("what failed")
    assert caught.value.__cause__ is lost


async def test_another_cancellation_goes_on() -> None:
    async def work() -> None:
        interruption = Interruption(1.0, LockTimeoutError, nothing_to_leave)
        await wait(interruption)

    task = asyncio.create_task(work())
    await asyncio.sleep(1.0)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, LockTimeoutError)):
        await task
    task = asyncio.create_task(work())
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_it_nests_in_timeouts_and_scopes() -> None:
    with pytest.raises(LockTimeoutError):
        async with asyncio.timeout(5):
            await wait(Interruption(1.0, LockTimeoutError, nothing_to_leave))
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(1):
            await wait(Interruption(5.0, LockTimeoutError, nothing_to_leave))
    assert not isinstance(caught.value, LockTimeoutError)
    with anyio.move_on_after(1) as scope:
        await wait(Interruption(5.0, LockTimeoutError, nothing_to_leave))
    assert scope.cancelled_caught
    with anyio.move_on_after(5) as scope, pytest.raises(LockTimeoutError):
        await wait(Interruption(1.0, LockTimeoutError, nothing_to_leave))
    assert not scope.cancelled_caught
    assert requests() == 0
