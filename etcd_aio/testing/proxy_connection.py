"""One proxied connection: two sockets, and in each direction a reader and a writer with a short queue between.

Knows: moving bytes under the weather of the moment, and the three ways to end. Never knows: listening, or who sets
faults.

Back-pressure: the queue holds a few chunks (it exists so that a delay is a latency and not a throttle); when it is full
the reader stops reading, and the sender feels it as it would without a proxy.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from etcd_aio.aio import start_task

Direction: TypeAlias = Literal["to_server", "to_client"]
CutKind: TypeAlias = Literal["fin", "rst", "silence"]
Address: TypeAlias = tuple[str, int]

_CHUNK: Final = 1 << 16
_QUEUED_CHUNKS: Final = 16
_THROTTLE_TICK: Final = 0.05  # seconds between the pieces of a throttled direction
_DRAIN_SECONDS: Final = 1.0
_LINGER_ZERO: Final = struct.pack("ii", 1, 0)  # close() then sends RST


@dataclass(slots=True)
class Weather:
    """What one direction of all connections suffers now; changed by the proxy while links run.

    Attributes:
        delay: seconds from reading a byte to passing it on.
        bytes_per_second: most of each connection; None is no limit.
        is_silent: nothing moves.
        forwarded: bytes passed on so far.
    """

    delay: float = 0.0
    bytes_per_second: float | None = None
    is_silent: bool = False
    forwarded: int = 0


@dataclass(slots=True)
class Cut:
    """An end that comes after so many more bytes."""

    remaining: int
    kind: CutKind


@dataclass(slots=True)
class _Lane:
    """One direction of one link."""

    weather: Weather
    source: socket.socket
    sink: socket.socket
    on_cut: Callable[[CutKind], None]
    cut: Cut | None = None
    moving: asyncio.Event = field(default_factory=asyncio.Event)
    queue: "asyncio.Queue[tuple[float, bytes]]" = field(default_factory=lambda: asyncio.Queue(_QUEUED_CHUNKS))

    async def read(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.moving.wait()
            data = await loop.sock_recv(self.source, _CHUNK)
            await self.queue.put((loop.time() + self.weather.delay, data))
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
            rate = self.weather.bytes_per_second
            size = len(data) if rate is None else min(len(data), max(1, int(rate * _THROTTLE_TICK)))
            if self.cut is not None:
                size = min(size, self.cut.remaining)
            if size:
                await loop.sock_sendall(self.sink, data[:size])
                self.weather.forwarded += size
                data = data[size:]
            if self.cut is not None:
                self.cut.remaining -= size
                if not self.cut.remaining:
                    kind, self.cut = self.cut.kind, None
                    self.on_cut(kind)
                    continue  # ended or silent: either way the next wait is where it shows
            if rate is not None:
                await asyncio.sleep(size / rate)


class Link:
    """One connection of a client, passed on to the target.

    Args:
        client: the accepted socket; the link closes it.
        family: of the target.
        address: of the target.
        weather: of each direction.
        cuts: the cut that is due in a direction.
    """

    def __init__(
        self,
        client: socket.socket,
        family: socket.AddressFamily,
        address: Address,
        weather: dict[Direction, Weather],
        cuts: dict[Direction, Cut],
    ) -> None:
        self._address = address
        self._client = client
        self._server = socket.socket(family, socket.SOCK_STREAM)
        for end in (self._client, self._server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lanes: dict[Direction, _Lane] = {
            "to_server": _Lane(weather["to_server"], self._client, self._server, self._on_cut, cuts.get("to_server")),
            "to_client": _Lane(weather["to_client"], self._server, self._client, self._on_cut, cuts.get("to_client")),
        }
        self._pumps: asyncio.Task[None] | None = None
        self._ending: Literal["fin", "rst"] | None = None
        self.match_weather()

    @property
    def is_ending(self) -> bool:
        """Whether it was told to end: it counts as open no more."""
        return self._ending is not None

    def match_weather(self) -> None:
        """Stop or go, as the weather says now."""
        if self.is_ending:
            return
        for lane in self._lanes.values():
            if lane.weather.is_silent:
                lane.moving.clear()
            else:
                lane.moving.set()

    def freeze(self) -> None:
        """Let nothing move, whatever the weather; until `match_weather`."""
        for lane in self._lanes.values():
            lane.moving.clear()

    def arm(self, direction: Direction, cut: Cut) -> None:
        """End after so many more bytes."""
        self._lanes[direction].cut = cut

    def disarm(self) -> None:
        """Forget a cut that has not come yet."""
        for lane in self._lanes.values():
            lane.cut = None

    def finish(self) -> None:
        """End both sides with FIN, after what the kernel has already."""
        if self._stop("fin"):
            for end in (self._client, self._server):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """End both sides with RST."""
        if self._stop("rst"):
            self._make_close_reset()

    async def run(self) -> None:
        """Move bytes until both sides have ended, or one of the methods above ends it. Closes both sockets."""
        try:
            self._pumps = start_task(self._pump(), name="fault-proxy-pumps")
            if self.is_ending:  # before we had begun
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
        """Close both sockets; for a link whose `run` never began."""
        self._client.close()
        self._server.close()

    async def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._lanes["to_server"].moving.wait()
            await loop.sock_connect(self._server, self._address)
            async with asyncio.TaskGroup() as group:
                for lane in self._lanes.values():
                    group.create_task(lane.read(), name="fault-proxy-read")
                    group.create_task(lane.write(), name="fault-proxy-write")
        except* OSError:
            # One side is gone without a proper end, so the other gets none either.
            self._make_close_reset()

    async def _drain(self) -> None:
        """Take what still comes after our FIN: closing a socket with unread bytes would send RST."""

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
        self.freeze()  # not a byte more, even before the pumps notice that they are cancelled
        if self._pumps is not None:
            self._pumps.cancel()
        return True

    def _make_close_reset(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
