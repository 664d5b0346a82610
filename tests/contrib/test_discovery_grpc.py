"""contrib/discovery/grpc.py, contrib/discovery/subchannels.py: calls of grpc.aio go to the endpoints of a service."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio
import pytest
import trustme

from etcd_aio.contrib.discovery.grpc import EtcdChannel
from etcd_aio.errors import ClientUsageError, InvalidRequestError
from etcd_aio.fake import FakeEtcd
from etcd_aio.services import Endpoints, naming
from tests.support.loops import DEFAULT, Backend
from tests.support.rolling import replaced_under_load
from tests.support.until import PATIENCE, until

pytestmark = pytest.mark.anyio

READY = grpc.ChannelConnectivity.READY


class Echo:
    """A server of gRPC that answers with its address, and what it was asked.

    Attributes:
        cancelled: how many calls the client has cancelled.
        calls: how many there were of the first method, and `metadata` that of each.
        go: while it is not set, answers wait.
    """

    def __init__(self, credentials: grpc.ServerCredentials | None = None, *, answers_alone: bool = False) -> None:
        self.server = grpc.aio.server()
        self._credentials, self._port = credentials, 0
        self._answers_alone = answers_alone
        self.cancelled = 0
        self.calls = 0
        self.metadata: list[dict[str, str | bytes]] = []
        self.go = asyncio.Event()
        self.go.set()

    async def __aenter__(self) -> Self:
        handlers: dict[str, Any] = {
            "One": grpc.unary_unary_rpc_method_handler(self._one),
            "Many": grpc.unary_stream_rpc_method_handler(self._many),
            "Gather": grpc.stream_unary_rpc_method_handler(self._gather),
            "Chat": grpc.stream_stream_rpc_method_handler(self._chat),
        }
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Echo", handlers),))
        if self._credentials is None:
            self._port = self.server.add_insecure_port("127.0.0.1:0")
        else:
            self._port = self.server.add_secure_port("127.0.0.1:0", self._credentials)
        await self.server.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.server.stop(PATIENCE if exc is None else 0)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def _one(self, request: bytes, context: Any) -> bytes:
        self.calls += 1
        self.metadata.append(dict(context.invocation_metadata()))
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return request if self._answers_alone else self.address.encode() + b" " + request

    async def _many(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        for number in range(3):
            yield self.address.encode() + b" " + request + b"%d" % number
        await self.go.wait()

    async def _gather(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        return b" ".join([self.address.encode(), *[request async for request in requests]])

    async def _chat(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield self.address.encode() + b" " + request


@pytest.fixture(scope="module")
def anyio_backend() -> Backend:
    """One loop for all tests here: grpcio tells it of the end of calls later than it tells those who wait for them."""
    return DEFAULT


@pytest.fixture(scope="module", autouse=True)
async def loop_of_all_tests(anyio_backend: Backend) -> AsyncIterator[None]:
    yield
    gc.collect()
    await asyncio.sleep(0.2)


@pytest.fixture
async def fake() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd() as fake:
        yield fake


# The type of a channel is Any, since the types of grpcio know those of messages by the serializers only.
def one(channel: Any, request: bytes = b"", **options: Any) -> Any:
    return channel.unary_unary("/Echo/One")(request, **options)


def addresses(service: Endpoints) -> list[str]:
    return [endpoint.address for endpoint in service.endpoints]


async def connected(channel: EtcdChannel, count: int) -> None:
    """Wait until so many endpoints are connected."""
    await until(lambda: len(channel._ready) == count)


async def check_every_kind(channel: Any, address: str, **options: Any) -> None:
    """Each kind of call, in each way that it can be written."""

    async def requests() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    address_, said = address.encode(), [address.encode() + b" x%d" % number for number in range(3)]
    assert await one(channel, b"x", **options) == address_ + b" x"
    assert [part async for part in channel.unary_stream("/Echo/Many")(b"x", **options)] == said
    reading = channel.unary_stream("/Echo/Many")(b"x", **options)
    assert [await reading.read() for _ in range(3)] == said
    assert await reading.read() is grpc.aio.EOF
    assert await channel.stream_unary("/Echo/Gather")(requests(), **options) == address_ + b" a b"
    writing = channel.stream_unary("/Echo/Gather")(**options)
    await writing.write(b"c")
    await writing.done_writing()
    assert await writing == address_ + b" c"
    assert [part async for part in channel.stream_stream("/Echo/Chat")(requests(), **options)] == [
        address_ + b" a",
        address_ + b" b",
    ]
    told = channel.stream_unary("/Echo/Gather")(requests(), options.get("timeout"), (), None, True)  # by positions
    assert await told == address_ + b" a b"
    chat = channel.stream_stream("/Echo/Chat")(**options)
    await chat.write(b"d")
    assert await chat.read() == address_ + b" d"
    await chat.done_writing()
    assert await chat.read() is grpc.aio.EOF
    assert await chat.code() is grpc.StatusCode.OK


async def test_every_kind_of_call(fake: FakeEtcd) -> None:
    async with Echo() as echo, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[echo.address])
        async with etcd.resolve("svc/api") as service, EtcdChannel(service) as channel:
            assert channel.get_state() is not READY
            await check_every_kind(channel, echo.address)  # the first one waits for the connection
            assert channel.get_state() is READY
            await check_every_kind(channel, echo.address)


async def test_every_kind_of_call_waits_for_an_endpoint_if_it_shall(fake: FakeEtcd) -> None:
    async with Echo() as echo, fake.client() as etcd:
        for _ in range(2):
            async with etcd.resolve("svc/api") as service, EtcdChannel(service) as channel:
                assert channel.get_state() is grpc.ChannelConnectivity.TRANSIENT_FAILURE
                checking = asyncio.create_task(
                    check_every_kind(channel, echo.address, wait_for_ready=True, timeout=PATIENCE)
                )
                await until(lambda: len(channel._waiting) == 0 and len(channel._changed) == 1)
                await naming.update(etcd, "svc/api", add=[echo.address])
                await checking
                assert not channel._waiting
            await naming.update(etcd, "svc/api", remove=[echo.address])


async def test_calls_take_the_endpoints_in_turn(fake: FakeEtcd) -> None:
    async with Echo() as a, Echo() as b, Echo() as c, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[a.address, b.address, c.address])
        async with etcd.resolve("svc/api") as service, EtcdChannel(service) as channel:
            await connected(channel, 3)
            for _ in range(9):
                await one(channel)
            assert [a.calls, b.calls, c.calls] == [3, 3, 3]
            await a.server.stop(0)
            await connected(channel, 2)
            for _ in range(10):  # one that cannot be reached gets none
                await one(channel)
            assert [a.calls, b.calls, c.calls] == [3, 8, 8]
        async with etcd.resolve("svc/api") as service, EtcdChannel(service, policy="power_of_two") as channel:
            await connected(channel, 2)
            b.go.clear()
            waiting = []
            while b.calls == 8:
                waiting.append(one(channel))
                await until(lambda: b.calls + c.calls == 16 + len(waiting))
                if b.calls == 8:
                    await waiting[-1]
            for _ in range(5):
                assert await one(channel) == c.address.encode() + b" "
            b.go.set()
            await waiting[-1]


async def test_errors_of_calls_that_find_no_connection(fake: FakeEtcd) -> None:
    async with Echo() as echo, fake.client() as etcd, etcd.resolve("svc/api") as service:
        async with EtcdChannel(service) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await one(channel)
            assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "no endpoint" in str(raised.value.details())
            assert await one(channel).code() is grpc.StatusCode.UNAVAILABLE
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await one(channel, wait_for_ready=True, timeout=0.02)
            assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await channel.stream_stream("/Echo/Chat")().read()
            assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
            await naming.update(etcd, "svc/api", add=["127.0.0.1:1"])
            await service.wait_endpoints()
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await one(channel)
            assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "127.0.0.1:1" in str(raised.value.details())  # what grpcio says
            waiting = one(channel, wait_for_ready=True)
            await naming.update(etcd, "svc/api", add=[echo.address])
            assert await waiting == echo.address.encode() + b" "
            await channel.channel_ready()
        with pytest.raises(grpc.aio.UsageError):
            one(channel)
        with pytest.raises(grpc.aio.UsageError):
            await channel.channel_ready()
        assert channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN


async def test_cancellation(fake: FakeEtcd) -> None:
    async with (
        Echo() as echo,
        fake.client() as etcd,
        etcd.resolve("svc/api") as service,
        EtcdChannel(service) as channel,
    ):
        waiting = one(channel, wait_for_ready=True)
        early = one(channel, wait_for_ready=True)
        early.cancel()  # before it could begin
        await until(lambda: len(channel._changed) == 1)
        waiting.cancel()
        for call in waiting, early:
            with pytest.raises(asyncio.CancelledError):
                await call
        assert not channel._waiting
        await naming.update(etcd, "svc/api", add=[echo.address])
        await channel.channel_ready()
        echo.go.clear()
        running = asyncio.ensure_future(_awaited(one(channel)))
        await until(lambda: echo.calls == 1)
        assert channel._ready[0].running == 1
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: echo.cancelled == 1)
        await until(lambda: channel._ready[0].running == 0)
        echo.go.set()


async def _awaited(call: Any) -> Any:
    return await call


async def test_an_endpoint_that_is_gone_is_drained(fake: FakeEtcd) -> None:
    """It gets no new call; those under way go on for a while."""
    async with Echo() as a, Echo() as b, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[a.address])
        async with etcd.resolve("svc/api") as service, EtcdChannel(service) as channel:
            a.go.clear()
            under_way = one(channel)
            stream = channel.stream_stream("/Echo/Chat")()
            await stream.write(b"1")
            await stream.read()
            await naming.update(etcd, "svc/api", add=[b.address], remove=[a.address])
            await until(lambda: addresses(service) == [b.address])
            for _ in range(3):
                assert await one(channel) == b.address.encode() + b" "
            await stream.write(b"2")
            assert await stream.read() == a.address.encode() + b" 2"
            assert len(channel._leaving) == 1
            a.go.set()
            assert await under_way == a.address.encode() + b" "
            await stream.done_writing()
            assert await stream.code() is grpc.StatusCode.OK
            await until(lambda: not channel._leaving)
        async with etcd.resolve("svc/api") as service, EtcdChannel(service, drain=0.05) as channel:
            b.go.clear()
            under_way = one(channel)
            await until(lambda: b.calls == 4)
            await naming.update(etcd, "svc/api", add=[a.address], remove=[b.address])
            with pytest.raises(asyncio.CancelledError):
                await under_way
            b.go.set()


@pytest.mark.parametrize("grace", [None, PATIENCE])
async def test_close_with_a_grace(fake: FakeEtcd, grace: float | None) -> None:
    async with Echo() as echo, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[echo.address])
        async with etcd.resolve("svc/api") as service:
            channel = EtcdChannel(service)
            await channel.channel_ready()
            echo.go.clear()
            under_way = asyncio.ensure_future(_awaited(one(channel)))
            await until(lambda: echo.calls == 1)
            closing = asyncio.create_task(channel.close(grace))
            if grace is None:
                await closing
                with pytest.raises(asyncio.CancelledError):
                    await under_way
                echo.go.set()
            else:
                await asyncio.sleep(0)
                with pytest.raises(grpc.aio.UsageError):
                    one(channel)
                assert not closing.done()
                echo.go.set()
                assert await under_way == echo.address.encode() + b" "
                await closing
            await channel.close()
            assert not service._listeners


async def test_closing_ends_calls_that_wait(fake: FakeEtcd) -> None:
    async with fake.client() as etcd, etcd.resolve("svc/api") as service:
        channel = EtcdChannel(service)
        waiting = [asyncio.ensure_future(_awaited(one(channel, wait_for_ready=True))) for _ in range(3)]
        await until(lambda: len(channel._changed) == 3)
        await channel.close()
        for call in waiting:
            with pytest.raises(asyncio.CancelledError):
                await call


async def test_interceptors_see_each_call_once(fake: FakeEtcd) -> None:
    seen: list[str] = []

    class Seeing(grpc.aio.UnaryUnaryClientInterceptor):
        async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
            details = client_call_details
            seen.append(details.method.decode() if isinstance(details.method, bytes) else details.method)
            metadata = grpc.aio.Metadata(*(details.metadata or ()), ("x-seen", "yes"))
            method: Any = details.method  # bytes, though the types of grpcio say str
            changed = grpc.aio.ClientCallDetails(
                method, details.timeout, metadata, details.credentials, details.wait_for_ready
            )
            return await continuation(changed, request)

    async with Echo() as echo, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[echo.address])
        async with (
            etcd.resolve("svc/api") as service,
            EtcdChannel(service, interceptors=[Seeing()]) as channel,
        ):
            await one(channel, metadata=(("x-a", "1"),))  # which waits for the connection
            await one(channel, metadata=(("x-a", "2"),))
            await until(lambda: channel._ready[0].running == 0)
    assert seen == ["/Echo/One"] * 2
    assert [(sent["x-a"], sent["x-seen"]) for sent in echo.metadata] == [("1", "yes"), ("2", "yes")]


async def test_serializers_are_those_of_the_stub(fake: FakeEtcd) -> None:
    async with Echo() as echo, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[echo.address])
        async with etcd.resolve("svc/api") as service, EtcdChannel(service) as channel:
            text = channel.unary_unary("/Echo/One", str.encode, bytes.decode)
            size = channel.unary_unary("/Echo/One", bytes, len)
            expected = [f"{echo.address} a", len(echo.address) + 3]
            assert list(await asyncio.gather(text("a"), size(b"bc"))) == expected
            assert [await text("a"), await size(b"bc")] == expected


async def test_without_endpoints_nothing_spins(fake: FakeEtcd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop rests while calls wait, with no endpoint and with one that cannot be reached."""
    told = 0
    tell = EtcdChannel._on_state

    def counted(channel: EtcdChannel) -> None:
        nonlocal told
        told += 1
        tell(channel)

    monkeypatch.setattr(EtcdChannel, "_on_state", counted)
    async with fake.client() as etcd, etcd.resolve("svc/api") as service, EtcdChannel(service) as channel:
        call = one(channel, wait_for_ready=True)
        await asyncio.sleep(0.2)  # time in which it would spin
        assert told == 1  # on construction
        await naming.update(etcd, "svc/api", add=["127.0.0.1:1"])
        await until(lambda: channel.get_state() is grpc.ChannelConnectivity.TRANSIENT_FAILURE)
        await asyncio.sleep(0.2)
        assert told < 15
        call.cancel()


