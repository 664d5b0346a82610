"""Recipes on a real server, and together with those of the official Go client. Most of their tests run on the fake."""

import asyncio

import pytest

from etcd_aio import Client
from etcd_aio.recipes import Barrier, Counter, DoubleBarrier, IdAllocator, Transaction
from etcd_aio.testing import EtcdServer
from tests.support.recipes import golayers

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def test_transfers_of_two_clients_lose_nothing(shared_server: EtcdServer, client: Client, prefix: str) -> None:
    accounts = [f"{prefix}{name}" for name in "abcd"]
    for account in accounts:
        await client.put(account, "100")

    async def move(tx: Transaction, step: int) -> None:
        source, target = accounts[step % 4], accounts[(step * 3 + 1) % 4]
        found = await tx.range(prefix=prefix)
        assert sum(int(kv.text()) for kv in found) == 400, "every run sees one state"
        values = {kv.key_text(): int(kv.text()) for kv in found}
        values[source] -= 1
        values[target] += 1
        for account in {source, target}:
            tx.put(account, str(values[account]))

    async def work(own: Client, worker: int) -> None:
        for step in range(10):
            await own.stm(lambda tx, at=worker + step: move(tx, at), timeout=None)  # type: ignore[misc]

    async with Client(shared_server.endpoint) as other:
        await asyncio.gather(*(work(own, worker) for worker in range(4) for own in (client, other)))
    found = await client.range(prefix=prefix)
    assert sum(int(kv.text()) for kv in found) == 400
    assert sum(kv.version - 1 for kv in found) >= 80


async def test_counters_and_ids_of_two_clients(shared_server: EtcdServer, client: Client, prefix: str) -> None:
    async with Client(shared_server.endpoint) as other, other.exactly_once(prefix=f"{prefix}once/") as once:
        counters = [
            Counter(client, f"{prefix}n", timeout=None),
            Counter(other, f"{prefix}n", writer=once, timeout=None),
        ]
        values = await asyncio.gather(*(counter.add() for _ in range(200) for counter in counters))
        assert sorted(values) == list(range(1, 401))
        allocators = [IdAllocator(own, f"{prefix}ids", block=7, timeout=None) for own in (client, other)]
        ids = await asyncio.gather(*(ids.next() for _ in range(50) for ids in allocators))
        assert len(set(ids)) == 100


async def test_a_double_barrier_again_and_again(shared_server: EtcdServer, client: Client, prefix: str) -> None:
    log: list[str] = []

    async def take_part(own: Client) -> None:
        for phase in range(3):
            async with DoubleBarrier(own, f"{prefix}d", count=6):
                log.append(f"in {phase}")
            log.append(f"out {phase}")

    async with Client(shared_server.endpoint) as other:
        await asyncio.gather(*(take_part(own) for own in (client, other) for _ in range(3)))
    expected = [f"{what} {phase}" for phase in range(3) for what in ("in", "out") for _ in range(6)]
    assert sorted(log, key=lambda line: line.split()[1]) == expected
    assert len(await client.range(prefix=prefix)) == 0


@pytest.mark.whole_store
async def test_barriers_of_go_and_ours_hold_each_other_up(
    shared_server: EtcdServer, client: Client, prefix: str
) -> None:
    barrier = Barrier(client, f"{prefix}b")
    async with golayers("hold", shared_server.endpoint, f"{prefix}b") as go:
        assert await go.line() == '"held"'
        assert not await barrier.hold()
        waiting = asyncio.ensure_future(barrier.wait_released())
        await go.let_go()
        await waiting
    assert await barrier.hold()
    async with golayers("wait", shared_server.endpoint, f"{prefix}b") as go:
        assert await go.line() == '"waiting"'
        await barrier.release()
        assert await go.line() == '"released"'


@pytest.mark.whole_store
async def test_double_barriers_of_go_and_ours_are_one(shared_server: EtcdServer, client: Client, prefix: str) -> None:
    async with golayers("double", shared_server.endpoint, f"{prefix}d", "-count", "3") as go:
        assert await go.line() == '"entering"'
        log: list[str] = []

        async def take_part() -> None:
            async with DoubleBarrier(client, f"{prefix}d", count=3):
                log.append("in")
            log.append("out")

        both = asyncio.gather(take_part(), take_part())
        assert await go.line() == '"in"'
        await go.let_go()
        await both
        assert log == ["in", "in", "out", "out"]
    assert len(await client.range(prefix=prefix)) == 0
