"""What members say of themselves, by gRPC's health service and over HTTP: every release, the fake, and proxies."""

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from etcd_aio import Client, codec, pb
from etcd_aio.errors import AttemptFailure, StatusCode
from etcd_aio.fake import FakeEtcd
from etcd_aio.methods import HEALTH_CHECK, HEALTH_WATCH
from etcd_aio.testing import EtcdCluster, EtcdServer, ServerTLS
from etcd_aio.transport import Connection, EngineName
from etcd_aio.types import Health
from tests.support.grpc_proxy import grpc_proxy
from tests.support.transport import HTTP2_ENGINES, Owner, engine, soon, target
from tests.support.until import until
from tests.support.versions import need, need_beside

pytestmark = pytest.mark.anyio

RELEASES = ("3.4", "3.5", "3.6", "3.7")
SERVERS = [f"{kind} {release}" for release in RELEASES for kind in ("etcd", "fake")]
GATE = "--feature-gates=StopGRPCServiceOnDefrag=true"
Status = pb.health.HealthCheckResponseServingStatus


@asynccontextmanager
async def running(server: str, **options: object) -> AsyncIterator[str]:
    """The endpoint of a member of a release, or of a fake that is served over sockets."""
    kind, _, release = server.partition(" ")
    if kind == "etcd":
        need_beside(release)
        async with EtcdServer(version=release, **options) as etcd:  # type: ignore[arg-type]
            yield etcd.endpoint
    else:
        async with FakeEtcd(release) as fake, fake.serve() as endpoint:
            yield endpoint


@asynccontextmanager
async def connection_to(endpoint: str, name: EngineName = "native") -> AsyncIterator[Connection]:
    port = urlsplit(endpoint).port
    assert port is not None
    connection = await engine(name).connect(target(port), Owner())
    try:
        yield connection
    finally:
        await connection.aclose()


async def first_word(connection: Connection, request: pb.health.HealthCheckRequest) -> Status:
    stream = await connection.open_stream(HEALTH_WATCH.path, (), soon())
    try:
        await stream.send(codec.encode(request))
        await stream.half_close()
        async with asyncio.timeout(20):
            message = await stream.receive()
        assert isinstance(message, bytes)
        return Status(codec.decode(pb.health.HealthCheckResponse, message).status)
    finally:
        stream.cancel()


# gRPC's health service.


@pytest.mark.parametrize("name", HTTP2_ENGINES)
@pytest.mark.parametrize("server", SERVERS)
async def test_every_release_has_the_health_service_and_so_has_the_fake(server: str, name: EngineName) -> None:
    async with running(server) as endpoint, connection_to(endpoint, name) as connection:
        assert await first_word(connection, pb.health.HealthCheckRequest()) is Status.SERVING
        unknown = pb.health.HealthCheckRequest(service="no")
        assert await first_word(connection, unknown) is Status.SERVICE_UNKNOWN
        with pytest.raises(AttemptFailure) as caught:
            await connection.unary(HEALTH_CHECK.path, codec.encode(unknown), (), soon())
        assert caught.value.code is StatusCode.NOT_FOUND


async def test_no_token_is_needed() -> None:
    async with EtcdServer() as server, Client(server.endpoint) as client:
        await client.auth.user_add("root", "secret")
        await client.auth.role_add("root")
        await client.auth.user_grant_role("root", "root")
        await client.auth.enable()
        async with connection_to(server.endpoint) as connection:
            assert await first_word(connection, pb.health.HealthCheckRequest()) is Status.SERVING


@pytest.mark.both_engines
@pytest.mark.http2_only
@pytest.mark.usefixtures("each_engine")
async def test_a_member_that_defragments_is_left_by_calls_and_used_again() -> None:
    need("3.6", why="the feature gate")
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(EtcdCluster(3, flags=(GATE,)))
        admin = await stack.enter_async_context(Client(cluster.endpoints))
        for number in range(240):
            await admin.put(f"fill/{number}", os.urandom(500_000), timeout=20)
        client = await stack.enter_async_context(Client(cluster.endpoints))
        await client.get("k")
        await asyncio.sleep(1.5)  # the streams are open a second after the connections
        for member in cluster.members:
            member_id = (await admin.maintenance.status(member.endpoint)).header.member_id
            answered_by: list[int] = []
            for _ in range(5):  # one is missed if this process stands still meanwhile
                defragmenting = asyncio.create_task(admin.maintenance.defragment(member.endpoint, timeout=60))
                while not defragmenting.done():
                    if health_of(client, member) is Health.NOT_SERVING:  # a read chooses its member at once
                        found = await client.range("k", serializable=len(answered_by) % 2 == 1, timeout=20)
                        others = [health_of(client, one) for one in cluster.members if one is not member]
                        if others == [Health.HEALTHY] * 2:  # else one stood still, and the read moved on
                            answered_by.append(found.header.member_id)
                    else:
                        await asyncio.sleep(0.001)
                await defragmenting
                if len(answered_by) > 2:
                    break
            assert len(answered_by) > 2, "it says so before it defragments"
            assert member_id not in answered_by
            await until(lambda one=member: health_of(client, one) is Health.HEALTHY)  # type: ignore[misc]


