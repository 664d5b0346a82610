"""The second door of a fake: sockets for clients in any language, with the faults of the first."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, Event, PingAckReceived, StreamEnded

from etcd_aio import Client, ConfigError, pb
from etcd_aio.codec import encode
from etcd_aio.errors import (
    EtcdError,
    EtcdTimeoutError,
    NoAvailableEndpointsError,
    NoLeaderError,
    RequestDeadlineExceededError,
    RequestTooLargeError,
    StatusCode,
    UnavailableError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.transport import EngineName
from tests.support import loops
from tests.support.services import services
from tests.support.transport import HTTP2_ENGINES, Owner, engine, soon, target
from tests.support.until import PATIENCE, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=loops.BOTH)
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture(params=HTTP2_ENGINES)
def name(request: pytest.FixtureRequest) -> EngineName:
    engine: EngineName = request.param
    return engine


@asynccontextmanager
async def served(members: int = 1, name: EngineName = "native") -> AsyncIterator[tuple[FakeEtcd, Client]]:
    """A fake, and a client that is connected to it by sockets."""
    async with FakeEtcd(members=members) as fake, fake.serve() as endpoint, Client(endpoint, engine=name) as client:
        await client.wait_ready(timeout=PATIENCE)
        yield fake, client


async def get(endpoint: str, text: bytes) -> bytes:
    """What a server sends behind some bytes, until it ends the connection."""
    url = urlsplit(endpoint)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        writer.write(text)
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    finally:
        writer.transport.abort()


# What it serves.


async def test_both_doors_lead_to_the_same_state(name: EngineName) -> None:
    async with served(name=name) as (fake, client), fake.client() as other:
        async with client.watch(prefix="a") as watch, client.lease(60) as lease:
            await other.put("a", "1")
            await client.put("ab", "2", lease=lease)
            assert [(await anext(watch)).key, (await anext(watch)).key] == [b"a", b"ab"]
            assert fake.keys() == {b"a": b"1", b"ab": b"2"}
            assert [one.keys for one in fake.leases] == [(b"ab",)]
            assert [(one.key, one.range_end) for one in fake.watchers] == [(b"a", b"b")]
            assert (await lease.keep_alive_once()).ttl == 60
        await until(lambda: fake.keys() == {b"a": b"1"} and fake.watchers == ())
        assert {one.status for one in fake.calls if one.method == "KV/Put"} == {StatusCode.OK}


async def test_errors_are_those_of_etcd(name: EngineName) -> None:
    async with served(name=name) as (_, client):
        with pytest.raises(RequestTooLargeError, match="etcdserver: request is too large"):
            await client.put("a", b"x" * 1_600_000)
        await client.put("a", b"x" * 1_400_000)
        found = await client.get("a")
        assert found is not None
        assert len(found.value) == 1_400_000


async def test_more_streams_at_once_than_http2_libraries_allow_by_default(name: EngineName) -> None:
    create = encode(pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"a")))
    async with FakeEtcd() as fake, fake.serve() as endpoint:
        connection = await engine(name).connect(target(urlsplit(endpoint).port or 0), Owner())
        streams = [await connection.open_stream("/etcdserverpb.Watch/Watch", (), soon()) for _ in range(150)]
        for stream in streams:
            await stream.send(create)
            assert await stream.receive()
        assert len(fake.watchers) == 150
        for stream in streams:
            stream.cancel()
        await connection.aclose()


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs unix sockets")
async def test_members_on_unix_sockets(tmp_path: Path) -> None:
    path = tmp_path / "etcd"
    async with FakeEtcd(members=2) as fake:
        async with fake.serve(f"unix:{path}") as endpoint:
            assert endpoint == f"unix:{path},unix:{path}.2"
            for one in fake.endpoints:
                async with Client(one) as client:
                    await client.put(one, "1")
            fake.members[1].stop()
            assert os.listdir(tmp_path) == ["etcd"]  # noqa: PTH208
            fake.members[1].start()
            async with Client(fake.members[1].endpoint) as client:
                assert len(await client.range(all_keys=True)) == 2
        assert os.listdir(tmp_path) == []  # noqa: PTH208 - sockets too


async def test_the_addresses_of_the_sockets_are_the_endpoints_of_the_members() -> None:
    async with FakeEtcd(members=3) as fake:
        before = fake.endpoints
        assert before[0] == "http://fake1:2379"
        async with fake.serve() as endpoint:
            assert fake.endpoints == tuple(endpoint.split(",")) == tuple(one.endpoint for one in fake.members)
            async with Client(fake.members[1].endpoint) as client:
                await client.sync()
                assert set(client.endpoints) == set(fake.endpoints)
                await client.put("a", "1")
            async with fake.client() as inside:
                await inside.sync()
                assert set(inside.endpoints) == set(fake.endpoints)
                assert await inside.get("a") is not None
        assert fake.endpoints == before


@pytest.mark.parametrize("address", ["", "unix:", "127.0.0.1:70000", "127.0.0.1:x", ":1"])
async def test_an_address_that_is_none_is_refused(address: str) -> None:
    async with FakeEtcd() as fake:
        with pytest.raises(ConfigError, match="a fake etcd can be served at"):
            async with fake.serve(address):
                pass


async def test_a_port_that_is_taken_is_refused_and_nothing_is_left() -> None:
    async with FakeEtcd(members=2) as fake, FakeEtcd() as other, fake.serve():
        port = urlsplit(fake.endpoints[0]).port
        with pytest.raises(OSError, match="in use"):
            async with other.serve(f"127.0.0.1:{port}"):
                pass
        assert other.endpoints == ("http://fake1:2379",)


async def test_documents_over_http1() -> None:
    async with FakeEtcd("3.6", members=3) as fake, fake.serve(), Client(fake.endpoints) as client:
        versions = await client.versions()
        assert [(one.server, one.cluster) for one in versions] == [("3.6.16", "3.6.0")] * 3
        first, last = fake.endpoints[0], fake.endpoints[2]
        head, _, body = (await get(first, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert body == b'{"health":"true","reason":""}'
        fake.members[2].isolate()
        assert b"503 Service Unavailable" in (answer := await get(last, b"GET /health HTTP/1.1\r\n\r\n"))
        assert answer.endswith(b'{"health":"false","reason":"RAFT NO LEADER"}')
        assert b" 200 OK" in await get(last, b"GET /health?serializable=true HTTP/1.1\r\n\r\n")
        fake.load({"a": "1"})
        metrics = (await get(first, b"GET /metrics HTTP/1.0\r\n\r\n")).decode()
        assert "\netcd_server_is_leader 1\n" in metrics
        assert "\netcd_debugging_mvcc_current_revision 2\n" in metrics


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /v2/keys HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /version HTTP/1.1\r\n\r\n", b"405"),
        (b"rubbish\r\n\r\n", b"400"),
        (b"GET /" + b"x" * 20_000, b"431"),
    ],
)
async def test_other_requests_over_http1_are_refused(sent: bytes, status: bytes) -> None:
    async with FakeEtcd() as fake, fake.serve() as endpoint:
        assert (await get(endpoint, sent)).startswith(b"HTTP/1.1 " + status)


async def test_what_is_neither_protocol_ends_the_connection() -> None:
    """Such as a client that speaks TLS: it learns at once that there is none."""
    async with FakeEtcd() as fake, fake.serve() as endpoint:
        for noise in (b"\x16\x03\x01\x02\x00\x01\x00", b"\x00", b"\r\n"):
            async with asyncio.timeout(PATIENCE):
                assert await get(endpoint, noise) == b""


async def test_bytes_that_break_http2_end_the_connection_alone() -> None:
    async with served() as (_, client):
        (endpoint,) = client.endpoints
        await get(endpoint, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))  # DATA on the connection
        await client.put("a", "1")


async def test_what_is_not_imitated_says_so() -> None:
    async with FakeEtcd() as fake, fake.serve() as endpoint, services(endpoint) as raw:
        with pytest.raises(Exception, match=r"fake etcd: v3lockpb\.Lock is not imitated"):
            await raw.lock("a", 1)
        with pytest.raises(Exception, match=r"fake etcd: v3electionpb\.Election is not imitated"):
            await raw.leader("a")


# Members and faults.


async def test_a_stopped_member_refuses_connections_until_it_starts_on_the_same_port(name: EngineName) -> None:
    async with served(name=name) as (fake, client):
        (endpoint,) = fake.endpoints
        fake.members[0].stop()
        with pytest.raises((NoAvailableEndpointsError, EtcdTimeoutError)) as caught:
            await client.get("a", timeout=2.0)
        assert "connection refused" in "".join(map(str, (caught.value, *getattr(caught.value, "__notes__", ()))))
        assert fake.members[0].connections == 0
        fake.members[0].start()
        assert fake.endpoints == (endpoint,)
        await client.put("a", "2", retry="always", timeout=PATIENCE)
        assert fake.keys() == {b"a": b"2"}


async def test_a_client_goes_on_when_the_leader_is_stopped(name: EngineName) -> None:
    async with served(3, name) as (fake, client), client.watch("a") as watch:
        await client.put("a", "1")
        fake.members[0].stop()
        await client.put("a", "2", retry="always", timeout=PATIENCE)
        assert [(await anext(watch)).value, (await anext(watch)).value] == [b"1", b"2"]


async def test_a_frozen_member_is_silent_and_answers_when_it_goes_on(name: EngineName) -> None:
    async with served(name=name) as (fake, _), Client(fake.endpoints, engine=name, timeout=None) as patient:
        await patient.put("a", "1")
        fake.members[0].pause()
        call = asyncio.ensure_future(patient.put("a", "2", retry="always"))
        async with Client(fake.endpoints, engine=name, timeout=0.5) as other:
            with pytest.raises(EtcdError):
                await other.get("a")
        assert not call.done()
        assert fake.keys() == {b"a": b"1"}
        fake.members[0].resume()
        async with asyncio.timeout(PATIENCE):
            await call
        assert fake.keys() == {b"a": b"2"}


async def test_a_frozen_member_is_left_like_a_real_one(name: EngineName) -> None:
    async with served(3, name) as (fake, client):
        fake.members[2].pause()
        for number in range(12):
            await client.put("a", f"{number}", retry="always", timeout=PATIENCE)
        assert fake.keys() == {b"a": b"11"}


async def test_an_isolated_member_serves_what_it_had(name: EngineName) -> None:
    async with FakeEtcd(members=3) as fake, fake.serve(), Client(fake.members[2].endpoint, engine=name) as alone:
        fake.load({"a": "1"})
        assert await alone.get("a") is not None
        fake.members[2].isolate()
        fake.load({"a": "2"})
        stale = await alone.get("a", serializable=True)
        assert stale is not None
        assert stale.value == b"1"
        with pytest.raises(NoLeaderError):
            await alone.get("a", retry="never")


async def test_faults_of_calls(name: EngineName) -> None:
    async with served(name=name) as (fake, client):
        refused = fake.fault("KV/Put", status="UNAVAILABLE", message="größer: 100 % ☃", after_apply=True)
        with refused as fault, pytest.raises(UnavailableError, match="größer: 100 % ☃") as caught:
            await client.put("a", "1", retry="never")
        assert (caught.value.maybe_applied, fault.hits, fake.keys()) == (True, 1, {b"a": b"1"})
        with fake.fault("KV/Put", reset=True), pytest.raises(EtcdError) as lost:
            await client.put("a", "2", retry="never")
        assert (lost.value.maybe_applied, fake.keys()) == (True, {b"a": b"1"})
        # As with a real server, either side may be the first to notice that the time is over.
        with fake.fault("KV/Put", hang=True), pytest.raises(EtcdError) as late:
            await client.put("a", "3", retry="never", timeout=0.5)
        assert isinstance(late.value, EtcdTimeoutError | RequestDeadlineExceededError)
        assert (late.value.maybe_applied, fake.keys()) == (True, {b"a": b"3"})
        with fake.fault("KV/Range", delay=0.2):
            begun = asyncio.get_running_loop().time()
            await client.get("a")
            assert asyncio.get_running_loop().time() - begun > 0.19


async def test_every_write_is_applied_once_while_connections_go_away(name: EngineName) -> None:
    async with served(name=name) as (fake, client):
        with fake.fault("KV/Put", goaway=True, times=5) as fault:
            await asyncio.gather(*(client.put(f"{number}", "", timeout=PATIENCE) for number in range(100)))
        assert fault.hits == 5
        assert sum(one.is_applied for one in fake.calls if one.method == "KV/Put") == 100
        assert fake.revision == 101
        await until(lambda: fake.members[0].connections <= 2)


class Raw:
    """A connection of h2, whose bytes the test sends when it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.http2 = H2Connection(H2Configuration(client_side=True))
        self.http2.initiate_connection()

    def put(self, key: bytes) -> bytes:
        """The bytes of a put."""
        number = self.http2.get_next_available_stream_id()
        headers = [(":method", "POST"), (":scheme", "http"), (":path", "/etcdserverpb.KV/Put"), (":authority", "x")]
        self.http2.send_headers(number, [*headers, ("te", "trailers"), ("content-type", "application/grpc")])
        message = encode(pb.PutRequest(key=key))
        self.http2.send_data(number, b"\0" + len(message).to_bytes(4, "big") + message, end_stream=True)
        return self.http2.data_to_send()

    def send(self, content: bytes) -> None:
        self._writer.write(content)

    async def rest(self) -> bytes:
        """What the server sends until it ends the connection."""
        return await self._reader.read()

    async def until(self, kind: type[Event]) -> Event:
        """The next event of a kind."""
        while True:
            content = await self._reader.read(2**16)
            assert content, "the server has ended the connection"
            for event in self.http2.receive_data(content):
                if isinstance(event, kind):
                    return event


