"""The interface of an engine, as the balancer uses it.

Two rules hold for every engine, and `tests/contract/test_transport.py` checks them:
  - An attempt ends with its payload, or with one `AttemptFailure` with the correct `delivery`, by its deadline.
    Cancelling the task that awaits it ends it at once, leaves nothing behind, and raises nothing but CancelledError.
  - After `on_lost` a connection accepts nothing more: every later attempt fails as UNSENT.
"""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Final, Protocol, TypeAlias

from etcd_aio.arguments import join_host_port
from etcd_aio.base.closing import Unwinding
from etcd_aio.dataclass import dataclass

Metadata: TypeAlias = tuple[tuple[str, str], ...]
"""Request metadata: lower-case names and printable ASCII values, in sending order."""


class TLSSource(Protocol):
    """Provides the TLS context for each dial, since certificates may change while the client runs."""

    @property
    def server_name(self) -> str:
        """The name that certificates must carry instead of each endpoint's own; empty for their own."""
        ...

    async def context(self) -> ssl.SSLContext:
        """The context to verify with, now."""
        ...

    def on_handshake(self, tls: ssl.SSLObject) -> None:
        """A handshake with the context has succeeded. Must not raise."""


OF_CLIENT: Final = "the client's certificate"
OF_MEMBER: Final = "the member's certificate"


class ConnectionCertificates(TLSSource, Protocol):
    """The source of one connection, which remembers the certificates of its handshakes."""

    @property
    def is_current(self) -> bool:
        """Whether the files have not changed since."""
        ...

    @property
    def expiry(self) -> tuple[float, str]:
        """When the first of them expires, in seconds since 1970, and whether it is `OF_CLIENT` or `OF_MEMBER`.

        The instant is infinity if none is known.
        """
        ...


class CertificateRenewal(TLSSource, Protocol):
    """The source of a client whose connections are to be renewed with their certificates."""

    async def read(self) -> None:
        """Read the files again, so that `is_current` tells of their changes."""

    def for_connection(self) -> ConnectionCertificates:
        """A new source, for all handshakes of one connection."""
        ...


TLSContext: TypeAlias = ssl.SSLContext | TLSSource


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that opens connections to endpoints.

    Attributes:
        scheme: `http`, `https`, `socks5` or `socks5h`.
        host: its host name or IP literal.
        port: its TCP port.
        user: name for its authentication; empty for none.
        password: password for its authentication.
        tls: for `https`, the context to verify the proxy with, or what gives it to each dial.
    """

    scheme: str
    host: str
    port: int
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    tls: TLSContext | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Its URL without name and password, for errors and logs."""
        return f"{self.scheme}://{join_host_port(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class Target:
    """The server to dial, and the name to verify.

    Attributes:
        host: host name or IP literal; empty for a unix socket.
        port: TCP port.
        path: unix socket path; empty for TCP.
        authority: the HTTP/2 `:authority`.
        tls: the context to verify with, or what gives it to each dial, or None for plaintext.
        server_name: the name the certificate must carry; meaningless without `tls`.
        proxy: opens the connection; None to dial the server itself. A unix socket has none.
    """

    host: str
    port: int
    path: str
    authority: str
    tls: TLSContext | None = None
    server_name: str = ""
    proxy: Proxy | None = None

    @property
    def place(self) -> tuple[str, int, str]:
        """The address alone: equal for all dials to one server."""
        return self.host, self.port, self.path

    @property
    def dialled(self) -> str:
        """Host and port as text. Unlike `authority`, it is another one for each address of a DNS name."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """Limits and times of every connection, in bytes and seconds.

    Attributes:
        connect_timeout: for dialling, the TLS handshake and the peer's SETTINGS together.
        is_patient: a peer that was reached, and did not answer earlier dials in time, has longer than that.
        keepalive_time: silence with a stream open after which the peer is pinged. etcd refuses pings more often than
            every 5 seconds.
        keepalive_timeout: silence after such a ping after which the connection is dead.
        silence_time: silence with a call waiting after which the peer is pinged. A member on the same network answers
            in milliseconds; half a second is beyond every healthy pause.
        silence_timeout: silence after such a ping after which the connection is dead.
        max_receive_bytes: largest message taken from the peer.
        user_agent: the `user-agent` of every request.
        client: name of the client, for logs; empty if it has none.
    """

    connect_timeout: float = 2.0
    is_patient: bool = True
    keepalive_time: float = 10.0
    keepalive_timeout: float = 3.0
    silence_time: float = 0.5
    silence_timeout: float = 1.5
    max_receive_bytes: int = 64 * 2**20
    user_agent: str = "etcd_aio"
    client: str = ""


class ConnectionOwner(Protocol):
    """Callbacks from a connection to its owner. Both are called at most once, from the loop, and must not raise."""

    def on_draining(self, reason: str) -> None:
        """The peer accepts no new streams; open ones may finish."""

    def on_lost(self, error: BaseException | None) -> None:
        """The connection is over; `error` is the cause, None if the owner closed it."""


BEGINNING: Final = 64
"""Bytes of a stream's message that is too large, which its failure contains: enough to identify it."""


