"""contrib/patroni/: the store of a node, on real servers."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme
from patroni.exceptions import DCSError, PatroniFatalException
from patroni.postgresql.mpp import get_mpp

from etcd_aio import TLS, Client
from etcd_aio.contrib.patroni.etcd3aio import Etcd3Aio
from etcd_aio.testing import EtcdServer, FaultProxy, ServerTLS
from tests.contrib.patroni_node import PATH, section
from tests.contrib.patroni_node import node as node_of
from tests.support.certificates import write_ca, write_leaf
from tests.support.servers import QUICK_ELECTIONS
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

MOST = 5.0  # seconds of a call whose limit is one: for a machine that is slow
RUNNING = {"state": "running", "role": "replica"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[EtcdServer]:
    async with EtcdServer(**QUICK_ELECTIONS) as server:  # short leases follow from short elections
        yield server


@pytest.fixture
async def client(server: EtcdServer) -> AsyncIterator[Client]:
    async with Client(server.endpoint) as client:
        await client.delete(prefix="/service/")
        yield client


@pytest.fixture
async def node(server: EtcdServer, client: Client) -> AsyncIterator[Etcd3Aio]:
    async with node_of(server.endpoint) as dcs:
        yield dcs


def in_thread(test: Callable[..., None]) -> Callable[..., Any]:
    """A test that blocks."""

    async def run(node: Etcd3Aio) -> None:
        await asyncio.to_thread(test, node)

    run.__name__ = test.__name__
    return run


async def until_true(call: Callable[[], bool]) -> None:
    """Wait until a blocking call returns True."""
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(call):  # noqa: ASYNC110 # nothing signals it
            await asyncio.sleep(0.02)


@in_thread
def test_the_life_of_a_cluster(node: Etcd3Aio) -> None:
    empty = node.get_cluster()
    assert empty.leader is None
    assert empty.initialize is None
    assert not empty.members
    assert node.initialize() is True
    assert node.initialize() is False
    assert node.initialize(create_new=False, sysid="17") is True
    assert node.touch_member(RUNNING) is True
    assert node.take_leader() is True
    cluster = node.get_cluster()
    assert cluster.initialize == "17"
    assert cluster.leader is not None
    assert cluster.leader.name == "n1"
    assert cluster.leader.session == cluster.members[0].session
    assert cluster.members[0].data == RUNNING
    assert node.update_leader(cluster, 1234, {"slot": 1}, {"n1": "http://n1"})
    assert node.set_history_value('[[1,2,"no recovery target specified"]]')
    assert node.set_config_value('{"ttl":30}')
    cluster = node.get_cluster()
    assert cluster.status.last_lsn == 1234
    assert cluster.failsafe == {"n1": "http://n1"}
    assert cluster.history is not None
    assert cluster.history.lines[0][:2] == (1, 2) or cluster.history.lines[0][:2] == [1, 2]
    assert cluster.config is not None
    assert cluster.config.data == {"ttl": 30}
    assert node.delete_leader(cluster.leader, 1235)
    assert node.get_cluster().leader is None
    assert node.cancel_initialization()
    assert node.get_cluster().initialize is None
    assert node.delete_cluster()
    assert not node.get_cluster().members


@in_thread
def test_a_version_guards_what_it_is_given_for(node: Etcd3Aio) -> None:
    for key in ("config", "failover", "sync"):
        write = getattr(node, "set_sync_state_value" if key == "sync" else f"set_{key}_value")
        assert write('{"leader":"a"}')
        version = getattr(node.get_cluster(), key).version
        assert write('{"leader":"b"}', version)
        assert not write('{"leader":"c"}', version)
        assert getattr(node.get_cluster(), key).version > version
    state = node.write_sync_state("n1", ["n2"], 0)
    assert state is not None
    assert state.version == node.get_cluster().sync.version
    assert node.write_sync_state("n1", ["n3"], 0, version=int(str(state.version)) - 1) is None
    assert not node.delete_sync_state(version=int(str(state.version)) - 1)
    assert node.delete_sync_state(version=state.version)
    assert node.get_cluster().sync.is_empty
    assert node.delete_sync_state()


@in_thread
def test_a_node_sees_its_own_last_write_at_once(node: Etcd3Aio) -> None:
    for number in range(200):
        assert node.set_config_value(json.dumps({"n": number}))
        config = node.get_cluster().config
        assert config is not None
        assert config.data == {"n": number}


async def test_only_one_node_gets_the_leader_key(server: EtcdServer, node: Etcd3Aio) -> None:
    async with node_of(server.endpoint, name="n2") as other:
        got = await asyncio.gather(
            *(asyncio.to_thread(one.attempt_to_acquire_leader) for one in (node, other)),
        )
        assert sorted(got) == [False, True]
        loser = other if got[0] else node
        cluster = await asyncio.to_thread(loser.get_cluster)
        assert cluster.leader is not None
        assert cluster.leader.name != loser._name
        assert await asyncio.to_thread(loser.update_leader, cluster, 1) is False
        assert (await asyncio.to_thread(loser.get_cluster)).leader == cluster.leader


async def test_a_lease_is_renewed_by_the_loop_alone(server: EtcdServer, client: Client) -> None:
    """A primary that hangs loses its keys, so that another one can become it."""
    async with node_of(server.endpoint, ttl=1) as dcs:
        assert await asyncio.to_thread(dcs.attempt_to_acquire_leader)
        found = await client.get(f"{PATH}leader")
        assert found is not None
        await client.wait_deleted(f"{PATH}leader", found.mod_revision, timeout=PATIENCE)
        lease = found.lease
        assert (await client.leases.time_to_live(lease)).is_expired
        cluster = await asyncio.to_thread(dcs.get_cluster)
        assert cluster.leader is None
        await asyncio.to_thread(dcs.watch, None, 0.0)  # the next round
        assert await asyncio.to_thread(dcs.touch_member, RUNNING)  # takes a new lease
        assert await asyncio.to_thread(dcs.attempt_to_acquire_leader)


async def test_a_lease_is_renewed_once_for_each_round(client: Client, node: Etcd3Aio) -> None:
    def touch() -> bool:
        node.get_cluster()
        return node.touch_member(RUNNING)

    async def left() -> int:
        return (await client.leases.time_to_live(node._session.id or 0)).ttl

    assert await asyncio.to_thread(touch)
    member = await client.get(f"{PATH}members/n1")
    await asyncio.sleep(2.1)  # whole seconds are told
    before = await left()
    assert await asyncio.to_thread(touch)
    assert await left() <= before
    await asyncio.to_thread(node.watch, None, 0.0)  # the next round
    assert await asyncio.to_thread(touch)
    assert await left() > before
    again = await client.get(f"{PATH}members/n1")
    assert again == member  # it was not written again


async def test_a_lease_that_is_gone_is_replaced(client: Client, node: Etcd3Aio) -> None:
    assert await asyncio.to_thread(node.touch_member, RUNNING)
    lease = node._session.id
    assert lease is not None
    await client.leases.revoke(lease)
    assert await asyncio.to_thread(node.touch_member, {**RUNNING, "n": 1}) is False
    assert await asyncio.to_thread(node.touch_member, {**RUNNING, "n": 1}) is True
    lease = node._session.id
    assert lease is not None
    await client.leases.revoke(lease)
    assert await asyncio.to_thread(node.attempt_to_acquire_leader) is True  # all within one call
    cluster = await asyncio.to_thread(node.get_cluster)
    await client.leases.revoke(node._session.id or 0)
    assert await asyncio.to_thread(node.update_leader, cluster, 1) is True
    leader = await client.get(f"{PATH}leader")
    assert leader is not None
    assert leader.lease == node._session.id


async def test_another_ttl_takes_another_lease_and_runs_the_loop_at_once(client: Client, node: Etcd3Aio) -> None:
    def change() -> None:
        assert node.attempt_to_acquire_leader()
        node.reload_config({"loop_wait": 3, "ttl": 25, "retry_timeout": 4, "etcd3aio": section(node._client.endpoints)})
        assert (node.ttl, node.loop_wait) == (25, 3)
        assert node.watch(None, PATIENCE)
        assert node.update_leader(node.get_cluster(), 1)

    await asyncio.to_thread(change)
    leader = await client.get(f"{PATH}leader")
    assert leader is not None
    assert (await client.leases.time_to_live(leader.lease)).granted_ttl == 25


async def test_a_change_wakes_the_loop(server: EtcdServer, client: Client, node: Etcd3Aio) -> None:
    await until_true(lambda: node.watch(None, 0.0))  # the watch has begun
    for key, value in (
        ("leader", "n2"),
        ("status", '{"optime":5}'),
        ("failover", "{}"),
        ("members/n2", '{"state":"running"}'),
        ("config", '{"ttl":30}'),
    ):
        waiting = asyncio.create_task(asyncio.to_thread(node.watch, 1, PATIENCE))
        await client.put(PATH + key, value)
        assert await waiting, key
    waiting = asyncio.create_task(asyncio.to_thread(node.watch, 1, PATIENCE))
    await client.delete(f"{PATH}leader")
    assert await waiting


async def test_an_answer_that_is_lost_does_not_hide_what_was_done(server: EtcdServer, client: Client) -> None:
    async with FaultProxy(server.endpoint) as proxy, node_of(proxy.endpoint, use_proxies=True) as dcs:
        await asyncio.to_thread(dcs.get_cluster)
        proxy.cut_after(0, "to_client", connection="open")
        assert await asyncio.to_thread(dcs.attempt_to_acquire_leader) is True
        cluster = await asyncio.to_thread(dcs.get_cluster)
        assert cluster.leader is not None
        proxy.cut_after(0, "to_client", connection="open")
        assert await asyncio.to_thread(dcs.write_sync_state, "n1", ["n2"], 0) is not None
        proxy.cut_after(0, "to_client", connection="open")
        assert await asyncio.to_thread(dcs.delete_leader, cluster.leader) is True


async def test_an_outage_is_told_within_the_limit(client: Client) -> None:
    async with EtcdServer() as server, node_of(server.endpoint, retry_timeout=1) as dcs:
        assert await asyncio.to_thread(dcs.attempt_to_acquire_leader)
        cluster = await asyncio.to_thread(dcs.get_cluster)
        server.pause()
        try:
            needed = (dcs.get_cluster, partial(dcs.update_leader, cluster, 1), dcs.attempt_to_acquire_leader)
            for call in needed:
                began = time.monotonic()
                with pytest.raises(DCSError):
                    await asyncio.to_thread(call)
                assert time.monotonic() - began < MOST
            tried: list[Callable[[], object]] = [
                partial(dcs.touch_member, RUNNING),
                partial(dcs.set_config_value, "{}"),
                partial(dcs._write_status, "{}"),
                partial(dcs.set_sync_state_value, "{}"),
                partial(dcs.delete_leader, cluster.leader),
                dcs.initialize,
            ]
            for one in tried:
                began = time.monotonic()
                assert await asyncio.to_thread(one) is False
                assert time.monotonic() - began < MOST
        finally:
            server.resume()
        await until_true(lambda: dcs.touch_member(RUNNING))
        after = await asyncio.to_thread(dcs.get_cluster)
        assert after.leader is not None
        assert cluster.leader is not None
        assert after.leader.session == cluster.leader.session


async def test_a_reload_connects_to_other_members(server: EtcdServer, node: Etcd3Aio) -> None:
    limits = {"loop_wait": 10, "ttl": 30, "retry_timeout": 10}
    before = node._client
    await asyncio.to_thread(node.reload_config, {**limits, "etcd3aio": section(server.endpoint)})
    assert node._client is before  # nothing has changed
    await asyncio.to_thread(node.reload_config, {**limits, "etcd3aio": {}})
    assert node._client is before  # it cannot be used
    async with EtcdServer() as other:
        await asyncio.to_thread(node.reload_config, {**limits, "etcd3aio": section(other.endpoint)})
        assert node._client.endpoints == (other.endpoint,)
        assert await asyncio.to_thread(node.set_config_value, '{"a":1}')
        cluster = await asyncio.to_thread(node.get_cluster)
        assert cluster.config is not None
        assert cluster.config.data == {"a": 1}
        await asyncio.to_thread(node.watch, None, 0.0)  # the next round
        assert await asyncio.to_thread(node.touch_member, RUNNING)  # takes a new lease there


async def test_a_reload_uses_files_that_were_missing_the_last_time(
    server: EtcdServer, node: Etcd3Aio, tmp_path: Path
) -> None:
    authority = trustme.CA()
    files = write_leaf(authority.issue_cert("localhost", "127.0.0.1"), tmp_path, "server")
    limits = {"loop_wait": 10, "ttl": 30, "retry_timeout": 10}
    async with EtcdServer(tls=ServerTLS(files["cert"], files["key"])) as other:
        config = {**limits, "etcd3aio": section(other.endpoint, cacert=str(tmp_path / "ca.pem"))}
        await asyncio.to_thread(node.reload_config, config)
        assert node._client.endpoints == (server.endpoint,)
        write_ca(authority, tmp_path / "ca.pem")
        await asyncio.to_thread(node.reload_config, config)
        assert node._client.endpoints == (other.endpoint,)
        assert await asyncio.to_thread(node.set_config_value, "{}")


async def test_a_change_wakes_the_loop_after_values_that_are_no_text(client: Client, node: Etcd3Aio) -> None:
    for value in (b"\xff", b"[" * 100_000):
        await client.put(f"{PATH}members/n2", value)
    await client.delete(f"{PATH}members/n2")
    await until_true(lambda: node.watch(None, 0.1))
    while await asyncio.to_thread(node.watch, None, 0.3):
        pass
    await client.put(f"{PATH}config", "{}")
    assert await asyncio.to_thread(node.watch, None, PATIENCE)


async def test_patronictl_has_no_lease_and_no_watch(client: Client, server: EtcdServer) -> None:
    before = await client.leases.list()
    async with node_of(server.endpoint, patronictl=True) as dcs:
        assert set((await client.leases.list()).ids) <= set(before.ids)  # those of other tests may end meanwhile
        assert await asyncio.to_thread(dcs.set_config_value, '{"a":1}')
        cluster = await asyncio.to_thread(dcs.get_cluster)
        assert cluster.config is not None
        assert dcs._watched is None


async def test_the_groups_of_citus(client: Client, server: EtcdServer) -> None:
    async with (
        node_of(server.endpoint, {"citus": {"group": 0, "database": "d"}}) as coordinator,
        node_of(server.endpoint, {"citus": {"group": 1, "database": "d"}}, name="w1") as worker,
    ):
        for one in (coordinator, worker):
            assert await asyncio.to_thread(one.attempt_to_acquire_leader)
        cluster = await asyncio.to_thread(coordinator.get_cluster)
        assert cluster.leader is not None
        assert cluster.workers[1].leader is not None
        assert (cluster.leader.name, cluster.workers[1].leader.name) == ("n1", "w1")
        mine = await asyncio.to_thread(worker.get_cluster)
        assert mine.leader is not None
        assert mine.leader.name == "w1"
        above = await asyncio.to_thread(worker.get_mpp_coordinator)
        assert above is not None
        assert above.leader is not None
        assert above.leader.name == "n1"


async def test_a_certificate_names_the_user(tmp_path: Path) -> None:
    authority = trustme.CA()
    ca = write_ca(authority, tmp_path / "ca.pem")
    own = write_leaf(authority.issue_cert("127.0.0.1", "localhost"), tmp_path, "server")
    tls = {
        name: write_leaf(authority.issue_cert(f"{name}.example", common_name=name), tmp_path, name)
        for name in ("root", "patroni", "stranger")
    }
    files: dict[str, dict[str, Any]] = {
        name: {key: str(path) for key, path in paths.items()} for name, paths in tls.items()
    }
    async with EtcdServer(tls=ServerTLS(own["cert"], own["key"], ca)) as server:
        async with Client(server.endpoint, tls=TLS(ca=ca, **tls["root"])) as root:
            await root.auth.user_add("root", None)
            await root.auth.role_add("root")
            await root.auth.user_grant_role("root", "root")
            for name in ("patroni", "stranger"):
                await root.auth.user_add(name, None)
            await root.auth.role_add("patroni")
            await root.auth.role_grant_permission("patroni", permission="readwrite", prefix="/service/")
            await root.auth.user_grant_role("patroni", "patroni")
            await root.auth.enable()
        async with node_of(server.endpoint, groups=None, cacert=str(ca), **files["patroni"]) as dcs:
            assert await asyncio.to_thread(dcs.touch_member, RUNNING)
            assert await asyncio.to_thread(dcs.attempt_to_acquire_leader)
            cluster = await asyncio.to_thread(dcs.get_cluster)
            assert cluster.leader is not None
            assert await asyncio.to_thread(dcs.update_leader, cluster, 1)
        async with node_of(server.endpoint, cacert=str(ca), patronictl=True, **files["stranger"]) as dcs:
            assert await asyncio.to_thread(dcs.set_config_value, "{}") is False
            with pytest.raises(DCSError):
                await asyncio.to_thread(dcs.get_cluster)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "needs one of: host"),
        ({"hosts": "m:x"}, "no port"),
        ({"hosts": "m", "cacert": "/missing/ca.pem"}, "No such file"),
        ({"hosts": "m", "protocol": "ftp"}, "scheme"),
    ],
)
def test_a_section_that_cannot_be_used_ends_patroni(more: dict[str, Any], message: str) -> None:
    with pytest.raises(PatroniFatalException) as caught:
        Etcd3Aio({"name": "n1", "scope": "s", "retry_timeout": 10, **more}, get_mpp({}))
    assert message in caught.value.value
