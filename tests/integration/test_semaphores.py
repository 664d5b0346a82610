"""Semaphores on real servers: never more than the limit, in the order of arrival, and two woken by a release."""

import asyncio
import json
import random

import pytest

from etcd_aio import Client, LockLostError, LockTimeoutError
from etcd_aio.errors import InvalidRequestError, LockError
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.locks import hold, keys, metric, until, until_waiting
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.both_stores, pytest.mark.usefixtures("each_store")]


@pytest.fixture
def name(prefix: str) -> str:
    return prefix.rstrip("/")


async def test_permits_are_keys_and_leave_nothing(client: Client, name: str) -> None:
    async with client.semaphore(name, limit=3, permits=2) as permit:
        assert (permit.limit, permit.permits) == (3, 2)
        (kv,) = (await client.range(prefix=f"{name}/")).kvs
        assert (kv.key, kv.create_revision) == (permit.key, permit.fencing_token)
        assert json.loads(kv.value) == {"limit": 3, "permits": 2, "held": False}
        assert await client.semaphore(name, limit=3).try_acquire()
        before = (await client.range(name)).revision
        assert not await client.semaphore(name, limit=3).try_acquire()
        assert (await client.range(name)).revision == before, "nothing was written"
        with pytest.raises(LockTimeoutError):
            await client.semaphore(name, limit=3, timeout=0.2).acquire()
    assert len(await keys(client, name)) == 1, "that of try_acquire, which nothing has released"


async def test_a_history_never_has_more_than_the_limit(client: Client, name: str, run_seed: int) -> None:
    chance = random.Random(run_seed)
    limit = 5
    used = most = 0
    order: list[int] = []

    async def work() -> None:
        nonlocal used, most
        await asyncio.sleep(chance.uniform(0, 0.1))
        permits = chance.choice([1, 1, 2, 3])
        async with client.semaphore(name, limit=limit, permits=permits) as permit:
            used += permits
            most = max(most, used)
            assert used <= limit
            order.append(permit.fencing_token)
            await asyncio.sleep(chance.uniform(0, 0.02))
            used -= permits

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(work() for _ in range(60)))
    assert len(order) == 60
    assert most > 1, "some held together"
    assert await keys(client, name) == []


async def test_a_large_request_at_the_head_is_not_overtaken(client: Client, name: str) -> None:
    end = asyncio.Event()
    first, held = hold(client.semaphore(name, limit=3), until_set=end)
    await held.wait()
    large, large_held = hold(client.semaphore(name, limit=3, permits=3))
    await until_waiting(client, name, 2)
    small, small_held = hold(client.semaphore(name, limit=3))
    await until_waiting(client, name, 3)
    with pytest.raises(LockTimeoutError):
        await client.semaphore(name, limit=3, timeout=0.2).acquire()
    assert not small_held.is_set()
    end.set()
    await asyncio.wait_for(large_held.wait(), PATIENCE)
    assert not small_held.is_set()
    large.cancel()
    await asyncio.wait_for(small_held.wait(), PATIENCE)
    small.cancel()
    await asyncio.wait([first, large, small])


async def test_a_release_of_many_permits_lets_many_in(client: Client, name: str) -> None:
    """Each that had to wait says so when it holds, which wakes the next one."""
    end = asyncio.Event()
    first, held = hold(client.semaphore(name, limit=3, permits=3), until_set=end)
    await held.wait()
    waiters = []
    for number in range(3):
        waiters.append(hold(client.semaphore(name, limit=3)))
        await until_waiting(client, name, number + 2)
    end.set()
    for task, entered in waiters:
        await asyncio.wait_for(entered.wait(), PATIENCE)
        assert not task.done()
    for task, _ in waiters:
        task.cancel()
    await asyncio.wait([first, *(task for task, _ in waiters)])
    assert await keys(client, name) == []


async def test_a_head_that_gives_up_lets_the_next_one_in(client: Client, name: str) -> None:
    first, held = hold(client.semaphore(name, limit=3))
    await held.wait()
    large, _ = hold(client.semaphore(name, limit=3, permits=3))
    await until_waiting(client, name, 2)
    small, small_held = hold(client.semaphore(name, limit=3))
    await until_waiting(client, name, 3)
    large.cancel()
    await asyncio.wait_for(small_held.wait(), PATIENCE)
    for task in (first, small):
        task.cancel()
    await asyncio.wait([first, large, small])
    assert await keys(client, name) == []