async def test_the_name_of_the_server_is_verified(fake: FakeEtcd) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("api.example")
    root = authority.cert_pem.bytes()
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    server = grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
    async with Echo(server) as echo, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[echo.address])
        async with etcd.resolve("svc/api") as service:
            credentials = grpc.ssl_channel_credentials(root)
            async with EtcdChannel(service, credentials, server_name="api.example") as channel:
                assert await one(channel) == echo.address.encode() + b" "
            async with EtcdChannel(service, credentials) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await one(channel)
                assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_wrong_use(fake: FakeEtcd) -> None:
    async with fake.client() as etcd:
        with pytest.raises(ClientUsageError):
            EtcdChannel(etcd.resolve("svc/api"))
        async with etcd.resolve("svc/api") as service:
            wrongs: list[dict[str, Any]] = [{"policy": "best"}, {"drain": -1}]
            for wrong in wrongs:
                with pytest.raises(InvalidRequestError):
                    EtcdChannel(service, **wrong)
            assert not service._listeners


async def test_five_servers_are_replaced_under_load(fake: FakeEtcd) -> None:
    """No call fails."""
    async with AsyncExitStack() as stack:
        etcd = await stack.enter_async_context(fake.client())
        service = await stack.enter_async_context(etcd.resolve("svc/api"))
        channel = await stack.enter_async_context(EtcdChannel(service))
        call = channel.unary_unary("/Echo/One")

        async def request() -> str:
            answer: bytes = await call(b"", timeout=PATIENCE)
            return answer.decode().split()[0]

        await replaced_under_load(etcd, service, Echo, request)
