"""base/suspension.py: how long the machine has slept."""

import asyncio
import time

import pytest

from etcd_aio.base import suspension
from etcd_aio.base.suspension import now, suspended_seconds
from etcd_aio.fake.time import VirtualTimeLoop
from etcd_aio.lease.clock import LeaseClock

pytestmark = pytest.mark.anyio


@pytest.mark.skipif(not suspension.IS_KNOWN, reason="this system does not count how long it is suspended")
async def test_the_lease_clock_is_never_ahead_of_the_systems_clock() -> None:
    clock = LeaseClock(asyncio.get_running_loop().time, suspended_seconds)
    for _ in range(1000):
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        seen = clock.now()
        after = time.clock_gettime(time.CLOCK_BOOTTIME)
        assert before - 0.01 <= seen <= after + 1e-6, "uvloop's own clock may be some milliseconds behind"


async def test_the_time_is_that_of_the_systems_clock() -> None:
    clock = time.CLOCK_BOOTTIME if suspension.IS_KNOWN else time.CLOCK_MONOTONIC
    before = time.clock_gettime(clock)
    assert before <= now() <= time.clock_gettime(clock)


async def test_a_thread_without_a_loop_reads_the_systems_clocks() -> None:
    seen = await asyncio.to_thread(lambda: (suspended_seconds(), now()))
    assert seen[0] == pytest.approx(suspended_seconds(), abs=0.1)
    assert seen[1] == pytest.approx(now(), abs=10.0)


@pytest.mark.virtual_time
async def test_a_loop_with_a_clock_of_its_own_is_asked_alone() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    assert suspended_seconds() == 0.0
    assert now() == loop.time()
    loop.suspend(3600.0)
    assert suspended_seconds() == 3600.0
    assert now() == loop.time() + 3600.0
