"""Real clusters: who leads, losing members, replacing one, cutting one off."""

# Files and the processes of others have no events to wait for.
# ruff: noqa: ASYNC110

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdCluster, EtcdServer, EtcdStartError
from etcd_aio.testing.health_probe import ask
from etcd_aio.testing.ports import free_ports
from etcd_aio.testing.process import ChildProcess
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.fixture
async def cluster() -> AsyncIterator[EtcdCluster]:
    async with EtcdCluster() as cluster:
        yield cluster


async def put(server: EtcdServer) -> None:
    await ask(server.endpoint, "/v3/kv/put", body={"key": "aw==", "value": "dg=="}, timeout=PATIENCE)


async def count(server: EtcdServer) -> object:
    answer = await ask(server.endpoint, "/v3/kv/range", body={"key": "aw==", "serializable": True}, timeout=PATIENCE)
    return answer.get("count", "0")


async def test_three_members_one_leader_and_nothing_left() -> None:
    async with EtcdCluster() as cluster:
        members = cluster.members
        assert [member.name for member in members] == ["m0", "m1", "m2"]
        assert cluster.endpoints == tuple(member.endpoint for member in members)
        assert len(set(cluster.endpoints)) == 3
        leader = await cluster.leader()
        followers = await cluster.followers()
        assert {leader, *followers} == set(members)
        assert leader not in followers
        assert len({(await member.raft_status()).leader_id for member in members}) == 1
        folders = [member.data_dir.parent for member in members]
        with pytest.raises(RuntimeError, match="started already"):
            await cluster.start()
    assert not any(member.is_running for member in members)
    assert not any(folder.exists() for folder in folders)
    await cluster.aclose()


async def test_a_killed_leader_is_followed_by_another() -> None:
    async with EtcdCluster() as cluster:  # with slow elections, so that the new leader stays
        old = await cluster.leader()
        await old.kill()
        new = await cluster.leader()
        assert new is not old
        await cluster.wait_healthy()
        await put(new)
        await old.restart()
        await cluster.wait_healthy()
        assert await cluster.leader() is new
        assert old in await cluster.followers()


async def test_a_paused_leader_is_followed_by_another(cluster: EtcdCluster) -> None:
    old = await cluster.leader()
    old.pause()
    assert await cluster.leader() is not old
    old.resume()
    await cluster.wait_healthy()


async def test_without_a_majority_there_is_no_leader(cluster: EtcdCluster) -> None:
    for member in cluster.members[:2]:
        await member.kill()
    with pytest.raises(TimeoutError, match="no majority agreed"):
        await cluster.leader(timeout=0.1)
    with pytest.raises(TimeoutError, match="not healthy within"):
        await cluster.wait_healthy(timeout=0.1)
    await asyncio.gather(*(member.restart() for member in cluster.members[:2]))
    await cluster.wait_healthy()


async def test_all_members_restart_with_their_data(cluster: EtcdCluster) -> None:
    await put(cluster.members[0])
    pids = [member.pid for member in cluster.members]
    await cluster.restart()
    assert not set(pids) & {member.pid for member in cluster.members}
    assert [await count(member) for member in cluster.members] == ["1"] * 3


async def test_a_member_cannot_wipe_itself_but_be_replaced(cluster: EtcdCluster) -> None:
    member = cluster.members[1]
    await put(member)
    with pytest.raises(ValueError, match="replace"):
        await member.restart(wipe=True)
    before = await member.raft_status()
    endpoint = member.endpoint
    await cluster.replace(member)
    assert (await member.raft_status()).member_id != before.member_id
    assert member.endpoint == endpoint
    assert cluster.members[1] is member
    assert await count(member) == "1"
    with pytest.raises(ValueError, match="member of this cluster"):
        await cluster.replace(EtcdServer())


async def test_a_member_that_cannot_start_takes_all_down() -> None:
    with pytest.raises(EtcdStartError, match="nonsense"):
        await EtcdCluster(flags=["--nonsense"]).start()


async def test_cancelling_a_start_leaves_nothing() -> None:
    cluster = EtcdCluster()
    starting = asyncio.create_task(cluster.start())
    async with asyncio.timeout(PATIENCE):
        while not cluster.members or not all(member.is_running for member in cluster.members):
            await asyncio.sleep(0.001)
    members = cluster.members
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert cluster.members == ()
    assert not any(member.is_running for member in members)


async def test_cancelling_a_close_does_not_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(process: ChildProcess, timeout: float) -> bool:
        return await asyncio.Future()  # as if it took its time

    cluster = EtcdCluster()
    await cluster.start()
    members = cluster.members
    monkeypatch.setattr(ChildProcess, "wait", wait)
    closing = asyncio.create_task(cluster.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not any(member.is_running for member in members)


async def test_taken_ports_are_given_up_for_others(cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = int(cluster.endpoints[0].rpartition(":")[2])
    choices = iter([(*free_ports(2), taken, *free_ports(3)), free_ports(6)])
    monkeypatch.setattr("etcd_aio.testing.cluster.free_ports", lambda count, host: next(choices))
    async with EtcdCluster() as other:
        assert not set(other.endpoints) & set(cluster.endpoints)


async def test_one_member_is_a_cluster_too() -> None:
    async with EtcdCluster(size=1) as cluster:
        assert await cluster.leader() is cluster.members[0]
        assert await cluster.followers() == ()
        with pytest.raises(ValueError, match="another one"):
            await cluster.replace(cluster.members[0])


async def test_without_proxies_no_member_can_be_isolated(cluster: EtcdCluster) -> None:
    with pytest.raises(RuntimeError, match="peer_proxies"):
        cluster.isolate(cluster.members[0])
    with pytest.raises(RuntimeError, match="peer_proxies"):
        cluster.lag(cluster.members[0], 0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="peer proxies need /proc")
async def test_a_leader_that_is_cut_off_loses_the_lead_and_finds_back() -> None:
    async with EtcdCluster(peer_proxies=True) as cluster:
        old = await cluster.leader()
        cluster.isolate(old)
        new = await cluster.leader(other_than=old)
        assert new is not old
        # It has stepped down by itself: no word from the others reached it, and none of its own reached them.
        async with asyncio.timeout(PATIENCE):
            while (await old.raft_status()).leader_id:
                await asyncio.sleep(0.02)
        await put(new)
        assert await count(old) == "0"
        cluster.reconnect(old)
        await cluster.wait_healthy()
        async with asyncio.timeout(PATIENCE):
            while await count(old) != "1":
                await asyncio.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="peer proxies need /proc")
async def test_a_member_that_lags_answers_from_an_older_state_and_catches_up() -> None:
    async with EtcdCluster(peer_proxies=True) as cluster:
        leader = await cluster.leader()
        follower, _ = await cluster.followers()
        with pytest.raises(ValueError, match="negative"):
            cluster.lag(follower, -1)
        async with Client(leader.endpoint) as writer, Client(follower.endpoint) as reader:

            async def is_behind() -> bool:
                written = await writer.put("k", "v", timeout=PATIENCE)
                return (await reader.range("k", serializable=True)).revision < written.revision

            async with asyncio.timeout(PATIENCE):
                cluster.lag(follower, 0.1)
                for _ in range(3):
                    while not await is_behind():
                        pass
                cluster.lag(follower, 0)
                while await is_behind():
                    await asyncio.sleep(0.02)
