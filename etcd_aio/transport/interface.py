"""The seam: what every engine offers to the balancer, and nothing more.

Knows: the words connection, attempt, stream, lost, draining. Never knows: HTTP/2, grpclib, etcd.

Two rules hold for every engine, and `tests/contract/test_transport.py` examines both:
  - An attempt ends with its payload or with one `AttemptFailure` whose `delivery` is the truth; it ends by its
    deadline; and cancelling the task that awaits it ends it at once, leaves nothing behind, and never becomes another
    exception.
  - After `on_lost` a connection takes nothing more: every later attempt fails as UNSENT.
"""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from etcd_aio.closing import Unwinding

Metadata: TypeAlias = tuple[tuple[str, str], ...]
"""Request metadata: lower-case names and printable ASCII values, in sending order."""


class TLSSource(Protocol):
    """Gives each dial its context, since certificates are replaced while a client lives."""

    @property
    def server_name(self) -> str:
        """The name that certificates must carry instead of each endpoint's own; empty for their own."""
        ...

    async def context(self) -> ssl.SSLContext:
        """The context to verify with, now."""
        ...


TLSContext: TypeAlias = ssl.SSLContext | TLSSource


@dataclass(frozen=True, slots=True)
class Target:
    """Where to dial, and as whom to verify.

    Attributes:
        host: host name or IP literal; empty for a unix socket.
        port: TCP port.
        path: unix socket path; empty for TCP.
        authority: the HTTP/2 `:authority`.
        tls: the context to verify with, or what gives it to each dial, or None for plaintext.
        server_name: the name the certificate must carry; meaningless without `tls`.
    """

    host: str
    port: int
    path: str
    authority: str
    tls: TLSContext | None = None
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """Limits and times of every connection, in bytes and seconds.

    Attributes:
        connect_timeout: for dialling, the TLS handshake and the peer's SETTINGS together.
        keepalive_time: silence with a stream open after which the peer is pinged. etcd refuses pings more often than
            every 5 seconds.
        keepalive_timeout: silence after such a ping after which the connection is dead.
        silence_time: silence with a call waiting after which the peer is pinged. A member on the same network answers
            in milliseconds; half a second is beyond every healthy pause.
        silence_timeout: silence after such a ping after which the connection is dead.
        max_receive_bytes: largest message taken from the peer.
        user_agent: the `user-agent` of every request.
    """

    connect_timeout: float = 2.0
    keepalive_time: float = 10.0
    keepalive_timeout: float = 3.0
    silence_time: float = 0.5
    silence_timeout: float = 1.5
    max_receive_bytes: int = 64 * 2**20
    user_agent: str = "etcd_aio"


class ConnectionOwner(Protocol):
    """Whom a connection tells what happens to it. Both are called at most once, from the loop, and must not raise."""

    def on_draining(self, reason: str) -> None:
        """The peer takes no new streams; those under way may finish."""

    def on_lost(self, error: BaseException | None) -> None:
        """The connection is over; `error` is the real cause, None if the owner closed it."""


BEGINNING: Final = 64
"""Bytes of a stream's message that is too large, which its failure shows: enough for what it is about."""


class Stream(Protocol):
    """One open stream of messages. Owned by one task, which closes it."""

    async def send(self, payload: bytes) -> None:
        """Send one message, waiting for flow control. Raises AttemptFailure if the stream is over.

        If the server has ended it, what it sent before can still be received. Cancellation ends the stream: a message
        sent by half cannot be taken back.
        """

    async def receive(self) -> bytes | None:
        """The next message, or None once the server ended the stream with OK. Raises AttemptFailure otherwise.

        A message that is too large ends the stream; the failure has its beginning, as far as that had come.
        Cancellation loses no message: the next `receive` gets it.
        """

    async def half_close(self) -> None:
        """Say that no more messages follow from this side."""

    def cancel(self) -> None:
        """End the stream now, without waiting; harmless if it is already over."""


class Collector(Protocol):
    """Takes a large reply while it arrives. Both methods are called from the loop, and must not raise."""

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the payload; this should take no time."""

    def work(self) -> bool:
        """Do something about what came, for a few milliseconds at most; whether there is more to do at once."""
        ...


Collect: TypeAlias = Callable[[], Collector]
"""Makes a collector, when a reply begins that will come in several pieces."""


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
            collect: called at most once, and only for a reply that comes in pieces: its collector gets them, and works
                between the turns of the loop. None keeps the pieces until all are there.
            may_move: the caller can make the attempt elsewhere, so `give_up` ends it.
            whole_by: instant by which the attempt is over if its answer has begun in time; the server is told this
                one. None is `deadline`.
            is_heavy: it has the server compute for long, a password hash, so that pings may be answered late meanwhile.

        Returns:
            Awaitable[bytes]: the reply's payload; nothing of it if a collector was made and got it.

        Raises:
            AttemptFailure: the attempt ended without a reply. What a collector got is worth nothing then.
        """
        ...

    async def open_stream(self, path: str, metadata: Metadata, deadline: float) -> Stream:
        """Open a stream; returns once its headers were sent.

        Args:
            path: gRPC path.
            metadata: request metadata.
            deadline: instant by which the headers must be out; the stream itself has no deadline.
        """
        ...

    def close(self) -> Unwinding:
        """End everything at once, without waiting: running attempts fail. Returns what still unwinds."""
        ...

    async def aclose(self) -> None:
        """The same, and wait for what unwinds, for a moment at most."""

    def drain(self) -> None:
        """Take nothing new; close by itself once what is under way has ended."""

    def give_up(self, reason: str) -> None:
        """End the unary attempts that may move and have no answer yet, with `LocalReason.GIVEN_UP`."""


class Engine(Protocol):
    """Opens connections."""

    async def connect(self, target: Target, owner: ConnectionOwner) -> Connection:
        """Dial `target`; returns once the peer has proved that it speaks HTTP/2.

        Raises:
            OSError: the operating system's reason (refused, unreachable, name not known, TLS failure ...).
            ConnectError: the peer answered, but not as a gRPC server; or it did not answer in time.
        """
        ...
