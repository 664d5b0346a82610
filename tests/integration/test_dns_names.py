"""DNS names as endpoints, on real members and a real DNS server whose records change, and on one that fails."""

import asyncio
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trustme

pytest.importorskip("dns", reason="dnspython is an extra")

from dns.rcode import Rcode

from etcd_aio import Client, NoAvailableEndpointsError
from etcd_aio.balancer import PolicyName
from etcd_aio.discovery import discovery
from etcd_aio.testing import EtcdServer, ServerTLS
from etcd_aio.testing.ports import free_ports
from tests.support.client_load import loaded
from tests.support.dns_process import dns_process
from tests.support.dns_stub import DnsStub
from tests.support.dnsmasq import Dnsmasq
from tests.support.loopback_cluster import loopback_cluster

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

A, B, C = "127.0.0.2", "127.0.0.3", "127.0.0.4"
NAME = "etcd.test"

Cluster = dict[str, EtcdServer]


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def short_ttls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_SHORTEST_TTL", 1.0)


@pytest.fixture
async def members() -> AsyncIterator[Cluster]:
    async with loopback_cluster((A, B, C)) as servers:
        yield servers


def port_of(members: Cluster) -> int:
    return int(members[A].endpoint.rpartition(":")[2])


def endpoint_at(address: str, members: Cluster) -> str:
    return f"dns:///{NAME}:{port_of(members)}#{address}"


def ready(client: Client) -> set[str]:
    return {one.endpoint.partition("#")[2] for one in client.statistics() if one.state.name == "READY"}


def lookups(server: Dnsmasq) -> int:
    """How often the client has looked up its name: tests ask for A records only."""
    return server.asked.count(("AAAA", NAME))


# Records that change.


@pytest.mark.slow
async def test_addresses_come_and_go_without_a_failed_call(members: Cluster) -> None:
    async with Dnsmasq(ttl=1) as server:
        await server.says(NAME, A, B)
        async with Client(f"dns:///{NAME}:{port_of(members)}", timeout=10) as client, loaded(client, "k") as load:
            await until(lambda: ready(client) == {A, B})
            assert client.endpoints == tuple(endpoint_at(one, members) for one in client_order(client))

            await server.says(NAME, A, B, C)
            before = lookups(server)
            await until(lambda: endpoint_at(C, members) in client.endpoints)
            assert lookups(server) - before <= 2, "the first answer that has it is used"
            await until(lambda: ready(client) == {A, B, C})

            for left in ((B, C), (C,), (A,)):
                await server.says(NAME, *left)
                await until(lambda left=left: ready(client) == set(left))  # type: ignore[misc]
                await load.until_all_is_seen()
        load.check()


def client_order(client: Client) -> list[str]:
    return [endpoint.partition("#")[2] for endpoint in client.endpoints]


async def test_if_all_members_have_moved_the_name_is_asked_before_its_ttl(members: Cluster) -> None:
    async with Dnsmasq(ttl=3000) as server:
        await server.says(NAME, A)
        async with Client(f"dns:///{NAME}:{port_of(members)}", timeout=20) as client:
            await client.put("k", "v")
            assert lookups(server) == 1
            await server.says(NAME, B, C)
            began = time.monotonic()
            await members[A].kill()
            assert await client.get("k") is not None
            assert ready(client) <= {B, C}
            assert 2 <= lookups(server) <= 5 + (time.monotonic() - began)


async def test_names_beside_endpoints_in_every_place_that_takes_endpoints(members: Cluster) -> None:
    port = port_of(members)
    async with Dnsmasq(ttl=60, aliases={"alias.test": NAME}) as server:
        await server.says(NAME, A)
        await server.says("other.test", B)
        for client in (
            Client(f"dns:///{NAME}:{port}"),
            Client([f"http://{C}:{port}", f"http+dns://alias.test:{port}", f"dns://other.test:{port}"]),
            Client.from_url(f"etcd+dns://{NAME}:{port},other.test:{port}/?timeout=30s"),
            Client.from_env({"ETCDCTL_ENDPOINTS": f"dns:///{NAME}:{port},http://{C}:{port}"}),
        ):
            async with client:
                await client.put("k", "v")
                number = len(client._discovery.names)
                await until(lambda client=client, n=number: len(client.endpoints) == n)  # type: ignore[misc]
                await until(lambda client=client: all(one.state.name == "READY" for one in client.statistics()))  # type: ignore[misc]
                client.set_endpoints(f"dns:///other.test:{port}")
                await client.put("k", "v")
                assert client.endpoints == (f"dns:///other.test:{port}#{B}",)
                status = await client.maintenance.status(client.endpoints[0])
                assert status.header.member_id


