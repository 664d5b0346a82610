"""Elections while the leader is cut off, etcd is away, and members restart."""

import asyncio
import time
from contextlib import AsyncExitStack

import pytest

from etcd_aio import Client, EtcdError
from etcd_aio.concurrency import Leadership
from etcd_aio.errors import NoSpaceError, PermissionDeniedError
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from tests.faults.account import Leader, leaders, misobserved
from tests.faults.run import Recorder
from tests.faults.store import ROOT, checked
from tests.support.auth import QUICK_LOGINS, WEB, enable_auth
from tests.support.full_store import skip_if_full_store_keeps_all
from tests.support.servers import QUICK_ELECTIONS
from tests.support.until import PATIENCE, until, until_keys

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.slow]

AT_ONCE = 20


class Works:
    """The work of one election, run by two clients: when it ran where."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.began: dict[str, float] = {}
        self.ended: dict[str, float] = {}

    async def run(self, client: Client, where: str) -> None:
        async def work(leadership: Leadership) -> None:
            self.began[where] = time.monotonic()
            try:
                await asyncio.sleep(2 * PATIENCE)
            finally:
                self.ended[where] = time.monotonic()

        await client.election(self.name, ttl=5).run(work)


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.nightly)])
async def test_work_has_ended_before_the_next_leader_begins(rounds: int) -> None:
    """The leader is cut off from all members: of 20 elections at a time, each in two clients."""
    async with EtcdCluster(size=3, **QUICK_ELECTIONS) as cluster, AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(FaultProxy(endpoint)) for endpoint in cluster.endpoints]
        other = await stack.enter_async_context(Client(cluster.endpoints))
        cut_off = await stack.enter_async_context(Client([proxy.endpoint for proxy in proxies]))
        for number in range(rounds):
            works = [Works(f"e{number}/{each}") for each in range(AT_ONCE)]
            tasks = [asyncio.create_task(work.run(cut_off, "cut off")) for work in works]
            await until(lambda works=works: all(work.began for work in works), tasks)  # type: ignore[misc]
            tasks += [asyncio.create_task(work.run(other, "other")) for work in works]
            await until_keys(other, f"e{number}/", 2 * AT_ONCE)
            for proxy in proxies:
                proxy.black_hole()
            await until(lambda works=works: all("other" in work.began for work in works), tasks)  # type: ignore[misc]
            for work in works:
                assert work.ended["cut off"] <= work.began["other"]
                assert work.ended.keys() == {"cut off"}
            for task in tasks:
                task.cancel()
            for proxy in proxies:
                proxy.heal()
            await asyncio.gather(*tasks, return_exceptions=True)
            await until_keys(other, f"e{number}/", 0)


@pytest.mark.parametrize("seconds", [6, *(pytest.param(each, marks=pytest.mark.nightly) for each in (10, 30, 300))])
async def test_one_leader_after_an_outage(seconds: int) -> None:
    """etcd is away for longer than a lease lasts: every candidate stands again, and one of them leads."""
    leading: list[str] = []
    most = 0

    async def stand(client: Client, name: str) -> None:
        async def work(leadership: Leadership) -> None:
            nonlocal most
            leading.append(name)
            most = max(most, len(leading))
            try:
                await asyncio.sleep(1000)
            finally:
                leading.remove(name)

        await client.election("e", ttl=5).run(work, name)

    async with EtcdServer(**QUICK_ELECTIONS) as server, AsyncExitStack() as stack:
        direct = await stack.enter_async_context(Client(server.endpoint, timeout=PATIENCE))
        clients = [await stack.enter_async_context(Client(server.endpoint)) for _ in range(3)]
        tasks = [asyncio.create_task(stand(client, f"{number}")) for number, client in enumerate(clients)]
        await until(lambda: bool(leading), tasks)
        await server.kill()
        await asyncio.sleep(seconds)
        assert not leading
        await server.restart()
        await until(lambda: bool(leading), tasks)
        await until_keys(direct, "e/", 3)  # the others stand behind it, each once
        leader = await direct.election("e").leader()
        assert leader is not None
        assert [leader.text()] == leading
        assert most == 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("changes", [100, pytest.param(10_000, marks=pytest.mark.nightly)])
async def test_observers_miss_nothing_while_members_restart(changes: int) -> None:
    """Three observers, each on another member first; each is told every leader, once, and nothing else."""
    name, last = f"{ROOT}election/a", "the last"
    done = 0

    async def observe(client: Client) -> list[Leader | None]:
        told: list[Leader | None] = []
        async with client.election(name).changes() as following:
            async for leader in following:
                told.append(None if leader is None else (leader.key.decode(), leader.fencing_token, leader.text()))
                if leader is not None and leader.text() == last:
                    break
        return told

    async def lead(client: Client) -> None:
        nonlocal done
        while done < changes:
            try:
                async with client.election(name).lead(f"{done}"):
                    done += 1
            except EtcdError:  # lost, or nothing could be reached
                await asyncio.sleep(0.05)

    async with EtcdCluster(size=3, **QUICK_ELECTIONS) as cluster, AsyncExitStack() as stack:
        ends = cluster.endpoints
        clients = [
            await stack.enter_async_context(Client([*ends[first:], *ends[:first]], policy="pinned"))
            for first in range(3)
        ]
        recorder = Recorder(clients[0])
        recording = asyncio.create_task(recorder.run())
        observing = [asyncio.create_task(observe(client)) for client in clients]
        leading = [asyncio.create_task(lead(client)) for client in clients]
        for number, member in enumerate(cluster.members, start=1):
            await until(lambda number=number: done >= changes * number / 4, [*leading, recording])  # type: ignore[misc]
            await member.kill()
            await member.restart()
            await cluster.wait_healthy(PATIENCE)
        await asyncio.gather(*leading)
        async with asyncio.timeout(PATIENCE), clients[0].election(name).lead(last) as leadership:
            told = await asyncio.gather(*observing)
            await recorder.until(leadership.fencing_token)
        recording.cancel()
        await asyncio.gather(recording, return_exceptions=True)
    truth = leaders(checked(recorder.changes), "a")
    truth = truth[: [leader is not None and leader[2] == last for leader in truth].index(True) + 1]
    assert len(truth) >= changes
    for number, each in enumerate(told):
        assert list(misobserved(each, truth, f"{number}", is_gapless=True, is_whole=True)) == []


async def test_after_a_compaction_an_observer_goes_on_with_the_present_leader() -> None:
    async with (
        EtcdServer() as server,
        FaultProxy(server.endpoint) as proxy,
        Client(proxy.endpoint) as watching,
        Client(server.endpoint) as client,
        watching.election("e").changes() as following,
    ):
        assert await anext(following) is None
        proxy.refuse()
        proxy.reset()
        for number in range(5):
            async with client.election("e").lead(f"{number}"):
                pass
        async with client.election("e").lead("last") as leadership:
            await client.compact(leadership.fencing_token)
            proxy.heal()
            async with asyncio.timeout(PATIENCE):
                leader = await anext(following)
            assert leader is not None
            assert (leader.text(), leader.fencing_token) == ("last", leadership.fencing_token)
            await leadership.resign()
            async with asyncio.timeout(PATIENCE):
                assert await anext(following) is None


async def test_in_a_full_store_the_leader_leads_on_and_resigns() -> None:
    async with EtcdServer(flags=["--quota-backend-bytes=1000000"]) as server, Client(server.endpoint) as client:
        election = client.election("e", ttl=60)
        async with election.lead("one") as leadership:

            async def fill() -> None:
                for number in range(500):
                    await client.put(f"k{number}", b"x" * 100_000)

            with pytest.raises(NoSpaceError):
                await fill()
            await skip_if_full_store_keeps_all(client)
            with pytest.raises(NoSpaceError):
                await leadership.proclaim("two")
            assert not leadership.is_lost
            leader = await election.leader()
            assert leader is not None
            assert leader.text() == "one"
            with pytest.raises(NoSpaceError):
                await client.election("another").lead().__aenter__()
        assert await election.leader() is None


async def test_without_permission_it_is_refused_and_the_error_names_the_key() -> None:
    async def work(leadership: Leadership) -> None:
        pytest.fail("there is no leadership")

    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        async with Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client:
            election = client.election("other/e")
            with pytest.raises(PermissionDeniedError, match="other/e/"):
                await election.lead().__aenter__()
            with pytest.raises(PermissionDeniedError, match="other/e/"):
                await election.run(work)
            with pytest.raises(PermissionDeniedError):
                await election.leader()
            with pytest.raises(PermissionDeniedError):
                await election.changes().__aenter__()
            async with client.election("app/e").lead("web") as leadership:
                await leadership.proclaim("web, ready")
