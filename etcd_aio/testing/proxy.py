"""FaultProxy: a TCP proxy in front of one server that injects network faults on demand.

It works on connections, not packets, and passes TLS and HTTP/2 on unchanged. It can refuse, close, reset, freeze and
slow down connections. It cannot drop a SYN: a frozen proxy accepts connections and is then silent.
"""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias
from urllib.parse import urlsplit

from etcd_aio.base.aio import start_task
from etcd_aio.testing.ports import free_ports, url_host
from etcd_aio.testing.proxy_connection import Address, CutKind, CutPoint, Direction, Faults, ProxyConnection

Directions: TypeAlias = Literal["to_server", "to_client", "both"]

_CLOSE_SECONDS = 5.0
_BACKLOG = 256
_REST_SECONDS = 0.1
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PORT_TRIES = 5


@dataclass(frozen=True, slots=True)
class FaultProxyStatistics:
    """Counters of a `FaultProxy`.

    Attributes:
        connections_accepted: since the start.
        connections_open: now; connections that are being closed do not count.
        bytes_to_server: passed on to the server, over all connections.
        bytes_to_client: passed on to clients, over all connections.
    """

    connections_accepted: int
    connections_open: int
    bytes_to_server: int
    bytes_to_client: int


class FaultProxy:
    """A TCP proxy in this process, in front of one endpoint.

    `async with FaultProxy(server.endpoint) as proxy:` and give the client `proxy.endpoint`. Without a fault it passes
    all bytes on, half-closed connections and back-pressure included. Faults add up; `heal()` ends them all. They belong
    to the event loop in which the proxy was started, and show at the next turn of that loop.

    Args:
        target: the URL to pass on to, such as "http://127.0.0.1:2379"; the proxy's own has the same scheme.
        host: the address to listen on.
        admit: called with the client's port for each new connection; if it returns False, the connection stays open and
            silent until `heal`.
    """

    def __init__(
        self, target: str, *, host: str = "127.0.0.1", admit: Callable[[int], Awaitable[bool]] | None = None
    ) -> None:
        url = urlsplit(target)
        if not url.hostname or not url.port:
            raise ValueError(f"a target is a URL with host and port, not {target!r}")
        self._scheme, self._target = url.scheme, (url.hostname, url.port)
        self._host = host
        self._admit = admit
        self._port = 0
        self._family = socket.AF_INET
        self._address: Address = self._target
        self._listener: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._faults: dict[Direction, Faults] = {"to_server": Faults(), "to_client": Faults()}
        self._armed: dict[Direction, CutPoint] = {}
        self._connections: dict[asyncio.Task[None], ProxyConnection] = {}
        self._accepted = 0
        self._is_closed = False

    def __repr__(self) -> str:
        listening = "listening" if self._listener is not None else "refusing"
        host, port = self._target
        return f"<FaultProxy {listening} on port {self._port} for {host}:{port}: {self.statistics()}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def endpoint(self) -> str:
        """The URL for clients; it stays the same however often the proxy refuses and accepts again.

        Raises:
            RuntimeError: not started.
        """
        if not self._port:
            raise RuntimeError("the proxy was not started")
        return f"{self._scheme}://{url_host(self._host)}:{self._port}"

    async def start(self) -> None:
        """Listen on a free port.

        Raises:
            OSError: the target's name cannot be resolved, or `host` is not an address of this machine.
            RuntimeError: it was started already.
        """
        if self._loop is not None:
            raise RuntimeError("the proxy was started already")
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(*self._target, type=socket.SOCK_STREAM)
        self._family, _, _, _, address = found[0]
        self._address = (str(address[0]), int(address[1]))
        self._loop = loop
        for tries_left in reversed(range(_PORT_TRIES)):
            (self._port,) = free_ports(1, self._host)
            try:
                self.accept()
                break
            except OSError:
                if not tries_left:
                    raise

    async def aclose(self) -> None:
        """Stop listening and reset all connections, within five seconds. Cancellation does not stop this."""
        self.close_now()
        if self._connections:
            await asyncio.wait(tuple(self._connections), timeout=_CLOSE_SECONDS)

    def close_now(self) -> None:
        """Do what `aclose` does, without waiting: the connections' tasks end at the next turns of the loop."""
        self._is_closed = True
        self.refuse()
        for task, connection in self._connections.items():
            connection.reset()
            task.cancel()

    def statistics(self) -> FaultProxyStatistics:
        """The counters so far."""
        return FaultProxyStatistics(
            connections_accepted=self._accepted,
            connections_open=sum(not connection.is_ending for connection in self._connections.values()),
            bytes_to_server=self._faults["to_server"].forwarded,
            bytes_to_client=self._faults["to_client"].forwarded,
        )

    def refuse(self) -> None:
        """Stop listening: new connections are refused, open ones go on. Until `accept` or `heal`."""
        listener, self._listener = self._listener, None
        if listener is not None:
            if self._loop is not None:
                self._loop.remove_reader(listener)
            listener.close()

    def accept(self) -> None:
        """Listen again, on the same port.

        Raises:
            OSError: another program has taken the port.
            RuntimeError: not started, or closed.
        """
        if self._listener is not None:
            return
        if self._is_closed:
            raise RuntimeError("the proxy is closed")
        if self._loop is None:
            raise RuntimeError("the proxy was not started")
        family, kind, protocol, _, address = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
            self._loop.add_reader(listener, self._on_connection)
        except BaseException:  # a cancellation too: nothing may stay behind
            listener.close()
            raise
        self._listener = listener

    def cut(self) -> None:
        """End all open connections with FIN, on both sides; new ones are accepted."""
        for connection in self._connections.values():
            connection.finish()

    def reset(self) -> None:
        """End all open connections with RST, on both sides; new ones are accepted."""
        for connection in self._connections.values():
            connection.reset()

    def black_hole(self, direction: Directions = "both") -> None:
        """Let nothing pass in this direction, neither bytes nor the end of a connection, until `heal`.

        New connections are accepted and silent. What was sent meanwhile arrives after `heal`, as TCP has it after a
        network partition; senders block when the kernel's buffers are full.
        """
        for each in _each(direction):
            self._faults[each].is_silent = True
        for connection in self._connections.values():
            connection.apply_faults()

    def delay(self, seconds: float, direction: Directions = "both") -> None:
        """Pass every byte on so much later; 0 ends it. What is under way keeps the delay it began with.

        Up to 1 MiB is under way in each direction of a connection, so a long delay also bounds the throughput.

        Raises:
            ValueError: `seconds` is negative.
        """
        if seconds < 0:
            raise ValueError(f"a delay is not negative: {seconds!r}")
        for each in _each(direction):
            self._faults[each].delay = seconds

    def throttle(self, bytes_per_second: float | None, direction: Directions = "both") -> None:
        """Pass on at most so many bytes a second, for each connection by itself; None ends it.

        Raises:
            ValueError: `bytes_per_second` is not positive; for nothing at all there is `black_hole`.
        """
        if bytes_per_second is not None and bytes_per_second <= 0:
            raise ValueError(f"a throttle lets something through: {bytes_per_second!r}")
        for each in _each(direction):
            self._faults[each].bytes_per_second = bytes_per_second

    def cut_after(
        self,
        n_bytes: int,
        direction: Direction = "to_client",
        how: CutKind = "rst",
        *,
        connection: Literal["next", "open"] = "next",
    ) -> None:
        """Pass on exactly `n_bytes` more bytes in a direction, then end the connection. Once; `heal` forgets it.

        Args:
            n_bytes: 0 ends it in place of the first byte.
            direction: whose bytes count.
            how: "fin" and "rst" end both sides; "silence" freezes this one connection until `heal`.
            connection: "next" counts on the next connection to be accepted; "open" on each that is open now.

        Raises:
            ValueError: `n_bytes` is negative.
        """
        if n_bytes < 0:
            raise ValueError(f"a number of bytes is not negative: {n_bytes!r}")
        if connection == "next":
            self._armed[direction] = CutPoint(n_bytes, how)
            return
        for open_connection in self._connections.values():
            open_connection.arm(direction, CutPoint(n_bytes, how))

    def heal(self) -> None:
        """End all faults: listen, let everything through at full speed, forget cuts that have not come yet.

        After the close it does nothing.

        Raises:
            OSError: another program has taken the port of a proxy that refused.
            RuntimeError: not started.
        """
        if self._is_closed:
            return
        self._armed.clear()
        for faults in self._faults.values():
            faults.is_silent, faults.delay, faults.bytes_per_second = False, 0.0, None
        for connection in self._connections.values():
            connection.disarm()
            connection.apply_faults()
        self.accept()

    def _on_connection(self) -> None:
        while self._listener is not None and self._loop is not None:
            try:
                client, address = self._listener.accept()
            except OSError as error:  # no more of them, or gone again already
                if error.errno in _OUT_OF_FILES:
                    self._rest()
                return
            self._accepted += 1
            try:
                connection = ProxyConnection(client, self._family, self._address, self._faults, self._armed)
            except OSError:  # no file is left for its other side
                client.close()
                self._rest()
                return
            self._armed = {}
            task = start_task(self._serve(connection, address[1]), name="fault-proxy-connection")
            self._connections[task] = connection
            task.add_done_callback(self._forget)

    def _rest(self) -> None:
        """Pause accepting: the listener stays readable, so the loop would call again at once."""
        listener, loop = self._listener, self._loop
        if listener is not None and loop is not None:
            loop.remove_reader(listener)
            loop.call_later(_REST_SECONDS, self._go_on, listener)

    def _go_on(self, listener: socket.socket) -> None:
        if listener is self._listener and self._loop is not None:
            self._loop.add_reader(listener, self._on_connection)

    async def _serve(self, connection: ProxyConnection, client_port: int) -> None:
        """Run an accepted connection."""
        if self._admit is not None and not await self._admit(client_port):
            connection.freeze()
        await connection.run()

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._connections.pop(task).close()  # a task cancelled before its first turn has not closed it
        with suppress(asyncio.CancelledError):
            task.result()  # the loop reports unexpected errors


def _each(direction: Directions) -> tuple[Direction, ...]:
    return ("to_server", "to_client") if direction == "both" else (direction,)