@asynccontextmanager
async def raw(endpoint: str) -> AsyncIterator[Raw]:
    url = urlsplit(endpoint)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        async with asyncio.timeout(PATIENCE):
            yield Raw(reader, writer)
    finally:
        writer.transport.abort()


async def test_a_call_behind_a_goaway_is_not_served() -> None:
    async with FakeEtcd() as fake, fake.serve() as endpoint, raw(endpoint) as connection:
        first, second = connection.put(b"first"), connection.put(b"second")
        with fake.fault("KV/Put", goaway=True, delay=0.5, times=1):
            connection.send(first)
            goaway = await connection.until(ConnectionTerminated)
            assert isinstance(goaway, ConnectionTerminated)
            assert (goaway.last_stream_id, goaway.error_code) == (1, 0)
            connection.send(second)
            await connection.rest()  # it ends when the first one is answered
        assert fake.keys() == {b"first": b""}
        assert len(fake.calls) == 1


async def test_a_frozen_member_does_not_even_answer_a_ping() -> None:
    async with FakeEtcd() as fake, fake.serve() as endpoint, raw(endpoint) as connection:
        connection.send(connection.put(b"a"))
        await connection.until(StreamEnded)
        fake.members[0].pause()
        connection.http2.ping(b"is it up")
        connection.send(connection.http2.data_to_send())
        answer = asyncio.ensure_future(connection.until(PingAckReceived))
        await asyncio.sleep(0.3)
        assert not answer.done()
        fake.members[0].resume()
        await answer