class Stream(Protocol):
    """One open stream of messages, used and closed by one task."""

    async def send(self, payload: bytes) -> None:
        """Send one message, waiting for flow control. Raises AttemptFailure if the stream is over.

        If the server has ended the stream, earlier messages can still be received. Cancellation ends the stream, since
        half a message cannot be taken back.
        """

    async def receive(self) -> "bytes | Collector | None":
        """The next message, or None once the server ended the stream with OK. Raises AttemptFailure otherwise.

        Of a large message it may return the collector that gets it, if the stream was opened with `collect`: whenever
        the collector has a part, which is to be taken before the next `receive`, and once it has ended. A message
        that is too large ends the stream; the failure has the beginning that was received. Cancellation loses no
        message: the next `receive` returns it.
        """

    async def half_close(self) -> None:
        """End the sending side of the stream."""

    def cancel(self) -> None:
        """End the stream at once. May be called again."""


class Collector(Protocol):
    """Decodes a large message while it arrives. The methods are called from the loop, and must not raise."""

    def feed(self, piece: bytes) -> None:
        """Add the next piece of the payload, quickly."""

    def work(self) -> bool:
        """Work for a few milliseconds at most. Returns whether more can be done at once."""
        ...

    def end(self) -> None:
        """All pieces of a stream's message were fed, and it has no part."""

    @property
    def has_part(self) -> bool:
        """Whether the owner of a stream can take a part of its message before all of it is here."""
        ...


Collect: TypeAlias = Callable[[], Collector]
"""Creates a collector when a message of several pieces begins."""


class Connection(Protocol):
    """One connection to one endpoint."""

    def unary(
        self,
        path: str,
        payload: bytes,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        may_move: bool = False,
        whole_by: float | None = None,
        is_heavy: bool = False,
    ) -> Awaitable[bytes]:
        """Make one attempt of a unary call.

        Args:
            path: gRPC path, `/package.Service/Method`.
            payload: the encoded request message.
            metadata: request metadata.
            deadline: instant on the loop's clock by which the attempt is over, or its answer has begun.
            collect: called at most once, for a reply in several pieces: its collector gets them, and works between the
                turns of the loop. None joins the pieces at the end.
            may_move: the caller can make the attempt elsewhere, so `give_up` may end it.
            whole_by: when the attempt is over if its answer has begun in time; this is sent to the server. None is
                `deadline`.
            is_heavy: the server computes for long (a password hash), so it may answer pings late meanwhile.

        Returns:
            Awaitable[bytes]: the reply's payload; empty if a collector got it.

        Raises:
            AttemptFailure: the attempt ended without a reply. Discard what a collector got.
        """
        ...

    async def open_stream(
        self,
        path: str,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        *,
        is_quiet: bool = False,
    ) -> Stream:
        """Open a stream; returns once its headers were sent.

        Args:
            path: gRPC path.
            metadata: request metadata.
            deadline: when the headers must be sent; the stream itself has no deadline.
            collect: called for each large message that comes in several pieces: its collector gets them, works between
                the turns of the loop, and is returned by `receive`. None joins the pieces. An engine that gets messages
                whole calls it for none.
            is_quiet: the peer may be silent for ever without meaning anything: it is not pinged for this stream.
        """
        ...

    def close(self) -> Unwinding:
        """Close at once: running attempts fail. Returns what is still ending."""
        ...

    async def aclose(self) -> None:
        """Close, and wait briefly for what is still ending."""

    def drain(self) -> None:
        """Accept nothing new, and close when all calls have ended."""

    def give_up(self, reason: str) -> None:
        """End the unary attempts that may move and have no answer yet, with `LocalReason.GIVEN_UP`."""


class Engine(Protocol):
    """Opens connections."""

    async def connect(self, target: Target, owner: ConnectionOwner) -> Connection:
        """Dial `target`. Returns when the peer has proved that it speaks HTTP/2.

        Raises:
            OSError: the operating system's reason (refused, unreachable, name not known, TLS failure ...).
            ConnectError: the peer answered, but not as a gRPC server; or it did not answer in time.
            ClientUsageError: a mistake of the program, which no wait mends: the calls that wait for it raise this.
        """
        ...

    async def http_get(self, target: Target, path: str) -> bytes:
        """Return the body of a document, such as `/version`, that `target` serves over HTTP beside gRPC.

        Args:
            target: the server.
            path: the path, of printable ASCII without spaces.

        Raises:
            OSError: the connection failed.
            ConnectError: there is no such document.
        """
        ...


EngineFactory: TypeAlias = Callable[[TransportOptions], Engine]
"""Makes the engine of one client, from the limits and times that its connections have to keep."""
