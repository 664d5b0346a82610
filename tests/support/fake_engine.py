"""A fake engine: scripted endpoints behind the interface of the transport.

engine = FakeEngine()
member = engine["m1:2379"]        # by host and port, or by the authority of a unix socket
member.dial = Refuse(OSError(...))  or  Hang()  or  Accept()   what dials do from now on
engine.unsent = ...               whether an attempt fails unsent; such attempts are not recorded
member.answers.append(...)        the outcomes of the next attempts, in turn; then `member.otherwise`
member.behind = [...]             the outcomes of all attempts on its first, its second ... its last connections:
                                  behind the address are several members
member.latency, member.work       seconds of every answer, and additional seconds of one attempt
member.connection.lose(error)     and .go_away(reason): ends its newest connection
member.on_stream = ...            called with every stream that is opened on it
member.openings.append(...)       the failures of the next streams to be opened, in turn
member.stream.say(b"...")         and .end(), .fail(failure): sends on its newest stream
member.documents["/version"]      what it serves over HTTP
member.has_health = True          it has gRPC's health service; then `member.health_streams` has its streams
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from etcd_aio.base.closing import Unwinding, unwound
from etcd_aio.errors import AttemptFailure, ConnectError, Delivery, LocalReason, StatusCode
from etcd_aio.methods import HEALTH_WATCH
from etcd_aio.transport import Collect, Collector, Connection, ConnectionOwner, Metadata, Stream, Target

_LARGE: Final = 2**14  # bytes of a message that arrives in one piece, at most


@dataclass(frozen=True)
class Accept:
    """The dial succeeds.

    Attributes:
        lost_at_once: the connection is lost before the dialler gets it.
        draining_at_once: the connection drains from the start.
        seconds: the duration of the dial.
    """

    lost_at_once: bool = False
    draining_at_once: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Refuse:
    """The dial fails."""

    error: Exception = field(default_factory=lambda: ConnectionRefusedError(111, "refused"))


@dataclass(frozen=True)
class Hang:
    """The dial, or the attempt, gets no answer."""


@dataclass(frozen=True)
class InPieces:
    """A reply that comes in two pieces.

    Attributes:
        payload: all of it.
        then: the failure after the first piece; None completes the reply.
    """

    payload: bytes
    then: AttemptFailure | None = None


Dial: TypeAlias = Accept | Refuse | Hang


@dataclass
class FakeAttempt:
    """One attempt that reached a connection."""

    member: "FakeMember"
    at: float
    path: str
    payload: bytes
    metadata: Metadata
    deadline: float
    whole_by: float | None = None
    is_heavy: bool = False


Whole: TypeAlias = bytes | AttemptFailure | Hang | Callable[[FakeAttempt], bytes]
Answer: TypeAlias = Whole | InPieces
"""The outcome of an attempt: a reply, a failure, silence, or the result of a function."""


class FakeMember:
    """The server behind one endpoint."""

    def __init__(self, authority: str) -> None:
        self.authority = authority
        self.dial: Dial = Accept()
        self.answers: deque[Answer] = deque()
        self.otherwise: Answer = b""
        self.behind: list[Answer] = []
        self.latency = 0.0
        self.work: Callable[[FakeAttempt], float] = lambda attempt: 0.0
        self.dials: list[float] = []
        self.targets: list[Target] = []
        self.connections: list[FakeConnection] = []
        self.attempts: list[FakeAttempt] = []
        self.openings: deque[AttemptFailure] = deque()
        self.on_stream: Callable[[FakeStream], None] | None = None
        self.streams: list[FakeStream] = []
        self.documents: dict[str, bytes] = {}
        self.has_health = False
        self.health_streams: list[FakeStream] = []

    @property
    def stream(self) -> "FakeStream":
        """The newest stream."""
        return self.streams[-1]

    @property
    def connection(self) -> "FakeConnection":
        """The newest connection."""
        return self.connections[-1]

    def next_answer(self, connection: "FakeConnection") -> Answer:
        """The outcome of the next attempt."""
        if self.behind:
            return self.behind[min(self.connections.index(connection), len(self.behind) - 1)]
        return self.answers.popleft() if self.answers else self.otherwise


class FakeEngine:
    """An engine whose members are scripted."""

    def __init__(self) -> None:
        self.members: dict[str, FakeMember] = {}
        self.attempts: list[FakeAttempt] = []
        self.order: list[str] = []
        self.streams: list[FakeStream] = []
        self.unsent: Callable[[FakeAttempt], bool] = lambda attempt: False

    def __getitem__(self, authority: str) -> FakeMember:
        return self.members.setdefault(authority, FakeMember(authority))

    async def connect(self, target: Target, owner: ConnectionOwner) -> Connection:
        """Dial as the member's `dial` says."""
        member = self[target.authority if target.path else target.dialled]
        member.dials.append(asyncio.get_running_loop().time())
        member.targets.append(target)
        dial = member.dial
        if isinstance(dial, Refuse):
            raise dial.error
        if isinstance(dial, Hang):
            await asyncio.Event().wait()
        assert isinstance(dial, Accept)
        await asyncio.sleep(dial.seconds)
        connection = FakeConnection(self, member, owner)
        member.connections.append(connection)
        if dial.draining_at_once:
            connection.go_away("going away")
        if dial.lost_at_once:
            connection.lose(ConnectionResetError(104, "reset at once"))
        return connection

    async def http_get(self, target: Target, path: str) -> bytes:
        """The member's document."""
        document = self[target.authority if target.path else target.dialled].documents.get(path)
        if document is None:
            raise ConnectError(f"the peer does not serve {path}")
        return document


