"""The sockets on which the members of a fake accept connections."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from etcd_aio.base.aio import start_background_task
from etcd_aio.errors import ConfigError
from etcd_aio.fake.host import Host
from etcd_aio.fake.served_connection import ServedConnection
from etcd_aio.fake.server import FakeServer

_Address: TypeAlias = tuple[object, ...] | str
_BACKLOG: Final = 100  # asyncio's default
_UNIX: Final[int] = getattr(socket, "AF_UNIX", 1)  # not every system has it, and says so when it is used


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a member accepts connections.

    Attributes:
        host: the host name or address; empty for a unix socket.
        port: the port; 0 for a free one.
        path: the path of the unix socket; empty for TCP.
    """

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def url(self) -> str:
        """The endpoint for clients."""
        return f"unix:{self.path}" if self.path else f"http://{self.key}"

    @property
    def key(self) -> str:
        """The authority, or the path of the unix socket."""
        return self.path or (f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}")


def places(address: str, count: int) -> Sequence[ListenAddress]:
    """Where so many members accept connections.

    Args:
        address: "HOST", "HOST:PORT" or "unix:PATH". Members after the first one take the ports behind PORT, and the
            paths "PATH.2", "PATH.3" and so on.
        count: how many there are.

    Raises:
        ConfigError: it is no address.
    """
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        path = path.removeprefix("//")
        if path:
            return [ListenAddress(path=f"{path}.{number}" if number > 1 else path) for number in range(1, count + 1)]
    else:
        rest = address.removeprefix("http://")
        host, separator, digits = rest.rpartition(":")
        if not separator or (rest.count(":") > 1 and not host.endswith("]")):
            host, digits = rest, "0"
        host = host.removeprefix("[").removesuffix("]")
        if host and digits.isdecimal() and int(digits) + count <= 2**16:
            port = int(digits)
            return [ListenAddress(host, port + number if port else 0) for number in range(count)]
    raise ConfigError(f"a fake etcd can be served at 'HOST', 'HOST:PORT' or 'unix:PATH'; got {address!r}")


class Listener:
    """Accepts the connections to one member. While the member is stopped they are refused.

    Args:
        host: of the member.
        server: answers.
        place: where; it has the chosen port afterwards.
    """

    def __init__(self, host: Host, server: FakeServer, place: ListenAddress) -> None:
        self._host = host
        self._server = server
        self._family: int = _UNIX
        self._address: _Address = place.path
        self._reserved: socket.socket | None = None  # keeps the port while the member is stopped
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # in which it accepts
        self._accepting: asyncio.Task[None] | None = None
        self._connecting: set[asyncio.Task[object]] = set()
        self._connections: set[ServedConnection] = set()
        self.place = place

    async def open(self) -> None:
        """Take the port, or the path, and accept connections if the member runs.

        Raises:
            OSError: it is taken.
        """
        if not self.place.path:
            found = await asyncio.get_running_loop().getaddrinfo(
                self.place.host, self.place.port, type=socket.SOCK_STREAM
            )
            self._family, _, _, _, address = found[0]
            first = _bound(self._family, address)
            self._address = first.getsockname()
            self.place = ListenAddress(self.place.host, first.getsockname()[1])
            with suppress(OSError):  # not every system lets two sockets have the port
                self._reserved = _bound(self._family, self._address)
            first.close()
        self._host.listeners.add(self)
        if self._host.is_up:
            self.listen()

    def listen(self) -> None:
        self._socket = listening = _bound(self._family, self._address)
        listening.listen(_BACKLOG)
        # An `asyncio.Server` that is closed fails the connections that it has accepted a moment ago.
        self._loop = loop = asyncio.get_running_loop()
        try:
            loop.add_reader(listening, self._accept, listening)
        except NotImplementedError:  # by the usual loop of Windows
            self._accepting = start_background_task(
                self._accept_all(listening), name=f"etcd_aio.fake.listen {self.place.url}"
            )

    def refuse(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            self._accepting = None
        elif self._socket is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            if self.place.path:
                Path(self.place.path).unlink(missing_ok=True)

    async def aclose(self) -> None:
        """Close the sockets, and end all connections at once."""
        self._host.listeners.discard(self)
        self.refuse()
        if self._reserved is not None:
            self._reserved.close()
        await asyncio.gather(*(connection.aclose() for connection in tuple(self._connections)))

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):  # it was broken off, or this process has too many files
            accepted, _ = listening.accept()
            self._connect(accepted)

    async def _accept_all(self, listening: socket.socket) -> None:
        while True:
            accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
            self._connect(accepted)

    def _connect(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        connection = ServedConnection(self._host, self._server)
        self._connections.add(connection)
        connection.closed.add_done_callback(lambda _: self._connections.discard(connection))
        loop = asyncio.get_running_loop()
        connecting = start_background_task(
            loop.connect_accepted_socket(lambda: connection, accepted), name=f"etcd_aio.fake.accept {self.place.url}"
        )
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)


def _bound(family: int, address: _Address) -> socket.socket:
    """A socket that is bound to an address."""
    # asyncio sets TCP_NODELAY only where the protocol is named.
    bound = socket.socket(family, socket.SOCK_STREAM, 0 if family == _UNIX else socket.IPPROTO_TCP)
    try:
        bound.setblocking(False)
        if os.name == "posix" and family != _UNIX:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except BaseException:  # a name may be wrong in many ways; the socket is closed in each
        bound.close()
        raise
    return bound
