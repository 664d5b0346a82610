"""Discovery on real servers: members that come and go, DNS records, unix sockets, mixed endpoints, versions."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from etcd_aio import Client, ConnectionLostError, NoAvailableEndpointsError
from etcd_aio.admin import versions as versions_module
from etcd_aio.discovery import discovery
from etcd_aio.errors import (
    DiscoveryError,
    MemberNotFoundError,
    OldClusterError,
    ServerStoppedError,
    UnhealthyClusterError,
)
from etcd_aio.testing import EtcdCluster, EtcdServer, ServerTLS
from etcd_aio.testing.options import Membership
from etcd_aio.testing.ports import free_ports
from tests.support.versions import need

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

only_tls = pytest.mark.parametrize("each_tls", ["tls"], indirect=True)

TLS = tuple[ServerTLS | None, ssl.SSLContext | None]


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.02)


async def once_allowed(change: Callable[[], Awaitable[object]]) -> None:
    """Make a change of the cluster: etcd refuses it until its members have been connected for five seconds."""
    async with asyncio.timeout(30):
        while True:
            with suppress(UnhealthyClusterError):
                await change()
                return
            await asyncio.sleep(0.2)


def connects(client: Client) -> dict[str, int]:
    return {one.endpoint: one.connects for one in client.statistics()}


@asynccontextmanager
async def reading(client: Client) -> AsyncIterator[list[BaseException]]:
    """Reads all the time; what failed."""
    failed: list[BaseException] = []

    async def read() -> None:
        while True:
            try:
                await client.get("k")
            except Exception as error:  # whatever it is, the test shows it
                failed.append(error)
            await asyncio.sleep(0.005)

    task = asyncio.create_task(read())
    try:
        yield failed
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


# sync.


@pytest.mark.usefixtures("each_engine")
async def test_one_member_tells_of_the_others_and_stays_connected(cluster: EtcdCluster) -> None:
    first = cluster.endpoints[0]
    async with Client(first.removeprefix("http://")) as client:
        await client.put("k", "v")
        known = client.endpoints[0]
        assert set(await client.sync()) == {known, *cluster.endpoints[1:]}
        await until(lambda: len(client.statistics()) == 3 and all(connects(client).values()))
        assert connects(client)[known] == 1
        await cluster.members[0].kill()
        assert await client.get("k") is not None


@pytest.mark.slow
async def test_a_member_is_added_and_another_one_removed_while_it_is_in_use(cluster: EtcdCluster) -> None:
    ports = free_ports(2, "127.0.0.1")
    peer_url = f"http://127.0.0.1:{ports[1]}"
    async with Client(cluster.endpoints, auto_sync=0.2, timeout=10) as client:
        before = {member.name: member for member in await client.cluster.members()}
        await once_allowed(lambda: client.cluster.add(peer_url))
        peers = {name: member.peer_urls[0] for name, member in before.items()}
        membership = Membership({**peers, "m3": peer_url}, is_joining=True)
        assert set(client.endpoints) == set(cluster.endpoints), "it has not started"
        async with (
            client.watch("w") as watcher,
            client.lease(30) as lease,
            EtcdServer("m3", ports=(ports[0], ports[1]), membership=membership) as fourth,
        ):
            await until(lambda: fourth.endpoint in client.endpoints)
            async with reading(client) as failed:
                gone = (await cluster.followers())[0]
                # Who is told to remove itself may end before it has answered.
                with suppress(ConnectionLostError, MemberNotFoundError, ServerStoppedError):
                    await once_allowed(lambda: client.cluster.remove(before[gone.name]))
                await until(lambda: gone.endpoint not in client.endpoints)
                assert set(client.endpoints) == {fourth.endpoint, *cluster.endpoints} - {gone.endpoint}
                await until(lambda: all(one.state.name == "READY" for one in client.statistics()))
                await client.put("w", "1")
                assert (await anext(aiter(watcher))).value == b"1"
                assert not lease.is_lost
            assert not failed


@only_tls
async def test_a_client_with_tls_does_not_learn_what_is_advertised_in_the_clear(each_tls: TLS) -> None:
    tls, context = each_tls
    clear, peer, secure = free_ports(3, "127.0.0.1")
    urls = f"https://127.0.0.1:{secure},http://127.0.0.1:{clear}"
    flags = [f"--listen-client-urls={urls}", f"--advertise-client-urls={urls}"]
    async with (
        EtcdServer(ports=(secure, peer), tls=tls, flags=flags),
        Client(f"https://127.0.0.1:{secure}", tls=context) as client,
        Client(f"http://127.0.0.1:{clear}") as plain,
    ):
        assert await client.sync() == (f"https://127.0.0.1:{secure}",)
        assert set(await plain.sync()) == {f"https://127.0.0.1:{secure}", f"http://127.0.0.1:{clear}"}


async def test_unreachable_addresses_change_nothing() -> None:
    client_port, peer, unused = free_ports(3, "127.0.0.1")
    async with (
        EtcdServer(ports=(client_port, peer), flags=[f"--advertise-client-urls=http://127.0.0.1:{unused}"]) as server,
        Client(server.endpoint, connect_timeout=0.3) as client,
    ):
        with pytest.raises(DiscoveryError, match="none of the endpoints") as caught:
            await client.sync()
        assert isinstance(caught.value.__cause__, NoAvailableEndpointsError)
        assert client.endpoints == (server.endpoint,)
        assert connects(client) == {server.endpoint: 1}


# DNS.

NAME = "_etcd-client._tcp.example.com"


@pytest.mark.usefixtures("each_engine")
async def test_records_say_where_the_members_are(cluster: EtcdCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dns", reason="dnspython is an extra")
    from dns.rcode import Rcode

    from tests.support.dns_stub import DnsStub, srv

    monkeypatch.setattr(discovery, "_SHORTEST_TTL", 0.3)
    ports = [int(endpoint.rpartition(":")[2]) for endpoint in cluster.endpoints]
    names = [f"http://localhost:{port}" for port in ports]
    records = [srv(0, 0, port, "localhost") for port in ports]
    async with DnsStub() as stub, Client(discovery_srv="example.com", connect_timeout=0.5) as client:
        with pytest.raises(NoAvailableEndpointsError, match="neither"):
            await client.get("k", timeout=0.5)
        stub.says(NAME, records[0], ttl=1)
        await client.put("k", "v", timeout=20)
        assert client.endpoints == (names[0],)

        # Silence and failures leave what is known.
        asked = len(stub.asked)
        stub.is_silent = True
        await until(lambda: len(stub.asked) > asked)
        await client.get("k")
        stub.is_silent = False
        stub.fails(Rcode.SERVFAIL)
        asked = len(stub.asked)
        await until(lambda: len(stub.asked) > asked)
        assert client.endpoints == (names[0],)
        stub.fails(None)

        # The member is gone, and the records know where the others are.
        stub.says(NAME, *records[1:], ttl=1)
        await cluster.members[0].kill()
        assert await client.get("k", timeout=20) is not None
        assert set(client.endpoints) == set(names[1:])


@only_tls
async def test_a_client_with_tls_takes_only_records_of_members_with_tls(each_tls: TLS) -> None:
    pytest.importorskip("dns", reason="dnspython is an extra")
    from tests.support.dns_stub import DnsStub, srv

    tls, context = each_tls
    async with EtcdServer(tls=tls) as server, DnsStub() as stub:
        port = int(server.endpoint.rpartition(":")[2])
        stub.says(NAME, srv(0, 0, port, "localhost"))
        async with Client(discovery_srv="example.com", tls=context, timeout=1.0) as client:
            with pytest.raises(NoAvailableEndpointsError, match="requires TLS"):
                await client.get("k")
            stub.says("_etcd-client-ssl._tcp.example.com", srv(0, 0, port, "localhost"))
            await client.put("k", "v", timeout=20)
            assert client.endpoints == (f"https://localhost:{port}",)
        assert NAME not in stub.asked


# Sockets and schemes.


@pytest.mark.both_engines
@pytest.mark.usefixtures("each_engine")
async def test_unix_sockets(each_tls: TLS, tmp_path: Path) -> None:
    need("3.5.35", why="older ones take no path for a socket")
    tls, context = each_tls
    client_port, peer = free_ports(2, "127.0.0.1")
    path = tmp_path / "localhost"  # the name that the certificate must carry
    kind = "unix" if tls is None else "unixs"
    web = f"http{'' if tls is None else 's'}://127.0.0.1:{client_port}"
    flags = [f"--listen-client-urls={web},{kind}://{path}"]  # etcd before 3.6 cannot advertise a socket
    async with EtcdServer(ports=(client_port, peer), tls=tls, flags=flags):
        for endpoint in (f"{kind}:{path}", f"{kind}://{path}"):
            async with Client(endpoint, tls=context) as client:
                await client.put("k", "v")
                (found,) = await client.versions()
                assert found.endpoint == client.endpoints[0]
                assert found.server_version >= (3, 4, 0)
                assert found.cluster_version >= (3, 4, 0)
                assert await client.sync() == (web,)
                assert await client.get("k") is not None
        url = f"etcd{'' if tls is None else 's'}+unix://{path}?timeout=30s"
        async with Client.from_url(url, tls=context) as client:
            assert await client.get("k") is not None


@pytest.mark.both_engines
@only_tls
@pytest.mark.usefixtures("each_engine")
async def test_plaintext_and_tls_side_by_side(each_tls: TLS) -> None:
    tls, context = each_tls
    clear, peer, secure = free_ports(3, "127.0.0.1")
    endpoints = [f"https://127.0.0.1:{secure}", f"http://127.0.0.1:{clear}"]
    flags = [f"--listen-client-urls={','.join(endpoints)}"]
    async with EtcdServer(ports=(secure, peer), tls=tls, flags=flags):
        for given in (endpoints, endpoints[::-1]):
            async with Client(given, tls=context) as client:
                await until(lambda: all(one.state.name == "READY" for one in client.statistics()))
                for _ in range(4):
                    await client.put("k", "v")
                assert {one.endpoint: one.attempts for one in client.statistics()} == dict.fromkeys(given, 2)
                assert {one.cluster for one in await client.versions()} - {""}


# Versions.


@pytest.mark.usefixtures("each_engine")
async def test_every_endpoint_tells_its_version_or_why_not(cluster: EtcdCluster) -> None:
    await cluster.members[2].kill()
    async with Client(cluster.endpoints) as client:
        found = await client.versions(timeout=3.0)
        version = cluster.members[0].version
        assert [one.endpoint for one in found] == list(cluster.endpoints)
        assert [one.server for one in found] == [version, version, ""]
        assert ".".join(map(str, found[0].server_version)) == version.partition("-")[0]
        assert {one.cluster_version[:2] for one in found[:2]} == {found[0].server_version[:2]}
        assert isinstance(found[2].error, NoAvailableEndpointsError)


@pytest.mark.usefixtures("each_engine")
async def test_versions_over_tls(each_tls: TLS) -> None:
    tls, context = each_tls
    async with EtcdServer(tls=tls) as server, Client(server.endpoint, tls=context) as client:
        (found,) = await client.versions()
        assert found.server == server.version
        assert found.cluster_version[:2] == found.server_version[:2]
        await client.put("k", "v")


async def test_old_clusters_are_rejected_if_the_user_wants_it(
    shared_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Client(shared_server.endpoint, reject_old_cluster=True) as client:
        await client.get("k")
    monkeypatch.setattr(versions_module, "OLDEST", (99, 0, 0))
    client = Client(shared_server.endpoint, reject_old_cluster=True)
    with pytest.raises(OldClusterError, match=r"this client supports 99\.0"):
        await client.connect()
    assert repr(client) == "<Client closed>"
    (unused,) = free_ports(1, "127.0.0.1")
    client = Client(f"http://127.0.0.1:{unused}", reject_old_cluster=True, timeout=0.3)
    with pytest.raises(NoAvailableEndpointsError):
        await client.connect()
    assert repr(client) == "<Client closed>"
    async with Client(shared_server.endpoint) as client:
        await client.get("k")