class FakeConnection:
    """A connection to a scripted member."""

    def __init__(self, engine: FakeEngine, member: FakeMember, owner: ConnectionOwner) -> None:
        self._engine = engine
        self._member = member
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._running: set[asyncio.Future[bytes]] = set()
        self._movable: set[asyncio.Future[bytes]] = set()
        self._streams: set[FakeStream] = set()
        self.is_lost = False
        self.is_draining = False
        self.close_takes = 0.0

    # Commands.

    def lose(self, error: BaseException | None = None, delivery: Delivery = Delivery.UNKNOWN) -> None:
        """The connection is gone: running attempts fail as `delivery`, later ones as UNSENT."""
        if self.is_lost:
            return
        self.is_lost = True
        for future in tuple(self._running):
            if not future.done():
                text = "the connection was lost"
                future.set_exception(AttemptFailure(StatusCode.UNAVAILABLE, text, delivery))
        for stream in tuple(self._streams):
            stream.fail(AttemptFailure(StatusCode.UNAVAILABLE, "the connection was lost", delivery))
        self._owner.on_lost(error)

    def go_away(self, reason: str = "GOAWAY") -> None:
        """The peer takes no new attempts; those under way may finish."""
        self.is_draining = True
        self._owner.on_draining(reason)

    # The interface of the transport.

    async def unary(
        self,
        path: str,
        payload: bytes,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        may_move: bool = False,
        whole_by: float | None = None,
        is_heavy: bool = False,
    ) -> bytes:
        """Make an attempt; an `InPieces` answer is collected, others come whole."""
        if self.is_lost or self.is_draining:
            raise AttemptFailure(StatusCode.UNAVAILABLE, "the connection is closed", Delivery.UNSENT)
        attempt = FakeAttempt(self._member, self._loop.time(), path, payload, metadata, deadline, whole_by, is_heavy)
        if self._engine.unsent(attempt):
            raise AttemptFailure(StatusCode.UNAVAILABLE, "the test does not send it", Delivery.UNSENT)
        self._member.attempts.append(attempt)
        self._engine.attempts.append(attempt)
        found = self._member.next_answer(self)
        answer = self._given(found, collect) if isinstance(found, InPieces) else found
        future: asyncio.Future[bytes] = self._loop.create_future()
        if not isinstance(answer, Hang):
            seconds = self._member.latency + self._member.work(attempt)
            self._loop.call_later(seconds, self._settle, future, attempt, answer)
        timer = self._loop.call_at(deadline, self._expire, future) if deadline != float("inf") else None
        self._running.add(future)
        if may_move:
            self._movable.add(future)
        try:
            return await future
        finally:
            self._running.discard(future)
            self._movable.discard(future)
            if timer is not None:
                timer.cancel()
            self._close_if_drained()

    def _given(self, answer: InPieces, collect: Collect | None) -> bytes | AttemptFailure:
        if collect is None:
            return answer.then or answer.payload
        collector = collect()
        middle = len(answer.payload) // 2
        collector.feed(answer.payload[:middle])
        collector.work()
        if answer.then is None:
            collector.feed(answer.payload[middle:])
        return answer.then or b""

    async def open_stream(
        self,
        path: str,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        *,
        is_quiet: bool = False,
    ) -> Stream:
        """Open a stream, or raise the next of the member's `openings`."""
        if self.is_lost or self.is_draining:
            raise AttemptFailure(StatusCode.UNAVAILABLE, "the connection is closed", Delivery.UNSENT)
        if path == HEALTH_WATCH.path:
            return self._open_health_stream(metadata)
        if self._member.openings:
            raise self._member.openings.popleft()
        stream = FakeStream(self, self._member, self._loop.time(), path, metadata, collect)
        self._streams.add(stream)
        self._member.streams.append(stream)
        self._engine.streams.append(stream)
        if self._member.on_stream is not None:
            self._member.on_stream(stream)
        return stream

    def _open_health_stream(self, metadata: Metadata) -> Stream:
        """A stream of gRPC's health service, which is apart from those of etcd."""
        if not self._member.has_health:
            raise AttemptFailure(StatusCode.UNIMPLEMENTED, "unknown service grpc.health.v1.Health", Delivery.ANSWERED)
        stream = FakeStream(self, self._member, self._loop.time(), HEALTH_WATCH.path, metadata)
        self._streams.add(stream)
        self._member.health_streams.append(stream)
        return stream

    def close(self) -> Unwinding:
        """Lose the connection."""
        self.lose(None)
        if not self.close_takes:
            return ()
        unwinding = self._loop.create_future()
        self._loop.call_later(self.close_takes, unwinding.cancel)
        return (unwinding,)

    async def aclose(self) -> None:
        """Lose the connection, and wait for its end."""
        await unwound(self.close())

    def drain(self) -> None:
        """Take no new attempts, and end after the last one."""
        self.is_draining = True
        self._close_if_drained()

    def give_up(self, reason: str) -> None:
        """Fail the attempts that may move."""
        for future in tuple(self._movable):
            if not future.done():
                failure = AttemptFailure(StatusCode.UNAVAILABLE, reason, Delivery.UNKNOWN, reason=LocalReason.GIVEN_UP)
                future.set_exception(failure)

    # Inside.

    def stream_over(self, stream: "FakeStream") -> None:
        """A stream ended."""
        self._streams.discard(stream)
        self._close_if_drained()

    def _settle(self, future: "asyncio.Future[bytes]", attempt: FakeAttempt, answer: Whole) -> None:
        if future.done():
            return
        try:
            if isinstance(answer, AttemptFailure):
                raise AttemptFailure(
                    answer.code,
                    answer.message,
                    answer.delivery,
                    pushback=answer.pushback,
                    reason=answer.reason,
                )
            assert not isinstance(answer, Hang)
            reply = answer if isinstance(answer, bytes) else answer(attempt)
        except AttemptFailure as failure:
            if not future.done():  # the answer may have been to lose the connection
                future.set_exception(failure)
        else:
            if not future.done():
                future.set_result(reply)

    def _expire(self, future: "asyncio.Future[bytes]") -> None:
        if not future.done():
            text = "the deadline passed before the server answered"
            future.set_exception(
                AttemptFailure(StatusCode.DEADLINE_EXCEEDED, text, Delivery.UNKNOWN, reason=LocalReason.DEADLINE)
            )

    def _close_if_drained(self) -> None:
        if self.is_draining and not self._running and not self._streams:
            self.lose(None)


