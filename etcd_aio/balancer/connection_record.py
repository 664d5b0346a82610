"""One connection of a sub-connection, from its dial to its end: what runs on it, and how it ended."""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from etcd_aio.balancer.health_verdicts import ServiceHealth
from etcd_aio.errors import ConnectionLostError, EtcdError, printable
from etcd_aio.transport import Connection, ConnectionCertificates, Stream

OnLeave: TypeAlias = Callable[[str], None]
"""Called once, with the reason, when a stream should be moved to another connection."""


class RecordOwner(Protocol):
    """The sub-connection, as the records of its connections see it."""

    last_error: BaseException | None

    def note_refusal(self, error: EtcdError | None, record: "ConnectionRecord | None" = None) -> bool:
        """Note what an answer over this connection says about the member."""
        ...

    def on_connection_ended(self, record: "ConnectionRecord", reason: str) -> None:
        """The connection takes no new attempts any more."""

    def on_connection_over(self, record: "ConnectionRecord") -> None:
        """The connection is gone, with everything that ran on it."""


class ConnectionRecord:
    """The `transport.ConnectionOwner` of one connection. Every dial has its own, so an old one is never mistaken.

    Args:
        owner: the sub-connection.
        now: the instant.

    Attributes:
        connection: None until the sub-connection uses it.
        certificates: those of its handshakes; None if it is not to be renewed with them.
        ended: set when it takes no new attempts any more, which may be before `connection` is set.
        cause: why it ended.
        successor: the connection beside it to which the sub-connection has moved; None if it has not.
        is_routine: it ended though it serves: it was renewed, or its endpoint is no longer used.
        is_rejected: it ended because its peer is not the right one.
        quorum_health: traffic and health of what needs the cluster, as seen over this connection.
        local_health: the same for what the member serves alone.
        unserved: paths of RPCs that the peer was found not to have, each with the peer's text.
        streams: those that are open on it.
    """

    def __init__(self, owner: RecordOwner, now: float) -> None:
        self._owner = owner
        self.connection: Connection | None = None
        self.certificates: ConnectionCertificates | None = None
        self.ended = asyncio.Event()
        self.cause: BaseException | None = None
        self.successor: ConnectionRecord | None = None
        self.is_rejected = self.is_routine = False
        self.quorum_health, self.local_health = ServiceHealth(now), ServiceHealth(now)
        self.unserved: dict[str, str] = {}
        self.streams: dict[SubConnectionStream, None] = {}

    @property
    def in_flight(self) -> int:
        """The number of attempts under way."""
        return self.quorum_health.in_flight + self.local_health.in_flight

    def note_refusal(self, error: EtcdError) -> None:
        """Note what the member's answer over this connection says about the member itself."""
        self._owner.note_refusal(error, self)

    def on_draining(self, reason: str) -> None:
        self._end(ConnectionLostError(reason), reason)
        self.leave_streams(reason)
        if self.connection is not None:
            self.connection.drain()

    def on_lost(self, error: BaseException | None) -> None:
        if error is None and not self.ended.is_set():
            error = ConnectionLostError("the connection was closed")
        if error is not None:
            self._owner.last_error = error
            self._end(error, printable(f"connection lost: {error}"))
        self._owner.on_connection_over(self)

    def discard(self) -> None:
        """Close a connection that was never used; its end says nothing about the endpoint."""
        self.ended.set()
        if self.connection is not None:
            self.connection.close()

    def leave_streams(self, reason: str) -> None:
        """Ask the owners of all streams to leave."""
        for stream in tuple(self.streams):
            stream.leave(reason)

    def _end(self, cause: BaseException, reason: str) -> None:
        if not self.ended.is_set():
            self.cause = cause
            self.ended.set()
            self._owner.on_connection_ended(self, reason)


class SubConnectionStream:
    """A stream that its connection's record counts, and whose owner can be asked to leave. See `Stream`.

    Args:
        stream: the engine's.
        record: of its connection.
        on_leave: see `SubConnection.open_stream`.
    """

    def __init__(self, stream: Stream, record: ConnectionRecord, on_leave: OnLeave | None) -> None:
        self._stream = stream
        self._record = record
        self._on_leave = on_leave
        self.send = stream.send  # the engine's own methods: no extra call for each event
        self.receive = stream.receive
        self.half_close = stream.half_close
        record.streams[self] = None

    @property
    def is_routine(self) -> bool:
        """Whether its connection has ended though it serves."""
        return self._record.is_routine

    def leave(self, reason: str) -> None:
        """Ask the owner to leave; only once, and not if the stream is over."""
        on_leave, self._on_leave = self._on_leave, None
        if on_leave is not None:
            on_leave(reason)

    def note_end(self, error: EtcdError) -> None:
        """Note what the end of the stream says about the member."""
        self._record.note_refusal(error)

    def cancel(self) -> None:
        # The owner always calls it at the end, however the stream ended.
        self._on_leave = None
        self._record.streams.pop(self, None)
        self._stream.cancel()
