"""Leases on real servers: kept alive over dying members, lost in time when nothing keeps them, gone when they end."""

# ruff: noqa: PT012 - the block is what is tested

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack

import anyio
import pytest

from etcd_aio import Client, EtcdError, Lease, LeaseLostError, NoAvailableEndpointsError
from etcd_aio.errors import (
    ClientClosedError,
    InvalidRequestError,
    LeaseExistsError,
    LeaseExpiredError,
    LeaseNotFoundError,
    LeaseTTLTooLargeError,
)
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from tests.support.locks import until
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

each_engine = pytest.mark.usefixtures("each_engine")


def now() -> float:
    return asyncio.get_running_loop().time()


async def exists(client: Client, lease: Lease | int) -> bool:
    return not (await client.leases.time_to_live(lease)).is_expired


async def stream_endpoint(client: Client) -> str:
    """Where the keepalive stream is."""
    while not client.streams()[0].is_open:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.01)
    return client.streams()[0].endpoint


# One member.


@pytest.mark.both_engines
@each_engine
async def test_a_lease_outlives_its_ttl_and_takes_its_keys_along(shared_server: EtcdServer, prefix: str) -> None:
    async with Client(shared_server.endpoint) as client:
        kept = client.lease(4)
        assert not kept.is_held
        async with kept as lease:
            await client.put(prefix, "v", lease=lease)
            await asyncio.sleep(6)
            assert lease.is_held
            assert not lease.is_lost
            found = await client.leases.time_to_live(lease, keys=True)
            assert (found.granted_ttl, found.keys) == (4, (prefix.encode(),))
            assert lease.id in (await client.leases.list()).ids
            assert 0 < lease.remaining <= 4
        assert not lease.is_held
        assert await client.get(prefix) is None
        assert not await exists(client, lease)
        assert lease.id not in (await client.leases.list()).ids


async def test_the_lease_calls(client: Client, prefix: str) -> None:
    granted = await client.leases.grant(30)
    assert (granted.ttl, granted.id > 0, granted.header.revision > 0) == (30, True, True)
    assert (await client.leases.grant(1)).ttl == 2, "etcd's minimum"
    await client.put(prefix, "v", lease=granted)
    renewed = await client.leases.keep_alive_once(granted)
    assert (renewed.id, renewed.ttl) == (granted.id, 30)
    found = await client.leases.time_to_live(granted.id)
    assert (found.id, found.granted_ttl, found.keys, found.is_expired) == (granted.id, 30, (), False)
    assert 20 <= found.ttl <= 30
    revoked = await client.leases.revoke(granted)
    assert revoked.revision > granted.header.revision, "a key was deleted"
    gone = await client.leases.time_to_live(granted)
    assert (gone.ttl, gone.is_expired) == (-1, True)
    with pytest.raises(LeaseNotFoundError):
        await client.leases.keep_alive_once(granted)
    with pytest.raises(LeaseNotFoundError):
        await client.leases.revoke(granted)
    with pytest.raises(LeaseNotFoundError):
        await client.put(prefix, "v", lease=granted)
    mine = await client.leases.grant(30, id=-77)
    assert mine.id == -77
    with pytest.raises(LeaseExistsError):
        await client.leases.grant(30, id=-77)
    await client.leases.revoke(-77)
    longest = await client.leases.grant(9_000_000_000)
    await client.leases.revoke(longest)
    with pytest.raises(LeaseTTLTooLargeError):
        await client.leases.grant(9_000_000_001)
    with pytest.raises(InvalidRequestError):
        client.lease(0)


async def test_a_lease_that_another_client_revokes_is_lost_at_the_next_renewal(
    client: Client, shared_server: EtcdServer
) -> None:
    async with Client(shared_server.endpoint) as other:
        with pytest.raises(LeaseExpiredError) as caught:
            async with client.lease(4) as lease:
                await other.leases.revoke(lease)
                await asyncio.sleep(60)
    assert isinstance(caught.value.__cause__, LeaseNotFoundError)


