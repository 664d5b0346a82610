"""Every RPC of the .proto files is reached by a public call, and a real server says that it served it."""

import asyncio
import re
import urllib.request
from collections import Counter
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING

import pytest

from etcd_aio import Client, methods, op, pb
from etcd_aio.error_handler import StreamedReply
from etcd_aio.errors import LearnerNotReadyError, NotSupportedByServerError
from etcd_aio.methods import AnyMethod, Cardinality
from etcd_aio.testing import EtcdServer
from etcd_aio.testing.options import Membership
from etcd_aio.testing.ports import free_ports
from tests.support.auth import ROOT, enable_auth
from tests.support.versions import is_at_least, need_beside

if TYPE_CHECKING:
    from collections.abc import Awaitable

# Of each RPC the public call that makes it.
CALLS = {
    "KV/Range": "get",
    "KV/RangeStream": "scan",
    "KV/Put": "put",
    "KV/DeleteRange": "delete",
    "KV/Txn": "txn",
    "KV/Compact": "compact",
    "Watch/Watch": "watch",
    "Lease/LeaseGrant": "leases.grant",
    "Lease/LeaseRevoke": "leases.revoke",
    "Lease/LeaseKeepAlive": "leases.keep_alive_once",
    "Lease/LeaseTimeToLive": "leases.time_to_live",
    "Lease/LeaseLeases": "leases.list",
    "Cluster/MemberAdd": "cluster.add_learner",
    "Cluster/MemberRemove": "cluster.remove",
    "Cluster/MemberUpdate": "cluster.update",
    "Cluster/MemberList": "cluster.members",
    "Cluster/MemberPromote": "cluster.promote",
    "Maintenance/Alarm": "maintenance.alarms",
    "Maintenance/Status": "maintenance.status",
    "Maintenance/Defragment": "maintenance.defragment",
    "Maintenance/Hash": "maintenance.hash",
    "Maintenance/HashKV": "maintenance.hash_kv",
    "Maintenance/Snapshot": "maintenance.snapshot",
    "Maintenance/MoveLeader": "maintenance.move_leader",
    "Maintenance/Downgrade": "maintenance.downgrade",
    "Auth/AuthEnable": "auth.enable",
    "Auth/AuthDisable": "auth.disable",
    "Auth/AuthStatus": "auth.status",
    "Auth/Authenticate": "auth.authenticate",
    "Auth/UserAdd": "auth.user_add",
    "Auth/UserGet": "auth.user_get",
    "Auth/UserList": "auth.user_list",
    "Auth/UserDelete": "auth.user_delete",
    "Auth/UserChangePassword": "auth.user_change_password",
    "Auth/UserGrantRole": "auth.user_grant_role",
    "Auth/UserRevokeRole": "auth.user_revoke_role",
    "Auth/RoleAdd": "auth.role_add",
    "Auth/RoleGet": "auth.role_get",
    "Auth/RoleList": "auth.role_list",
    "Auth/RoleDelete": "auth.role_delete",
    "Auth/RoleGrantPermission": "auth.role_grant_permission",
    "Auth/RoleRevokePermission": "auth.role_revoke_permission",
}


def test_every_rpc_has_its_call() -> None:
    # That `methods.ALL` is what the .proto files say is tests/unit/test_methods.py's.
    assert CALLS.keys() == {method.name for method in methods.ALL}


@pytest.mark.parametrize("call", CALLS.values())
def test_a_listed_call_is_public(call: str) -> None:
    assert callable(attrgetter(call)(Client()))


async def served(server: EtcdServer) -> Counter[str]:
    """How often a server says that each RPC ended well; of streams, how many messages it sent."""
    text = await asyncio.to_thread(_metrics, server.endpoint)
    names = {method.path: method for method in methods.ALL}
    ended = r'^grpc_server_handled_total{grpc_code="OK",grpc_method="(\w+)",grpc_service="([\w.]+)",.*} (\d+)$'
    sent = r'^grpc_server_msg_sent_total{grpc_method="(\w+)",grpc_service="([\w.]+)",.*} (\d+)$'
    found: Counter[str] = Counter()
    for pattern, is_of_streams in ((ended, False), (sent, True)):
        for name, service, number in re.findall(pattern, text, re.MULTILINE):
            method = names.get(f"/{service}/{name}")
            if method is not None and (method.cardinality is not Cardinality.UNARY) is is_of_streams:
                found[method.name] += int(number)
    return found


def _metrics(endpoint: str) -> str:
    with urllib.request.urlopen(f"{endpoint}/metrics", timeout=10) as reply:
        return str(reply.read().decode())