def health_of(client: Client, member: EtcdServer) -> Health:
    (found,) = [one.health for one in client.statistics() if one.endpoint == member.endpoint]
    return found


async def test_a_single_member_that_defragments_is_used_all_the_same() -> None:
    need("3.6", why="the feature gate")
    async with EtcdServer(flags=(GATE,)) as server, Client(server.endpoint) as client:
        for number in range(100):
            await client.put(f"fill/{number}", os.urandom(500_000), timeout=20)
        await asyncio.sleep(1.5)
        defragmenting = asyncio.create_task(client.maintenance.defragment(server.endpoint, timeout=60))
        await until(lambda: health_of(client, server) is Health.NOT_SERVING or defragmenting.done())
        assert (await client.range("fill/1", timeout=30)).kvs
        await defragmenting
        await until(lambda: health_of(client, server) is Health.HEALTHY)


async def test_behind_a_proxy_without_the_service_nothing_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with EtcdServer() as server, grpc_proxy(server, tmp_path) as endpoint, connection_to(endpoint) as connection:
        stream = await connection.open_stream(HEALTH_WATCH.path, (), soon())
        await stream.send(b"")
        with pytest.raises(AttemptFailure) as caught:
            await stream.receive()
        assert caught.value.code is StatusCode.UNIMPLEMENTED
        with caplog.at_level(logging.WARNING, "etcd_aio"):
            async with Client(endpoint) as client:
                await client.put("k", "v")
                await asyncio.sleep(1.5)
                assert (await client.range("k")).kvs[0].value == b"v"
                assert client.statistics()[0].health is Health.HEALTHY
            assert not caplog.records


# Over HTTP.


@pytest.mark.parametrize("server", SERVERS)
async def test_every_check_of_a_healthy_member(server: str) -> None:
    async with running(server) as endpoint, Client(endpoint) as client:
        await client.put("k", "v")
        live = await client.maintenance.livez(client.endpoints[0])
        ready = await client.maintenance.readyz(client.endpoints[0])
        assert live
        assert ready
        if ready.is_fallback:
            assert "3.4" in server
            assert [one.name for one in (*live.checks, *ready.checks)] == ["health", "health"]
            return
        assert [one.name for one in live.checks] == ["serializable_read"]
        names = ["data_corruption", "linearizable_read", "non_learner", "serializable_read"]
        assert [one.name for one in ready.checks] == names
        without = await client.maintenance.readyz(client.endpoints[0], exclude=["linearizable_read", "no such check"])
        assert [one.name for one in without.checks] == [name for name in names if name != "linearizable_read"]


@pytest.mark.parametrize("server", SERVERS)
async def test_an_alarm_is_told_by_the_check_that_it_concerns(server: str) -> None:
    async with running(server) as endpoint, Client(endpoint) as client:
        await client.maintenance.raise_alarm("nospace")
        full = await client.maintenance.readyz(client.endpoints[0])
        assert full.is_ok is not full.is_fallback, "a full database is no reason, but for /health"
        await client.maintenance.disarm()
        await client.maintenance.raise_alarm("corrupt")
        corrupt = await client.maintenance.readyz(client.endpoints[0])
        assert not corrupt
        (check,) = corrupt.failed
        if corrupt.is_fallback:
            assert check.name == "health"
        else:
            assert (check.name, check.reason) == ("data_corruption", "alarm activated: CORRUPT")
            assert await client.maintenance.livez(client.endpoints[0])
            assert await client.maintenance.readyz(client.endpoints[0], exclude=["data_corruption"])


@pytest.mark.slow
async def test_without_a_leader_a_member_is_live_and_not_ready() -> None:
    need("3.4.29", "3.5.11", "3.6", why="/readyz")
    async with EtcdCluster(3) as cluster, Client(cluster.endpoints) as client:
        await client.put("k", "v")
        left, *others = cluster.members
        for member in others:
            await member.kill()
        ready = await client.maintenance.readyz(left.endpoint, timeout=30)
        assert [one.name for one in ready.failed] == ["linearizable_read"]
        assert await client.maintenance.livez(left.endpoint)


async def test_every_engine_reads_the_answer_of_a_member_that_is_not_ready(
    each_tls: tuple[ServerTLS | None, ssl.SSLContext | None],
) -> None:
    need("3.4.29", "3.5.11", "3.6", why="/readyz")
    server_tls, client_tls = each_tls
    engines: tuple[EngineName, ...] = ("native", "grpclib", "gateway")
    async with EtcdServer(tls=server_tls) as server:
        for name in engines:
            async with Client(server.endpoint, engine=name, tls=client_tls) as client:
                await client.maintenance.raise_alarm("corrupt")
                ready = await client.maintenance.readyz(server.endpoint)
                assert [one.name for one in ready.failed] == ["data_corruption"]