async def test_the_command_line_asks_every_address() -> None:
    def run(endpoints: str, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "etcd_aio", f"--endpoints={endpoints}", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    async with EtcdServer() as server:
        port = server.endpoint.rpartition(":")[2]
        for words, says in (
            (["endpoint", "health"], f"dns:///localhost:{port}#127.0.0.1 is healthy"),
            (["put", "k", "v"], "OK"),
        ):
            done = await asyncio.to_thread(run, f"dns:///localhost:{port}", *words)
            assert says in done.stdout, done.stderr
        done = await asyncio.to_thread(run, "dns:///nowhere.invalid", "get", "k")
        assert "dns:///nowhere.invalid:2379: DiscoveryError" in done.stderr


# TLS.


async def test_each_address_is_verified_as_the_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    own = authority.issue_cert(NAME)  # and no address
    files = [tmp_path / name for name in ("server.pem", "server.key", "ca.pem")]
    own.cert_chain_pems[0].write_to_path(files[0])
    own.private_key_pem.write_to_path(files[1])
    authority.cert_pem.write_to_path(files[2])
    context = ssl.create_default_context(cafile=files[2])
    async with (
        loopback_cluster((A, B), tls=ServerTLS(files[0], files[1])) as members,
        Dnsmasq(ttl=60) as server,
    ):
        port = port_of(members)
        await server.says(NAME, A, B)
        await server.says("other.test", A)
        for form in ("dns:///", "https+dns://"):
            async with Client(f"{form}{NAME}:{port}", tls=context) as client:
                await client.put("k", "v")
                await until(lambda client=client: ready(client) == {A, B})  # type: ignore[misc]
        async with Client.from_url(f"etcds+dns://{NAME}:{port}/?ca={files[2]}") as client:
            await client.put("k", "v")
        async with Client(f"https+dns://other.test:{port}", tls=context, timeout=1) as client:
            with pytest.raises(NoAvailableEndpointsError, match=r"other\.test"):
                await client.put("k", "v")


# DNS that fails.


FAULTS = ["SERVFAIL", "silence", "NXDOMAIN", "no server"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.nightly)])
async def test_nothing_is_lost_while_dns_fails(
    fault: str, seconds: int, members: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "_RESOLVE_TIMEOUT", 1.0)
    async with Dnsmasq(ttl=1) as server:
        await server.says(NAME, A, B)
        async with Client(f"dns:///{NAME}:{port_of(members)}", timeout=10) as client, loaded(client, "k") as load:
            await until(lambda: ready(client) == {A, B})
            async with DnsStub() as stub:
                if fault == "SERVFAIL":
                    stub.fails(Rcode.SERVFAIL)
                elif fault == "silence":
                    stub.is_silent = True
                elif fault == "no server":
                    stub.close()
                calls = load.calls
                await asyncio.sleep(seconds)
                if fault != "no server":
                    await until(lambda: len(stub.asked) >= 2)
            assert load.calls > calls
            assert ready(client) == {A, B}
            assert [one.connects for one in client.statistics()] == [1, 1], "no connection was made again"
            await server.says(NAME, B, C)
            await until(lambda: ready(client) == {B, C}, 60)
        load.check()


@pytest.mark.parametrize("policy", ["round_robin", "pinned"])
async def test_an_address_of_another_cluster_gets_no_call(policy: PolicyName) -> None:
    """As in Kubernetes, where the address of a pod that has ended is given to another one."""
    async with loopback_cluster((A,)) as own, Dnsmasq(ttl=1) as server:
        port = port_of(own)
        (peer_port,) = free_ports(1, B)
        async with EtcdServer("other", ports=(port, peer_port), host=B) as other:
            await server.says(NAME, A)
            client = Client(f"dns:///{NAME}:{port}", policy=policy)
            async with client, loaded(client, "k") as load:
                await until(lambda: ready(client) == {A})
                for addresses in ((A, B), (B,)):  # in the end it is the only one
                    await server.says(NAME, *addresses)
                    await until(lambda: any(one.endswith(B) for one in client.endpoints))
                    calls = load.calls
                    await until(lambda calls=calls: load.calls > calls + 200)  # type: ignore[misc]
                    assert ready(client) == {A}
                await until(lambda: "belongs to cluster" in str(client._balancer.no_available_endpoints()))
            load.check()
            async with Client(other.endpoint) as outside:
                found = await outside.get("k")
                assert found is None
                assert (await outside.maintenance.status(other.endpoint)).header.revision == 1


async def test_errors_tell_why_a_name_has_no_address() -> None:
    async with DnsStub() as stub, Client("dns:///etcd.test:2379", timeout=0.5) as client:
        with pytest.raises(NoAvailableEndpointsError, match=r"dns:///etcd\.test:2379: Disc.*: etcd\.test has no"):
            await client.get("k")
        stub.fails(Rcode.SERVFAIL)
        await until(lambda: "SERVFAIL" in str(client._balancer.no_available_endpoints()))


# Many clients.


@pytest.mark.slow
@pytest.mark.parametrize("number", [100, pytest.param(500, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("is_refused", [False, True], ids=["connected", "refused"])
async def test_clients_that_start_together_do_not_ask_in_step(
    number: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    address = "127.0.0.9" if is_refused else "127.0.0.1"
    async with EtcdServer() as etcd, dns_process(address, ttl=5) as server:
        port = etcd.endpoint.rpartition(":")[2]
        clients = [Client(f"dns:///c{client}.test:{port}") for client in range(number)]
        began = time.monotonic()
        try:
            await asyncio.gather(*(client.connect() for client in clients))
            await asyncio.sleep(16)
        finally:
            await asyncio.gather(*(client.aclose() for client in clients))
        seconds = time.monotonic() - began
    asked = [(at - began, name) for at, kind, name in server.queries if kind == "A"]
    histogram = Counter(int(at * 10) for at, _ in asked)
    most = max(Counter(name for _, name in asked).values())
    print("queries per 100 ms:", *(histogram[bucket] for bucket in range(int(seconds * 10) + 1)))
    print(f"{len(asked)} queries of {number} clients in {seconds:.1f} s, at most {most} of one")
    assert most <= seconds + 1, "one in a second, and the first"
    # All of them ask at the start. Without jitter they would go on like that, in one or two buckets.
    later = [count for bucket, count in histogram.items() if bucket >= 30]
    assert sum(later) >= 2 * number
    assert len(later) >= 30, "in many different tenths of a second"
    assert sorted(later)[-3] < number / 2, "but where a process stood still for a moment"