@pytest.mark.anyio
@pytest.mark.cluster
@pytest.mark.both_engines
async def test_a_real_server_has_served_each(each_engine: str) -> None:
    if each_engine == "gateway" and not is_at_least("3.5"):
        pytest.skip("its gateway has no streams")
    client_port, peer_port = free_ports(2, "127.0.0.1")
    async with EtcdServer() as server, Client(server.endpoint, timeout=20) as client:
        await keys(client)
        await leases(client)
        await one_member(client, server)
        await users(client, server)
        peer_url = f"http://127.0.0.1:{peer_port}"
        learner = (await client.cluster.add_learner(peer_url)).member
        both = Membership({server.name: server.peer_url, "m1": peer_url}, is_joining=True)
        async with EtcdServer("m1", ports=(client_port, peer_port), membership=both) as second:
            async with asyncio.timeout(20):
                while True:
                    with suppress(LearnerNotReadyError):
                        await client.cluster.promote(learner)
                        break
                    await asyncio.sleep(0.05)
            client.set_endpoints([server.endpoint, second.endpoint])
            await client.maintenance.move_leader(learner)
            found = await served(server) + await served(second)
        since = {method.name: method.since for method in methods.ALL}
        expected = {name for name in CALLS if not since[name] or is_at_least(since[name])}
        if each_engine == "gateway":
            expected -= {"KV/RangeStream"}  # the only one that the gateway does not serve
        # The removal comes last: a cluster of two that has lost one does nothing any more.
        assert expected - found.keys() == {"Cluster/MemberRemove"}
    async with EtcdServer() as server, Client(server.endpoint) as client:
        await client.cluster.remove((await client.cluster.add_learner("http://127.0.0.1:1")).member)
        assert (await served(server))["Cluster/MemberRemove"] == 1


async def keys(client: Client) -> None:
    put = await client.put("k/a", "v")
    assert await client.get("k/a") is not None
    async with client.watch(prefix="k/", start_revision=put.revision) as watcher:
        async for event in watcher:
            assert event.key == b"k/a"
            break
    await client.txn().then(*(op.put(f"k/{number:02}", "v") for number in range(20))).commit()
    # The first page is a page; what is left is streamed, where there are streams.
    assert len([kv async for kv in client.scan(prefix="k/", page_size=10)]) == 21
    assert (await client.delete("k/a")).deleted == 1
    await client.compact(put.revision)


async def leases(client: Client) -> None:
    lease = await client.leases.grant(60)
    assert (await client.leases.keep_alive_once(lease)).ttl == 60
    assert (await client.leases.time_to_live(lease)).granted_ttl == 60
    assert lease.id in (await client.leases.list()).ids
    await client.leases.revoke(lease)


async def users(client: Client, server: EtcdServer) -> None:
    auth = client.auth
    if is_at_least("3.5"):
        assert not (await auth.status()).enabled
    await auth.role_add("reads")
    await auth.role_grant_permission("reads", "k", permission="read")
    assert (await auth.role_get("reads")).permissions
    await auth.role_revoke_permission("reads", "k")
    await auth.user_add("guest", "guest-c4n4ry")
    await auth.user_change_password("guest", "other-c4n4ry")
    await auth.user_grant_role("guest", "reads")
    assert (await auth.user_get("guest")).roles == ("reads",)
    await auth.user_revoke_role("guest", "reads")
    await auth.user_delete("guest")
    await auth.role_delete("reads")
    await enable_auth(server)
    async with Client(server.endpoint, auth=ROOT, allow_insecure_auth=True) as root:
        assert (await root.auth.user_list()).users == ("root",)
        assert (await root.auth.role_list()).roles == ("root",)
        assert (await root.auth.authenticate(*ROOT)).token
        await root.auth.disable()


async def one_member(client: Client, server: EtcdServer) -> None:
    (member,) = await client.cluster.members()
    await client.cluster.update(member, member.peer_urls)
    maintenance = client.maintenance
    assert not await maintenance.alarms()
    assert (await maintenance.status(server.endpoint)).version == server.version
    assert (await maintenance.hash(server.endpoint)).hash
    assert (await maintenance.hash_kv(server.endpoint)).hash
    await maintenance.defragment(server.endpoint)
    assert [chunk async for chunk in maintenance.snapshot()]
    if is_at_least("3.5"):
        major, minor, _ = server.binary.version_info
        await maintenance.downgrade("validate", f"{major}.{minor - 1}.0")


@pytest.mark.anyio
@pytest.mark.cluster
@pytest.mark.usefixtures("each_engine")
async def test_what_an_old_server_lacks_is_named_with_the_release_that_has_it() -> None:
    need_beside("3.4")
    async with EtcdServer(version="3.4") as old, Client(old.endpoint) as client:
        lacking: dict[AnyMethod, Awaitable[object]] = {
            methods.RANGE_STREAM: client._invoker.read(StreamedReply(methods.RANGE_STREAM), pb.RangeRequest(key=b"k")),
            methods.DOWNGRADE: client.maintenance.downgrade("validate", "3.3.0"),
            methods.AUTH_STATUS: client.auth.status(),
        }
        assert lacking.keys() == {method for method in methods.ALL if method.since}
        for method, call in lacking.items():
            with pytest.raises(NotSupportedByServerError) as caught:
                await call
            error = caught.value
            assert error.message.startswith(f"{method.name} needs etcd {method.since} or newer: ")
            assert (error.feature, error.needs, error.endpoint) == (method.name, method.since, old.endpoint)
            assert not error.maybe_applied
