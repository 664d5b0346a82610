"""SubConnection: one endpoint, its state, and the only dialler of its connection.

Knows: one endpoint, the engine, a backoff. Never knows: the other endpoints, calls, retries.

Theory of operation. One task per sub-connection lives from `start()` to `close()`: it dials; a failed dial waits its
backoff; a connection that is lost or draining leaves READY in the same loop turn, and is dialled again at once if it
had lived for `STABLE_AFTER`, else after the backoff, so that an endpoint that accepts and drops is no busy loop. A
draining connection is kept beside its successor until the calls on it have ended. A stream may never end, so its owner
is asked to leave instead.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from etcd_aio.aio import start_background_task
from etcd_aio.backoff import Backoff
from etcd_aio.balancer.connectivity import ConnectivityState, check_transition
from etcd_aio.balancer.endpoint import Endpoint
from etcd_aio.balancer.health import Health, Service, refused_health
from etcd_aio.balancer.statistics import EndpointStatistics, reason_of
from etcd_aio.closing import TwoPartClose, Unwinding, close_all
from etcd_aio.errors import AttemptFailure, ConnectionLostError, Delivery, EtcdError, StatusCode, server_error
from etcd_aio.transport import Collect, Connection, Engine, Metadata, Stream, Target

logger = logging.getLogger("etcd_aio.balancer")

DIAL_BACKOFF: Final = Backoff(initial=0.05, multiplier=1.6, maximum=1.0, jitter=0.2)
"""Waits between dials. gRPC's cap of 120 s would leave a member unused for two minutes after its return; one dial a
second costs a dead endpoint nothing worth saving and a returning one is found within about a second."""

Verify: TypeAlias = Callable[[Connection, str], Awaitable[None]]
"""Raises if the peer of this connection, to the endpoint of this name, must not be used."""

OnLeave: TypeAlias = Callable[[str], None]
"""Told once, with the reason, that a stream should be moved to another connection."""

STABLE_AFTER: Final = 1.0  # seconds READY after which a lost connection is bad luck, not a broken endpoint
_LATENCY_WEIGHT: Final = 0.1  # of the newest sample in the moving average
_NO_ANSWER_CODES: Final = frozenset({StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED})


class SubConnection(TwoPartClose):
    """The balancer's unit: see the theory above.

    Args:
        endpoint: what it connects to.
        target: what the engine dials for it.
        engine: opens connections.
        verify: asks a connection's peer whether it is the right one; used after a `reject`.
        verify_all: use it for every connection.
        random: returns a number in [0, 1), for jitter.
        on_change: called, without arguments, after every change of state.
        on_busy: called when an attempt begins while none is under way.
        on_health: called after what traffic or the member itself said has changed the health of a service.
        slow: what slow answers take, in seconds; no failure counts as a faster one.
        failures: how many dials, of others in its place, have failed in a row before: its backoff goes on from there.

    Attributes:
        quorum: what its member does that needs the cluster: traffic and health, over the current connection, or the
            last one.
        local: what its member serves alone, likewise. Each new connection begins with new ones, so that what is still
            under way on an old one is no evidence.
        is_leader: whether its member leads, if anybody has looked for the leader.
        has_refused: whether its last dial failed, for whatever reason. A connection that is lost later does not count.
        unserved: paths of RPCs that the peer of the current connection was found not to have. Each new connection
            begins with a new set, since its peer may have been upgraded; what is added to an old one is forgotten.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        target: Target,
        engine: Engine,
        *,
        verify: Verify,
        random: Callable[[], float],
        on_change: Callable[[], None],
        on_busy: Callable[[], None],
        on_health: "Callable[[SubConnection, Service], None]",
        slow: Callable[[], float],
        failures: int = 0,
        verify_all: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self.endpoint_name = endpoint.name
        self.state = ConnectivityState.IDLE
        self.is_leader = False
        self.has_refused = False
        self.latency = 0.0
        self.last_error: BaseException | None = None
        self.unserved: set[str] = set()
        self._target = target
        self._engine = engine
        self._verify = verify
        self._verify_all = verify_all
        self._random = random
        self._on_change = on_change
        self._on_busy = on_busy
        self._on_health = on_health
        self._slow = slow
        self._loop = asyncio.get_running_loop()
        self._since = self._out_since = self._loop.time()
        self.quorum = Service(self._since)
        self.local = Service(self._since)
        self._connection: Connection | None = None
        self._owner: _Owner | None = None  # of the same connection
        self._live: set[_Owner] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_draining = False
        self._is_suspect = False
        self._dials_failed = failures
        self._dial_seconds = 0.0
        self._attempts = 0
        self._failures = 0
        self._connects = 0

    def __repr__(self) -> str:
        return f"<SubConnection {self.endpoint_name} {self.state.name} in_flight={self.in_flight}>"

    # What the balancer and the invoker use.

    def start(self) -> None:
        """Begin to connect; harmless if it has begun."""
        if self._task is None and self.state is not ConnectivityState.SHUTDOWN:
            self._task = start_background_task(self._keep_connected(), name=f"etcd_aio dial {self.endpoint_name}")

    @property
    def in_flight(self) -> int:
        """How many attempts are under way on the current connection."""
        return self.quorum.in_flight + self.local.in_flight

    @property
    def is_busy(self) -> bool:
        """Whether an attempt or a stream is under way, on whichever connection."""
        return any(owner.streams or any(one.in_flight for one in owner.services) for owner in self._live)

    @property
    def has_failed(self) -> bool:
        """Whether its last dial failed, or its last connection was lost, and there is no other yet."""
        return self.state is not ConnectivityState.READY and (self._connects > 0 or self.last_error is not None)

    @property
    def is_watched(self) -> bool:
        """Whether time may show something about a service: attempts wait, a question is open, or it looks bad."""
        return not (self.quorum.is_at_rest and self.local.is_at_rest)

    async def unary(
        self,
        path: str,
        payload: bytes,
        metadata: Metadata,
        deadline: float,
        collect: Collect | None = None,
        *,
        needs_leader: bool = True,
        may_move: bool = False,
        whole_by: float | None = None,
        is_heavy: bool = False,
    ) -> bytes:
        """One attempt. See `Connection.unary`.

        Args:
            path: gRPC path.
            payload: the encoded request message.
            metadata: request metadata.
            deadline: instant by which the attempt is over, or its answer has begun.
            collect: see there.
            needs_leader: the member cannot serve it alone, so that its answer, or silence, tells of `quorum`.
            may_move: see there.
            whole_by: see there.
            is_heavy: see there.
        """
        connection = self._connection
        if connection is None:
            raise AttemptFailure(StatusCode.UNAVAILABLE, "the sub-connection is not ready", Delivery.UNSENT)
        service = self.quorum if needs_leader else self.local
        started = self._loop.time()
        if not service.in_flight:
            self._on_busy()
        service.begin(started)
        try:
            reply = await connection.unary(path, payload, metadata, deadline, collect, may_move, whole_by, is_heavy)
        except BaseException as error:  # a cancellation too: it is under way no longer
            self._attempts += 1
            self._note_failure(service, started, error)
            raise
        self._attempts += 1
        now = self._loop.time()
        if service.answered(started, now):
            self._note_restored(service)
        sample = now - started
        self.latency += (sample - self.latency) * _LATENCY_WEIGHT if self.latency else sample
        return reply

    def _note_restored(self, service: Service) -> None:
        if service is self.quorum or service is self.local:  # not of an older connection
            self._on_health(self, service)

    def _note_failure(self, service: Service, started: float, error: BaseException) -> None:
        if not isinstance(error, AttemptFailure):
            service.dropped()  # a cancellation
            return
        now = self._loop.time()
        is_answer = error.delivery is Delivery.ANSWERED
        self._failures += not is_answer
        if is_answer and self.note_refusal(server_error(error.code, error.message)):
            service.refused(now)
        elif is_answer and error.code not in _NO_ANSWER_CODES:
            if service.answered(started, now):
                self._note_restored(service)
        elif error.is_given_up or error.is_final or error.delivery is Delivery.UNSENT:
            service.dropped()  # for reasons of this side
        else:
            service.failed(started)
            # To fail fast is not to be fast.
            sample = max(now - started, self._slow())
            self.latency += (sample - self.latency) * _LATENCY_WEIGHT if self.latency else sample

    @property
    def round_trip(self) -> float:
        """Seconds to its member and back, at most: what its fastest answer took, or the dial before there is one."""
        latencies = (*self.quorum.latencies, *self.local.latencies)
        return min(latencies) if latencies else self._dial_seconds

    def give_up(self, reason: str) -> None:
        """Have the attempts made elsewhere that can be. See `Connection.give_up`."""
        if self._connection is not None:
            self._connection.give_up(reason)

    def note_refusal(self, error: EtcdError | None) -> bool:
        """Note what its member's answer says of the member; returns whether that is anything. Safe to repeat."""
        health = refused_health(error)
        if health is not None and error is not None:
            self._refused(health, error.message)
        return health is not None

    def _refused(self, health: Health, reason: str) -> None:
        """The member said itself that it serves nothing now that needs the cluster."""
        if self.quorum.change(health, reason, self._loop.time()):
            self._on_health(self, self.quorum)
        if health is Health.NO_LEADER:
            self.leave_streams(reason)  # it tells its streams only seconds later

    async def open_stream(
        self, path: str, metadata: Metadata, deadline: float, on_leave: OnLeave | None = None
    ) -> "SubConnectionStream":
        """Open a stream. See `Connection.open_stream`.

        Args:
            path: gRPC path.
            metadata: request metadata.
            deadline: instant by which the headers must be out.
            on_leave: called with the reason, at most once and from the loop, when the stream should be moved to
                another connection. Without it the stream is left to end by itself.
        """
        connection, owner = self._connection, self._owner
        if connection is None or owner is None:
            raise AttemptFailure(StatusCode.UNAVAILABLE, "the sub-connection is not ready", Delivery.UNSENT)
        stream = SubConnectionStream(await connection.open_stream(path, metadata, deadline), owner.streams, on_leave)
        if owner.ended.is_set():  # it began to drain while the stream was being opened
            self._loop.call_soon(stream.leave, str(owner.cause))
        return stream

    def leave_streams(self, reason: str) -> None:
        """Ask the owners of all streams to move them to another endpoint: this one has no use for them."""
        if self._owner is not None:
            self._owner.leave_streams(reason)

    def reject(self, error: BaseException) -> None:
        """Give up the current connection, whose peer is not the member it should be.

        It is dialled again, but takes no attempt until `verify` has found the right peer there.
        """
        self._is_suspect = True
        owner = self._owner
        if owner is not None:
            logger.warning("endpoint %s: rejected: %s", self.endpoint_name, error)
            owner.is_rejected = True
            owner.on_draining("rejected")
            self.last_error = error

    def drain(self) -> None:
        """Take nothing new, close once what is under way has ended; final."""
        if self.state is ConnectivityState.SHUTDOWN:
            return
        self._is_draining = True
        self._connection = self._owner = None
        if self._task is not None:
            self._task.cancel()
        for owner in tuple(self._live):  # those on which nothing runs end at once, and leave the set
            owner.on_draining("the endpoint is used no more")
        self._change(ConnectivityState.SHUTDOWN)

    def close(self) -> Unwinding:
        """End everything now: the task, and every connection with what runs on it."""
        connections = [owner.connection for owner in self._live if owner.connection is not None]
        self.drain()
        return (*(() if self._task is None else (self._task,)), *close_all(connections))

    @property
    def is_over(self) -> bool:
        """Whether it is shut down and nothing is under way on it any more."""
        return self.state is ConnectivityState.SHUTDOWN and not self._live and (self._task is None or self._task.done())

    def statistics(self) -> EndpointStatistics:
        """A snapshot of what it has seen."""
        now = self._loop.time()
        is_ready = self.state is ConnectivityState.READY
        return EndpointStatistics(
            endpoint=self.endpoint_name,
            state=self.state,
            since=now - self._since,
            health=self.quorum.health if is_ready else Health.NOT_CONNECTED,
            local_health=self.local.health if is_ready else Health.NOT_CONNECTED,
            health_reason=(self.quorum.reason or self.local.reason) if is_ready else reason_of(self.last_error),
            health_since=now - (self.quorum.since if is_ready else self._out_since),
            is_leader=self.is_leader,
            in_flight=sum(service.in_flight for owner in self._live for service in owner.services),
            streams=sum(len(owner.streams) for owner in self._live),
            latency=self.latency,
            attempts=self._attempts,
            failures=self._failures,
            connects=self._connects,
            last_error=self.last_error,
        )

    # The one task.

    async def _keep_connected(self) -> None:
        failures = self._dials_failed  # in a row: dials that failed, connections that did not last
        while True:
            self._change(ConnectivityState.CONNECTING)
            owner = _Owner(self)
            try:
                connection = await self._connect(owner)
            except Exception as error:  # whatever it is, this endpoint cannot be used, and the user must see why
                self._dial_failed(error)
            else:
                owner.connection = self._connection = connection
                self.unserved = set()
                self._owner = owner
                self._live.add(owner)
                self._connects += 1
                ready_at = self._loop.time()
                self._log_return(ready_at)
                self.has_refused = False
                self.quorum, self.local = owner.services = Service(ready_at), Service(ready_at)
                self._change(ConnectivityState.READY)
                await owner.ended.wait()
                if self._loop.time() - ready_at >= STABLE_AFTER and not owner.is_rejected:
                    failures = 0
                    continue
            await asyncio.sleep(DIAL_BACKOFF.wait(failures, self._random))
            failures += 1

    async def _connect(self, owner: "_Owner") -> Connection:
        began = self._loop.time()
        connection = await self._engine.connect(self._target, owner)
        self._dial_seconds = self._loop.time() - began
        try:
            if self._is_suspect or self._verify_all:
                await self._verify(connection, self.endpoint_name)
            # The peer may have ended it before anybody here could use it.
            if owner.ended.is_set():
                raise ConnectionLostError(f"the connection ended at once: {owner.cause}") from owner.cause
        except BaseException:  # a cancellation too: nobody else knows the connection
            connection.close()
            raise
        self._is_suspect = False
        return connection

    def _dial_failed(self, error: Exception) -> None:
        self.last_error = error
        # One line when an endpoint cannot be connected to; the repetitions of an outage are noise.
        level = logging.DEBUG if self.has_refused or self._dials_failed else logging.WARNING
        self.has_refused = True
        logger.log(level, "endpoint %s: connecting failed: %s: %s", self.endpoint_name, type(error).__name__, error)
        self._change(ConnectivityState.TRANSIENT_FAILURE)

    def _log_return(self, now: float) -> None:
        """An outage that was logged ends by a line of its own."""
        if self.has_refused or self._connects > 1:
            again = " again" if self._connects > 1 else ""
            logger.info("endpoint %s: connected%s after %.1f s", self.endpoint_name, again, now - self._out_since)

    def _change(self, state: ConnectivityState) -> None:
        if self._is_draining and state is not ConnectivityState.SHUTDOWN:
            return
        check_transition(self.state, state)
        self.state = state
        self._since = self._loop.time()
        logger.debug("endpoint %s: %s", self.endpoint_name, state.name)
        self._on_change()

    # Called by _Owner.

    def connection_ended(self, owner: "_Owner", reason: str) -> None:
        """A connection takes no new attempts any more."""
        if owner.connection is not None and owner.connection is self._connection:
            self._connection = self._owner = None
            self.is_leader = False
            self._out_since = self._loop.time()
            logger.info("endpoint %s: %s", self.endpoint_name, reason)
            self._change(ConnectivityState.IDLE)

    def connection_over(self, owner: "_Owner") -> None:
        """A connection is gone, and everything that ran on it."""
        self._live.discard(owner)
        self._on_change()