@pytest.mark.both_engines
@each_engine
async def test_a_cancelled_block_revokes_its_lease(shared_server: EtcdServer) -> None:
    async with Client(shared_server.endpoint) as client:
        entered: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()

        async def block() -> None:
            async with client.lease(60) as lease:
                entered.set_result(lease)
                await asyncio.sleep(60)

        task = asyncio.create_task(block())
        lease = await entered
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not await exists(client, lease)


async def test_a_timeout_around_a_block_revokes_its_lease(client: Client) -> None:
    lease = client.lease(60)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5), lease:
            await asyncio.sleep(60)
    assert not await exists(client, lease)


async def test_grants_that_are_cancelled_leave_no_lease(shared_server: EtcdServer) -> None:
    async with Client(shared_server.endpoint) as client:
        before = set((await client.leases.list()).ids)

        async def block() -> None:
            async with client.lease(600):
                await asyncio.sleep(60)

        for number in range(50):
            task = asyncio.create_task(block())
            await asyncio.sleep(0.0002 * (number % 10))
            task.cancel()
            await asyncio.wait([task])
        async with asyncio.timeout(PATIENCE):  # they are revoked behind the back of the block
            while not set((await client.leases.list()).ids) <= before:  # noqa: ASYNC110 - by tasks that the test does not know
                await asyncio.sleep(0.01)


async def test_closing_the_client_ends_the_leases_and_their_blocks(shared_server: EtcdServer) -> None:
    client = Client(shared_server.endpoint)
    held = asyncio.Event()

    async def hold() -> None:
        async with client.lease(60):
            held.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(hold())
    async with asyncio.timeout(PATIENCE):
        await held.wait()
        await client.aclose()
        with pytest.raises(LeaseLostError) as caught:
            await task
    assert isinstance(caught.value.__cause__, ClientClosedError)
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not {name for name in names if "lease" in name}
    with pytest.raises(ClientClosedError):
        await client.leases.keep_alive_once(7)


async def test_a_renewal_that_is_asked_for_while_the_client_closes_is_refused_at_once(
    shared_server: EtcdServer,
) -> None:
    client = Client(shared_server.endpoint)
    held = asyncio.Event()

    async def hold() -> None:
        async with client.lease(60, on_lost="signal") as lease:
            held.set()
            await lease.lost()
            with pytest.raises(ClientClosedError):
                await client.leases.keep_alive_once(lease, timeout=None)

    task = asyncio.create_task(hold())
    async with asyncio.timeout(PATIENCE):
        await held.wait()
        await client.aclose()
        with pytest.raises(LeaseLostError):
            await task


# Bad weather.


@each_engine
async def test_losing_every_connection_for_good_is_told_within_the_ttl(cluster: EtcdCluster) -> None:
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(FaultProxy(member.endpoint)) for member in cluster.members]
        client = await stack.enter_async_context(Client([proxy.endpoint for proxy in proxies]))
        deadline = 0.0
        with pytest.raises(LeaseExpiredError) as caught:
            async with client.lease(5) as lease:
                await asyncio.sleep(2.2)
                for proxy in proxies:
                    proxy.black_hole()
                deadline = now() + lease.remaining
                await asyncio.sleep(60)
        # Leaving does not revoke what is lost, so this is when the block was told.
        assert deadline - 0.05 < now() < deadline + PATIENCE
        assert isinstance(caught.value.__cause__, EtcdError)
        for proxy in proxies:
            proxy.heal()


async def test_what_is_granted_after_an_outage_longer_than_the_ttl_is_not_lost(
    shared_server: EtcdServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint, timeout=None) as client:
        await client.get(prefix)

        async def hold_lease() -> None:
            async with client.lease(5) as lease:
                await client.put(f"{prefix}a", "v", lease=lease)
                await asyncio.sleep(1)

        async def hold_lock() -> None:
            async with client.lock(f"{prefix}b", ttl=5) as lock:
                await lock.fenced.put(f"{prefix}c", "v")
                await asyncio.sleep(1)

        proxy.black_hole()
        holders = [asyncio.create_task(hold()) for hold in (hold_lease, hold_lock)]
        await asyncio.sleep(7)
        proxy.heal()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*holders)
    assert not [record.message for record in caplog.records if record.name == "etcd_aio.leases"]