class FakeStream:
    """A stream to a scripted member.

    Attributes:
        sent: the messages that came from the client.
        is_over: the stream has ended, from either side.
        is_cancelled: the client cancelled it while it was open.
        is_blocked: `send` waits, as for flow control.
        collects: large messages arrive in pieces.
        collected: how many messages a collector got.
        parts: how often it was returned before it had all.
    """

    def __init__(
        self,
        connection: FakeConnection,
        member: FakeMember,
        at: float,
        path: str,
        metadata: Metadata,
        collect: Collect | None = None,
    ) -> None:
        self.member = member
        self.at = at
        self.path = path
        self.metadata = metadata
        self.sent: list[bytes] = []
        self.is_over = False
        self.is_cancelled = False
        self.is_blocked = False
        self.collects = False
        self.collected = 0
        self.parts = 0
        self._collect = collect
        self._collecting: tuple[Collector, deque[bytes]] | None = None  # and what it has yet to get
        self.on_message: Callable[[bytes], None] | None = None
        self._connection = connection
        self._messages: deque[bytes] = deque()
        self._failure: AttemptFailure | None = None
        self._changed = asyncio.Event()

    # Commands.

    def say(self, message: bytes) -> None:
        """The server sends a message."""
        self._messages.append(message)
        self._changed.set()

    def end(self) -> None:
        """The server ends the stream with OK."""
        self.is_over = True
        self._changed.set()

    def fail(self, failure: AttemptFailure) -> None:
        """The stream fails; earlier messages are still received."""
        if not self.is_over:
            self.is_over = True
            self._failure = failure
            self._changed.set()

    # The interface of the transport.

    async def send(self, payload: bytes) -> None:
        """Record a message."""
        while self.is_blocked and not self.is_over:
            self._changed.clear()
            await self._changed.wait()
        if self.is_over:
            raise self._failure or AttemptFailure(StatusCode.CANCELLED, "the stream takes no more", Delivery.UNKNOWN)
        self.sent.append(payload)
        if self.on_message is not None:
            self.on_message(payload)

    async def receive(self) -> bytes | Collector | None:
        """The next message, None at the end."""
        while True:
            if self._collecting is not None:
                return self._collected(*self._collecting)
            if self._messages:
                message = self._messages.popleft()
                if not self.collects or self._collect is None or len(message) <= _LARGE:
                    return message
                pieces = deque(message[start : start + _LARGE] for start in range(0, len(message), _LARGE))
                self._collecting = self._collect(), pieces
                continue
            if self._failure is not None:
                raise self._failure
            if self.is_over:
                return None
            self._changed.clear()
            await self._changed.wait()

    def _collected(self, collector: Collector, pieces: deque[bytes]) -> Collector:
        """Give a collector its pieces until it has a part, or all."""
        while pieces:
            collector.feed(pieces.popleft())
            collector.work()
            if pieces and collector.has_part:
                self.parts += 1
                return collector
        collector.end()
        self.collected += 1
        self._collecting = None
        return collector

    async def half_close(self) -> None:
        """Do nothing."""

    def cancel(self) -> None:
        """End the stream."""
        self.is_cancelled = self.is_cancelled or not self.is_over
        self.fail(AttemptFailure(StatusCode.CANCELLED, "the stream was cancelled", Delivery.UNKNOWN))
        self._connection.stream_over(self)