async def test_when_a_holder_dies_a_waiter_enters(shared_server: EtcdServer, client: Client, name: str) -> None:
    async with Client(shared_server.endpoint) as other:
        permit = other.semaphore(name, limit=1, ttl=20, on_lost="signal")
        await permit.acquire()
        waiter, entered = hold(client.semaphore(name, limit=1))
        await until_waiting(client, name, 2)
        (holder, _) = await permit.contenders()
        await client.leases.revoke(holder.lease)
        await asyncio.wait_for(entered.wait(), PATIENCE)
        waiter.cancel()
        await asyncio.wait([waiter])


async def test_a_holder_that_cannot_wake_the_next_waiter_stops_to_try_when_the_client_is_closed(
    shared_server: EtcdServer, client: Client, name: str
) -> None:
    def marks() -> list[asyncio.Task[object]]:
        return [task for task in asyncio.all_tasks() if task.get_name() == f"etcd_aio mark of semaphore {name!r}"]

    async with FaultProxy(shared_server.endpoint) as proxy:
        other = await Client(proxy.endpoint, timeout=5).connect()
        first = client.semaphore(name, limit=1)
        await first.acquire()
        second = other.semaphore(name, limit=1, ttl=60, on_lost="signal")
        acquiring = asyncio.create_task(second.acquire())
        await until_waiting(client, name, 2)
        acquiring.add_done_callback(lambda task: proxy.black_hole())
        await first.release()
        await asyncio.wait_for(acquiring, PATIENCE)
        assert marks()
        await other.aclose()
        async with asyncio.timeout(PATIENCE):
            while marks():  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
        with pytest.raises(LockLostError):
            await second.release()


async def test_another_limit_is_an_error_that_names_both(client: Client, name: str) -> None:
    async with client.semaphore(name, limit=3) as permit:
        with pytest.raises(LockError, match="the limit is 4 here, and 3 for"):
            await client.semaphore(name, limit=4).acquire()
        with pytest.raises(LockError):
            await client.semaphore(name, limit=4).try_acquire()
        assert await keys(client, name) == [permit.key]


async def test_a_contender_with_another_limit_leaves_the_others_alone(client: Client, name: str) -> None:
    """Its key, which stands for a moment, is here for longer."""
    first = client.semaphore(name, limit=1)
    await first.acquire()
    await client.put(f"{name}/77", b'{"limit": 2, "permits": 1, "held": false}')
    waiter, entered = hold(client.semaphore(name, limit=1))
    await until_waiting(client, name, 3)
    assert not await client.semaphore(name, limit=1).try_acquire()
    with pytest.raises(LockError, match="the limit is 2 here, and 1 for"):
        await client.semaphore(name, limit=2).try_acquire()
    await client.delete(f"{name}/77")
    await first.release()
    await asyncio.wait_for(entered.wait(), PATIENCE)
    with pytest.raises(LockError, match="the limit is 2 here, and 1 for"):
        await client.semaphore(name, limit=2).acquire()
    waiter.cancel()
    await asyncio.wait([waiter])
    assert await keys(client, name) == []


async def test_the_name_of_a_lock_is_refused(client: Client, name: str) -> None:
    async with client.lock(name):
        with pytest.raises(LockError, match="not one of a semaphore"):
            await client.semaphore(name, limit=3).acquire()
        assert len(await keys(client, name)) == 1


def test_wrong_arguments_are_refused_before_anything_is_sent() -> None:
    client = Client()
    for limit, permits in ((0, 1), (3, 0), (3, 4)):
        with pytest.raises(InvalidRequestError):
            client.semaphore("a", limit=limit, permits=permits)


@pytest.mark.parametrize("number", [60, pytest.param(500, marks=pytest.mark.nightly)])
async def test_a_release_wakes_two_of_many(number: int) -> None:
    async with EtcdServer() as server, Client(server.endpoint, timeout=PATIENCE) as client:
        blocking = client.semaphore("a", limit=3, permits=3, ttl=60)
        await blocking.acquire()
        sent = await metric(server, "etcd_network_client_grpc_sent_bytes_total")

        async def work() -> None:
            async with client.semaphore("a", limit=3, ttl=60):
                pass

        tasks = [asyncio.create_task(work()) for _ in range(number)]
        await until_waiting(client, "a", number + 1)

        async def all_watch() -> bool:
            return await metric(server, "etcd_debugging_mvcc_watcher_total") >= number

        await until(all_watch)
        received = await metric(server, "etcd_network_client_grpc_sent_bytes_total") - sent
        assert received < 6_000 * number, "a waiter reads the ends of the line, and not all of it"
        before = await metric(server, "etcd_debugging_mvcc_events_total")
        await blocking.release()
        async with asyncio.timeout(PATIENCE * 3):
            await asyncio.gather(*tasks)
        assert await metric(server, "etcd_debugging_mvcc_events_total") - before <= 3 * number
        assert await keys(client, "a") == []
