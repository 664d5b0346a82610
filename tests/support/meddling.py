"""A gRPC proxy before one server that meddles with watches, for what no release on this machine does any more.

proxy.release        the release that the member claims to be of
proxy.event_delay    seconds for which events are held back; reports of progress overtake them, as those of etcd before
                     3.4.25 and 3.5.8 can
proxy.marks          False: reports of progress are swallowed, as by etcd's grpc-proxy
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Cardinality, Handler
from grpclib.server import Server, Stream

from etcd_aio import codec, methods, pb
from etcd_aio.testing import EtcdServer
from etcd_aio.types import WatchReply
from tests.support.services import Raw

_UNARY: Final = (
    *(methods.RANGE, methods.PUT, methods.DELETE_RANGE, methods.TXN, methods.COMPACT, methods.STATUS),
    *(methods.LEASE_GRANT, methods.LEASE_REVOKE, methods.MEMBER_LIST),
)


class MeddlingProxy:
    """See above."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.endpoint = ""
        self.release = ""
        self.event_delay = 0.0
        self.marks = True
        self.held_back = 0  # replies with events, now
        self.early_marks = 0  # that overtook some

    def __mapping__(self) -> dict[str, Handler]:
        unary = {
            method.path: Handler(self._forwarder(method.path), Cardinality.UNARY_UNARY, bytes, bytes)
            for method in _UNARY
        }
        return {**unary, methods.WATCH.path: Handler(self._watch, Cardinality.STREAM_STREAM, bytes, bytes)}

    def _forwarder(self, path: str) -> Any:
        async def forward(stream: Stream[bytes, bytes]) -> None:
            request = await stream.recv_message()
            async with self._channel.request(path, Cardinality.UNARY_UNARY, bytes, bytes) as upstream:
                await upstream.send_message(request, end=True)  # type: ignore[arg-type]
                reply = await upstream.recv_message()
                assert reply is not None
            if path == methods.STATUS.path and self.release:
                status = pb.StatusResponse.parse(reply)
                status.version = self.release
                reply = bytes(status)
            await stream.send_message(reply)

        return forward

    async def _watch(self, stream: Stream[bytes, bytes]) -> None:
        async with self._channel.request(methods.WATCH.path, Cardinality.STREAM_STREAM, bytes, bytes) as upstream:
            await upstream.send_request()
            sending = asyncio.create_task(self._send(stream, upstream))
            delayed: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
            delaying = asyncio.create_task(self._deliver(stream, delayed))
            try:
                async for raw in upstream:
                    reply = codec.decode(WatchReply, raw)
                    if reply.events and (self.event_delay or self.held_back):
                        self.held_back += 1
                        delayed.put_nowait((asyncio.get_running_loop().time() + self.event_delay, raw))
                        continue
                    if reply.watch_id == -1 and not reply.created and not reply.canceled:
                        if not self.marks:
                            continue
                        self.early_marks += self.held_back > 0
                    await stream.send_message(raw)
            except GRPCError:
                pass
            finally:
                sending.cancel()
                delaying.cancel()
                self.held_back = 0
                await upstream.cancel()

    async def _send(self, stream: Stream[bytes, bytes], upstream: Any) -> None:
        async for request in stream:
            await upstream.send_message(request)

    async def _deliver(self, stream: Stream[bytes, bytes], delayed: "asyncio.Queue[tuple[float, bytes]]") -> None:
        while True:
            due, raw = await delayed.get()
            while self.event_delay and asyncio.get_running_loop().time() < due:  # noqa: ASYNC110 - the test sets it
                await asyncio.sleep(0.005)
            await stream.send_message(raw)
            self.held_back -= 1


@asynccontextmanager
async def meddling(server: EtcdServer) -> AsyncIterator[MeddlingProxy]:
    """A proxy in front of a server, for as long as the block runs."""
    url = urlsplit(server.endpoint)
    channel = Channel(url.hostname, url.port, codec=Raw())
    proxy = MeddlingProxy(channel)
    listening = Server([proxy], codec=Raw())
    await listening.start("127.0.0.1", 0)
    port = listening._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    proxy.endpoint = f"http://127.0.0.1:{port}"
    try:
        yield proxy
    finally:
        listening.close()
        await listening.wait_closed()
        channel.close()