async def test_a_watch_whose_connection_is_cut_misses_nothing(name: EngineName) -> None:
    async with served(name=name) as (fake, client):
        with fake.fault("Watch/Watch", cut_after=3, times=4) as fault:
            async with client.watch("a") as watch:
                for number in range(10):
                    fake.load({"a": f"{number}"})
                async with asyncio.timeout(PATIENCE):
                    seen = [(await anext(watch)).value for _ in range(10)]
        assert seen == [b"%d" % number for number in range(10)]
        assert fault.hits >= 2


# The end.


async def test_nothing_is_left_of_calls_streams_and_connections_when_it_ends(name: EngineName) -> None:
    before = asyncio.all_tasks()
    async with FakeEtcd() as fake:
        async with fake.serve() as endpoint:
            client = Client(endpoint, engine=name)
            await client.connect()
            watch = client.watch("a")
            await watch.__aenter__()
            await get_nothing(endpoint)
            fault = fake.fault("KV/Put", hang=True)
            with fault:
                put = asyncio.ensure_future(client.put("a", "1", retry="never", timeout=PATIENCE))
                await until(lambda: fake.keys() == {b"a": b"1"})
        assert fake.watchers == ()
        assert [one.connections for one in fake.members] == [0]
        with pytest.raises(EtcdError):
            await put
        with pytest.raises(ConnectionRefusedError):
            await get_nothing(endpoint)
        await watch.aclose()
        await client.aclose()
    await until(lambda: asyncio.all_tasks() <= before)


async def get_nothing(endpoint: str) -> None:
    """Connect, and say nothing."""
    url = urlsplit(endpoint)
    _, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.transport.abort()


async def test_a_fake_that_is_closed_first_leaves_nothing_either() -> None:
    fake = FakeEtcd()
    async with fake.serve() as endpoint, Client(endpoint) as client:
        await client.put("a", "1")
        fake.close()
        with pytest.raises(ConnectionRefusedError):
            await get_nothing(endpoint)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
async def test_no_descriptor_is_left() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    async with FakeEtcd(members=3) as fake:
        before = 0
        for number in range(30):
            async with fake.serve():
                await get(fake.endpoints[1], b"GET /version HTTP/1.1\r\n\r\n")
                fake.members[number % 3].stop()
                fake.members[number % 3].start()
            before = before or descriptors()  # event loops have some of their own, and open them late
        await until(lambda: descriptors() <= before)