async def test_a_block_can_be_left_while_nothing_can_be_reached(
    cluster: EtcdCluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(cluster.endpoints) as client:
        async with client.lease(30) as lease:
            for member in cluster.members:
                await member.kill()
            begun = now()
        assert now() - begun < 15.0
        assert not lease.is_lost
        async with asyncio.timeout(PATIENCE):
            while not any("could not be revoked" in record.message for record in caplog.records):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        with pytest.raises(NoAvailableEndpointsError):
            await client.leases.keep_alive_once(lease, timeout=1)


@each_engine
async def test_a_frozen_member_with_the_stream_costs_no_lease(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client, client.lease(8) as lease:
        for _ in range(2):
            await asyncio.sleep(1)
            endpoint = await stream_endpoint(client)
            member = next(one for one in cluster.members if one.endpoint == endpoint)
            if await cluster.leader() is member:  # once thawed, an ex-leader revokes what was renewed meanwhile
                other = next(one for one in await client.cluster.members() if endpoint not in one.client_urls)
                await client.maintenance.move_leader(other)
            member.pause()
            await asyncio.sleep(10)
            assert not lease.is_lost
            assert await stream_endpoint(client) != endpoint
            member.resume()
            await cluster.wait_healthy()
        assert await exists(client, lease)


@each_engine
@pytest.mark.slow
async def test_a_hundred_leases_outlive_random_deaths(run_seed: int) -> None:
    """Members die by any signal. Elections are quick: a lease has to last more than twice as long as one takes."""
    chance = random.Random(run_seed)
    async with (
        EtcdCluster(size=3, heartbeat_ms=50, election_ms=400) as cluster,
        Client(cluster.endpoints, timeout=15) as client,
        AsyncExitStack() as stack,
    ):
        leases = [client.lease(chance.randint(6, 9), on_lost="signal") for _ in range(100)]
        for lease in leases:
            await stack.enter_async_context(lease)
        begun = now()
        while now() - begun < 15:
            member = chance.choice(cluster.members)
            await (member.kill() if chance.random() < 0.5 else member.terminate())
            await asyncio.sleep(chance.uniform(0, 1))
            await member.restart()
            await cluster.wait_healthy()
            await asyncio.sleep(chance.uniform(0, 2))
        assert not [lease for lease in leases if lease.is_lost]
        for lease in leases[::5]:
            assert await exists(client, lease)
        await stack.aclose()

        async def are_gone() -> bool:
            return not (await client.leases.list()).ids

        await until(are_gone)  # each member lists what it knows, and one of them has just been started


@pytest.mark.slow
async def test_short_leases_outlive_the_deaths_of_followers() -> None:
    async with EtcdCluster(size=3) as cluster, Client(cluster.endpoints) as client, AsyncExitStack() as stack:
        leases = [await stack.enter_async_context(client.lease(4, on_lost="signal")) for _ in range(50)]
        for _ in range(4):
            await asyncio.sleep(1)
            follower = (await cluster.followers())[0]
            await follower.kill()
            await asyncio.sleep(0.5)
            await follower.restart()
            await cluster.wait_healthy()
        assert not [lease for lease in leases if lease.is_lost]


async def test_a_stalled_loop_is_told_in_the_log(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    import time

    with caplog.at_level(logging.WARNING, "etcd_aio.leases"):
        try:
            async with client.lease(2):
                await asyncio.sleep(0.3)
                time.sleep(2.5)  # noqa: ASYNC251 - what is tested
                await asyncio.sleep(0.5)
        except LeaseLostError:
            pass
        else:
            pytest.fail("2.5 s without a renewal are more than 2")
    assert len([record for record in caplog.records if "was blocked" in record.message]) == 1


async def close_here(client: Client) -> None:
    await client.aclose()


async def close_within_a_timeout(client: Client) -> None:
    async with asyncio.timeout(5):
        await client.aclose()


async def close_within_a_scope(client: Client) -> None:
    with anyio.fail_after(5):
        await client.aclose()


async def close_within_groups(client: Client) -> None:
    async with asyncio.TaskGroup() as group, anyio.create_task_group() as other:
        group.create_task(asyncio.sleep(0))
        other.start_soon(asyncio.sleep, 0)
        await client.aclose()


@pytest.mark.parametrize("close", [close_here, close_within_a_timeout, close_within_a_scope, close_within_groups])
async def test_a_block_that_closes_the_client_is_not_cancelled_and_hears_of_the_loss_on_leaving(
    shared_server: EtcdServer, close: Callable[[Client], Awaitable[None]]
) -> None:
    before = asyncio.all_tasks()
    has_gone_on = False
    async with asyncio.timeout(PATIENCE):
        client = Client(shared_server.endpoint)
        with pytest.raises(LeaseLostError) as caught:
            async with client.lease(60) as outer, client.lease(60):
                await close(client)
                assert outer.is_lost
                await asyncio.sleep(0.05)
                has_gone_on = True
        assert has_gone_on
        assert isinstance(caught.value.__cause__, ClientClosedError)
        await asyncio.sleep(0.1)  # no cancellation is left over
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("close", [close_here, close_within_a_timeout, close_within_a_scope, close_within_groups])
async def test_a_block_that_closes_the_client_at_once_is_not_cancelled_either(
    shared_server: EtcdServer, close: Callable[[Client], Awaitable[None]]
) -> None:
    """In the turn of the loop that entered the block: the stream of the leases has not been started yet."""
    has_gone_on = False
    async with asyncio.timeout(PATIENCE):
        client = Client(shared_server.endpoint)
        with pytest.raises(LeaseLostError) as caught:
            async with client.lease(60) as lease:
                await close(client)
                assert lease.is_lost
                await asyncio.sleep(0.05)
                has_gone_on = True
        assert has_gone_on
        assert isinstance(caught.value.__cause__, ClientClosedError)
        await asyncio.sleep(0.1)  # no cancellation is left over


@pytest.mark.parametrize("start", [asyncio.create_task, lambda closing: asyncio.wait_for(closing, 5)])
async def test_a_block_whose_other_task_closes_the_client_is_cancelled_and_the_client_is_closed_all_the_same(
    shared_server: EtcdServer, start: Callable[[Coroutine[None, None, None]], Awaitable[None]]
) -> None:
    before = asyncio.all_tasks()
    async with asyncio.timeout(PATIENCE):
        client = Client(shared_server.endpoint)
        with pytest.raises(LeaseLostError):
            async with client.lease(60):
                await start(client.aclose())
                await asyncio.sleep(60)
        with pytest.raises(ClientClosedError):
            await client.get("k")
        while asyncio.all_tasks() != before:  # noqa: ASYNC110 - they end
            await asyncio.sleep(0.01)


async def test_a_total_outage_can_be_seen() -> None:
    async with EtcdServer() as server, Client(server.endpoint) as client:
        assert client.streams() == ()
        async with client.lease(60), client.watch("k"):
            await stream_endpoint(client)
            keepalive, watch = client.streams()
            assert (keepalive.method, watch.method) == ("Lease/LeaseKeepAlive", "Watch/Watch")
            assert (keepalive.is_open, watch.is_open) == (True, True)
            await server.kill()
            while any(one.is_open for one in client.streams()):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            assert all(one.since >= 0.3 and one.last_error is not None for one in client.streams())
            await server.restart()
            while not all(one.is_open for one in client.streams()):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)
        async with asyncio.timeout(PATIENCE):
            while client.streams():  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.01)


@each_engine
async def test_a_lease_is_adopted_by_another_client(shared_server: EtcdServer, prefix: str) -> None:
    async with Client(shared_server.endpoint) as first, Client(shared_server.endpoint) as second:
        granted = await first.leases.grant(4)
        await first.put(prefix, "v", lease=granted)
        async with second.lease(60, id=granted.id, adopt=True) as lease:
            assert (lease.id, lease.ttl) == (granted.id, granted.ttl)
            await asyncio.sleep(granted.ttl + 2)
            assert await first.get(prefix) is not None
        assert await first.get(prefix) is None
        with pytest.raises(LeaseNotFoundError):
            await second.lease(60, id=granted.id, adopt=True).__aenter__()
