"""One proxied connection: two sockets, and in each direction a reader and a writer with a short queue between.

The queue lets a delay add latency without limiting the throughput. When it is full the reader stops reading, so the
sender gets the same back-pressure as without a proxy.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from etcd_aio.base.aio import start_task

Direction: TypeAlias = Literal["to_server", "to_client"]
CutKind: TypeAlias = Literal["fin", "rst", "silence"]
Address: TypeAlias = tuple[str, int]

_CHUNK: Final = 1 << 16
_QUEUED_CHUNKS: Final = 16
_THROTTLE_TICK: Final = 0.05  # seconds between the pieces of a throttled direction
_DRAIN_SECONDS: Final = 1.0
_LINGER_ZERO: Final = struct.pack("ii", 1, 0)  # close() then sends RST


@dataclass(slots=True)
class Faults:
    """The current faults of one direction of all connections; the proxy changes them while connections run.

    Attributes:
        delay: seconds from reading a byte to passing it on.
        bytes_per_second: limit for each connection; None is no limit.
        is_silent: nothing moves.
        forwarded: bytes passed on so far.
    """

    delay: float = 0.0
    bytes_per_second: float | None = None
    is_silent: bool = False
    forwarded: int = 0


@dataclass(slots=True)
class CutPoint:
    """The end of a connection after a number of bytes."""

    remaining: int
    kind: CutKind


@dataclass(slots=True)
class _Direction:
    """One direction of one connection."""

    faults: Faults
    source: socket.socket
    sink: socket.socket
    on_cut: Callable[[CutKind], None]
    cut: CutPoint | None = None
    lag: float = 0.0  # seconds, besides the delay of all connections
    moving: asyncio.Event = field(default_factory=asyncio.Event)
    queue: "asyncio.Queue[tuple[float, bytes]]" = field(default_factory=lambda: asyncio.Queue(_QUEUED_CHUNKS))

    async def read(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.moving.wait()
            data = await loop.sock_recv(self.source, _CHUNK)
            await self.queue.put((loop.time() + self.faults.delay + self.lag, data))
            if not data:
                return

    async def write(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, data = await self.queue.get()
            if (wait := due - loop.time()) > 0:
                await asyncio.sleep(wait)
            await self.moving.wait()
            if not data:
                self.sink.shutdown(socket.SHUT_WR)  # half-closed, as the source is
                return
            await self._pass_on(memoryview(data))

    async def _pass_on(self, data: memoryview) -> None:
        loop = asyncio.get_running_loop()
        while data:
            await self.moving.wait()
            rate = self.faults.bytes_per_second
            size = len(data) if rate is None else min(len(data), max(1, int(rate * _THROTTLE_TICK)))
            if self.cut is not None:
                size = min(size, self.cut.remaining)
            if size:
                await loop.sock_sendall(self.sink, data[:size])
                self.faults.forwarded += size
                data = data[size:]
            if self.cut is not None:
                self.cut.remaining -= size
                if not self.cut.remaining:
                    kind, self.cut = self.cut.kind, None
                    self.on_cut(kind)
                    continue  # ended or silent: the next wait notices
            if rate is not None:
                await asyncio.sleep(size / rate)


class ProxyConnection:
    """One connection of a client, passed on to the target.

    Args:
        client: the accepted socket; `run` closes it.
        family: of the target.
        address: of the target.
        faults: of each direction.
        cuts: the cut that is due in a direction.
    """

    def __init__(
        self,
        client: socket.socket,
        family: socket.AddressFamily,
        address: Address,
        faults: dict[Direction, Faults],
        cuts: dict[Direction, CutPoint],
    ) -> None:
        self._address = address
        self._client = client
        self._server = socket.socket(family, socket.SOCK_STREAM)
        for end in (self._client, self._server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._directions: dict[Direction, _Direction] = {
            "to_server": _Direction(faults["to_server"], client, self._server, self._on_cut, cuts.get("to_server")),
            "to_client": _Direction(faults["to_client"], self._server, client, self._on_cut, cuts.get("to_client")),
        }
        self._pumps: asyncio.Task[None] | None = None
        self._ending: Literal["fin", "rst"] | None = None
        self.apply_faults()

    @property
    def is_ending(self) -> bool:
        """Whether the connection is being closed."""
        return self._ending is not None

    def apply_faults(self) -> None:
        """Stop or continue, depending on the current faults."""
        if self.is_ending:
            return
        for direction in self._directions.values():
            if direction.faults.is_silent:
                direction.moving.clear()
            else:
                direction.moving.set()

    def freeze(self) -> None:
        """Stop all traffic until `apply_faults`."""
        for direction in self._directions.values():
            direction.moving.clear()

    def lag(self, direction: Direction, seconds: float) -> None:
        """Pass every byte of a direction on so much later, besides the delay of all connections."""
        self._directions[direction].lag = seconds

    def arm(self, direction: Direction, cut: CutPoint) -> None:
        """End the connection after a number of bytes."""
        self._directions[direction].cut = cut

    def disarm(self) -> None:
        """Cancel the cut."""
        for direction in self._directions.values():
            direction.cut = None

    def finish(self) -> None:
        """End both sides with FIN, after the bytes that the kernel already has."""
        if self._stop("fin"):
            for end in (self._client, self._server):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """End both sides with RST."""
        if self._stop("rst"):
            self._make_close_reset()

    async def run(self) -> None:
        """Pass bytes on until both sides have ended, or a method above ends the connection. Closes both sockets."""
        try:
            self._pumps = start_task(self._pump(), name="fault-proxy-pumps")
            if self.is_ending:  # before the start
                self._pumps.cancel()
            await asyncio.wait({self._pumps})
            if self._ending == "fin":
                await self._drain()
        finally:
            if self._pumps is not None and not self._pumps.done():
                self._pumps.cancel()
                with suppress(asyncio.CancelledError):
                    await self._pumps
            self.close()

    def close(self) -> None:
        """Close both sockets; for a connection whose `run` was not started."""
        self._client.close()
        self._server.close()

    async def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._directions["to_server"].moving.wait()
            await loop.sock_connect(self._server, self._address)
            async with asyncio.TaskGroup() as group:
                for direction in self._directions.values():
                    group.create_task(direction.read(), name="fault-proxy-read")
                    group.create_task(direction.write(), name="fault-proxy-write")
        except* OSError:
            # One side was reset, so the other is too.
            self._make_close_reset()

    async def _drain(self) -> None:
        """Discard bytes that arrive after the FIN: closing a socket with unread bytes would send RST."""

        async def discard(end: socket.socket) -> None:
            with suppress(OSError):
                while await asyncio.get_running_loop().sock_recv(end, _CHUNK):
                    pass

        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS), asyncio.TaskGroup() as group:
                group.create_task(discard(self._client), name="fault-proxy-drain")
                group.create_task(discard(self._server), name="fault-proxy-drain")

    def _on_cut(self, kind: CutKind) -> None:
        match kind:
            case "fin":
                self.finish()
            case "rst":
                self.reset()
            case "silence":
                self.freeze()

    def _stop(self, ending: Literal["fin", "rst"]) -> bool:
        if self._ending is not None:
            return False
        self._ending = ending
        self.freeze()  # no more bytes, even before the pumps are cancelled
        if self._pumps is not None:
            self._pumps.cancel()
        return True

    def _make_close_reset(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
