"""once/single_flight.py: one call for all that wait, none of which cancels it."""

import asyncio

import pytest

from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import ClientUsageError, EtcdTimeoutError, NoLeaderError
from etcd_aio.once.single_flight import SingleFlight
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Calls:
    def __init__(self, seconds: float = 1.0) -> None:
        self.begun = 0
        self.seconds = seconds
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return self.begun


async def test_all_that_wait_share_a_call_and_the_next_one_begins_another() -> None:
    calls = Calls()
    flight = SingleFlight(calls, "lease")
    assert await asyncio.gather(*(flight.result(NEVER) for _ in range(3))) == [1, 1, 1]
    assert await flight.result(NEVER) == 2


async def test_a_cancelled_or_late_wait_leaves_the_call_alone() -> None:
    calls = Calls()
    flight = SingleFlight(calls, "lease")
    waits = [asyncio.create_task(flight.result(NEVER)) for _ in range(2)]
    await turns()
    waits[0].cancel()
    with pytest.raises(EtcdTimeoutError, match="no lease for exactly-once writes in time"):
        await flight.result(asyncio.get_running_loop().time() + 0.5)
    assert await waits[1] == 1
    assert calls.begun == 1


async def test_its_error_is_raised_by_all_and_the_next_begins_anew() -> None:
    calls = Calls()
    calls.error = NoLeaderError()
    flight = SingleFlight(calls, "lease")
    results = await asyncio.gather(*(flight.result(NEVER) for _ in range(2)), return_exceptions=True)
    assert results == [calls.error] * 2
    calls.error = None
    assert await flight.result(NEVER) == 2


async def test_a_cancelled_call_is_the_end_of_the_block() -> None:
    flight = SingleFlight(Calls(), "lease")
    flight.cancel()
    waiting = asyncio.create_task(flight.result(NEVER))
    await turns()
    flight.cancel()
    with pytest.raises(ClientUsageError, match="has ended"):
        await waiting
    await turns()
    assert not tasks()