class _Owner:
    """What one connection tells its sub-connection; a new one for each dial, so that an old one cannot be mistaken.

    `connection` is set once the sub-connection has taken it; it may have ended before that.
    """

    def __init__(self, sub_connection: SubConnection) -> None:
        self._sub_connection = sub_connection
        self.connection: Connection | None = None
        self.ended = asyncio.Event()
        self.cause: BaseException | None = None
        self.is_rejected = False
        self.services: tuple[Service, ...] = ()
        self.streams: set[SubConnectionStream] = set()

    def on_draining(self, reason: str) -> None:
        """See `ConnectionOwner.on_draining`."""
        self._end(ConnectionLostError(reason), reason)
        self.leave_streams(reason)
        if self.connection is not None:
            self.connection.drain()

    def on_lost(self, error: BaseException | None) -> None:
        """See `ConnectionOwner.on_lost`."""
        if error is None and not self.ended.is_set():
            error = ConnectionLostError("the connection was closed")
        if error is not None:
            self._sub_connection.last_error = error
            self._end(error, f"connection lost: {error}")
        self._sub_connection.connection_over(self)

    def leave_streams(self, reason: str) -> None:
        """Ask the owners of all streams to leave."""
        for stream in tuple(self.streams):
            stream.leave(reason)

    def _end(self, cause: BaseException, reason: str) -> None:
        if not self.ended.is_set():
            self.cause = cause
            self.ended.set()
            self._sub_connection.connection_ended(self, reason)


class SubConnectionStream:
    """A stream that its sub-connection counts, and whose owner it can ask to leave. See `Stream`.

    Args:
        stream: the engine's.
        streams: those that are open on the connection.
        on_leave: see `SubConnection.open_stream`.
    """

    __slots__ = ("_on_leave", "_stream", "_streams", "half_close", "receive", "send")

    def __init__(self, stream: Stream, streams: "set[SubConnectionStream]", on_leave: OnLeave | None) -> None:
        self._stream = stream
        self._streams = streams
        self._on_leave = on_leave
        self.send = stream.send  # the engine's own: a stream of events passes nothing on its way
        self.receive = stream.receive
        self.half_close = stream.half_close
        streams.add(self)

    def leave(self, reason: str) -> None:
        """Ask the owner to leave; only once, and not if the stream is over."""
        on_leave, self._on_leave = self._on_leave, None
        if on_leave is not None:
            on_leave(reason)

    def cancel(self) -> None:
        """See `Stream.cancel`. The owner always ends with it, however the stream ended."""
        self._on_leave = None
        self._streams.discard(self)
        self._stream.cancel()
