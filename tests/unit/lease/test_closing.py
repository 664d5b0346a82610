"""lease/pool.py, lease/kept_lease.py: a client that is closed at any instant leaves no lease behind."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final

import pytest

from etcd_aio import Client
from etcd_aio.errors import EtcdError, LeaseLostError
from etcd_aio.fake import FakeEtcd, FakeLease
from etcd_aio.lease.pool import CLOSE_SECONDS
from etcd_aio.recipes import DoubleBarrier

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

_TTL: Final = 600  # so that nothing ends by itself
_MOST: Final = 400  # turns; every block is entered by then

BLOCKS: dict[str, Callable[[Client], AbstractAsyncContextManager[Any]]] = {
    "lock": lambda client: client.lock("n", ttl=_TTL),
    "reader": lambda client: client.rwlock("n", ttl=_TTL).reading(),
    "semaphore": lambda client: client.semaphore("n", limit=2, ttl=_TTL),
    "leadership": lambda client: client.election("n", ttl=_TTL).lead(),
    "double barrier": lambda client: DoubleBarrier(client, "n", count=1, ttl=_TTL),
    "in a namespace": lambda client: client.namespace("ns/").lock("n", ttl=_TTL),
}
# Closing does not revoke these once they are entered: etcd keeps such a lease until its TTL ends.
KEPT_BY_ETCD: dict[str, Callable[[Client], AbstractAsyncContextManager[Any]]] = {
    "session": lambda client: client.session(ttl=_TTL),
    "lease": lambda client: client.lease(_TTL),
}


@pytest.mark.parametrize("latency", [0.0, 0.05])
@pytest.mark.parametrize("kind", [*BLOCKS, *KEPT_BY_ETCD])
async def test_a_client_that_is_closed_at_any_turn_of_an_acquisition_leaves_no_lease(kind: str, latency: float) -> None:
    make = (BLOCKS | KEPT_BY_ETCD)[kind]
    was_under_way = 0
    for turns in range(_MOST):
        entered: list[str] = []
        is_entered, left = await _closed_after(turns, make, latency, entered)
        if is_entered and kind in KEPT_BY_ETCD:
            break
        assert left == (), turns
        was_under_way += not is_entered
        if is_entered:
            break
    else:
        raise AssertionError("it is never entered")
    assert was_under_way > 3, "the block never waited: the test proves nothing"


async def _closed_after(
    turns: int, make: Callable[[Client], AbstractAsyncContextManager[Any]], latency: float, entered: list[str]
) -> tuple[bool, tuple[FakeLease, ...]]:
    """Close a client after so many turns, or steps of a tenth of the latency.

    Returns:
        Whether the block was entered before that, and the leases that are left.
    """
    async with FakeEtcd(seed=turns, latency=latency) as fake:
        client = await fake.client().connect()
        await client.get("x")

        async def hold() -> None:
            with suppress(EtcdError):
                async with make(client):
                    entered.append("yes")
                    await asyncio.sleep(100.0)

        holding = asyncio.create_task(hold())
        for _ in range(turns):
            await asyncio.sleep(latency / 10)
        is_entered = bool(entered)
        await client.aclose()
        await asyncio.sleep(10 * CLOSE_SECONDS)
        left = fake.leases
        holding.cancel()
        await asyncio.wait([holding])
        return is_entered, left


async def _sleep() -> None:
    await asyncio.sleep(100.0)


async def _sleep_nested() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_sleep())


async def _clean_up() -> None:
    try:
        await _sleep()
    finally:
        await asyncio.sleep(CLOSE_SECONDS / 2)


CANCELLED: dict[str, Callable[[Client], AbstractAsyncContextManager[Any]]] = {
    **KEPT_BY_ETCD,
    "session that signals": lambda client: client.session(ttl=_TTL, on_lost="signal"),
    "lease that signals": lambda client: client.lease(_TTL, on_lost="signal"),
}


@pytest.mark.parametrize("latency", [0.0, 0.05])
@pytest.mark.parametrize("body", [_sleep, _sleep_nested, _clean_up])
@pytest.mark.parametrize("kind", CANCELLED)
async def test_a_block_that_is_cancelled_as_its_client_is_closed_leaves_no_lease(
    kind: str, body: Callable[[], Awaitable[None]], latency: float
) -> None:
    async with FakeEtcd(latency=latency) as fake:
        client = await fake.client().connect()
        entered = asyncio.Event()

        async def hold() -> None:
            async with CANCELLED[kind](client):
                entered.set()
                await body()

        holding = asyncio.create_task(hold())
        await entered.wait()
        holding.cancel()
        await client.aclose()
        assert holding.cancelled()
        assert fake.leases == ()


async def test_a_task_that_is_cancelled_in_its_block_can_close_the_client_itself() -> None:
    async with FakeEtcd() as fake:
        client = await fake.client().connect()
        closed: list[float] = []

        async def hold() -> None:
            task = asyncio.current_task()
            assert task is not None
            async with client.lease(_TTL):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
                before = asyncio.get_running_loop().time()
                await client.aclose()
                closed.append(asyncio.get_running_loop().time() - before)

        with pytest.raises(LeaseLostError):
            await asyncio.create_task(hold())
        assert closed == [pytest.approx(0.0, abs=CLOSE_SECONDS / 2)], "it waited for itself"


async def test_a_block_that_swallows_its_cancellation_delays_the_close_by_half_a_second() -> None:
    async with FakeEtcd() as fake:
        client = await fake.client().connect()
        entered = asyncio.Event()

        async def hold() -> None:
            async with client.lease(_TTL):
                entered.set()
                with suppress(asyncio.CancelledError):
                    await _sleep()
                await asyncio.sleep(10.0)

        holding = asyncio.create_task(hold())
        await entered.wait()
        holding.cancel()
        before = asyncio.get_running_loop().time()
        await client.aclose()
        assert asyncio.get_running_loop().time() - before == pytest.approx(CLOSE_SECONDS, abs=0.01)
        await asyncio.wait([holding])
