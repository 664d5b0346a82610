"""One endpoint: its connectivity state, the health of its member, and the attempts and streams on its connection.

A connection that is lost or drains leaves READY in the same turn of the loop. A draining connection is kept beside its
successor until the calls on it have ended. A stream may never end, so its owner is asked to leave instead.

An address may lead to several members, so what is known of a member belongs to the record of its connection.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from etcd_aio import errors
from etcd_aio.balancer.connection_record import ConnectionRecord, OnLeave, SubConnectionStream
from etcd_aio.balancer.connectivity import check_transition
from etcd_aio.balancer.dialler import Dialler, Dialling
from etcd_aio.balancer.endpoint import Endpoint
from etcd_aio.balancer.health_verdicts import ServiceHealth, has_served, refused_health
from etcd_aio.balancer.statistics import reason_of
from etcd_aio.base.aio import apart
from etcd_aio.base.closing import TwoPartClose, Unwinding, close_all
from etcd_aio.base.deadline import NEVER
from etcd_aio.base.logs import log_of
from etcd_aio.base.reprs import when_constructed
from etcd_aio.errors import AttemptFailure, Delivery, EtcdError, LocalReason, StatusCode, printable
from etcd_aio.transport import Collect, Connection, ConnectionCertificates, Metadata, TLSContext
from etcd_aio.types import ConnectivityState, EndpointStatistics, Health

logger: Final = logging.getLogger("etcd_aio.balancer")

_LATENCY_WEIGHT: Final = 0.1  # of the newest sample in the moving average
_LOCAL_REASONS: Final = (LocalReason.GIVEN_UP, LocalReason.REPLY_TOO_LARGE)


class HealthListener(Protocol):
    """The health monitor, as sub-connections see it."""

    is_armed: bool
    p99_latency: float

    def arm(self) -> None:
        """An attempt begins while none is under way, and `is_armed` is False."""

    def on_changed(self, sub_connection: "SubConnection", service: ServiceHealth) -> None:
        """The health of a service has changed, by traffic or by what the member itself said."""


class SubConnection(TwoPartClose):
    """The balancer's side of one endpoint: see above.

    Args:
        endpoint: what it connects to.
        tls: the TLS context of the endpoint, or its source; None for plaintext.
        dialling: how it connects.
        monitor: receives the traffic and the health of this member.
        failures: how many dials to other endpoints have failed in a row before.
        on_change: called after every change of state, and when a connection is gone.

    Attributes:
        is_leader: whether its member leads, if the balancer has searched for the leader.
        has_refused: whether its last dial failed, for whatever reason. A connection that is lost later does not count.
        latency: the moving average of the latency of its attempts, in seconds.
        last_error: the last error of a dial or a connection.
        log: where its changes are logged.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        tls: TLSContext | None,
        dialling: Dialling,
        monitor: HealthListener,
        *,
        failures: int = 0,
        on_change: Callable[[], None],
    ) -> None:
        self.endpoint_name = endpoint.name
        self.log = log_of(logger, dialling.client)
        self._client = dialling.client
        self.state = ConnectivityState.IDLE
        self.is_leader = False
        self.has_refused = False
        self.latency = 0.0
        self.last_error: BaseException | None = None
        self._monitor = monitor
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._since = self._out_since = self._loop.time()
        target = endpoint.target(tls, dialling.proxy_for)
        # DNS may still name an address that belongs to another cluster by now.
        verifies = bool(endpoint.address)
        self._dialler = Dialler(self, endpoint.name, target, dialling, failures=failures, verifies=verifies)
        self._connection: Connection | None = None
        self._record = ConnectionRecord(self, self._since)  # of this connection, or of the last one
        self._live: dict[ConnectionRecord, None] = {}
        self._attempts = 0
        self._failures = 0
        self._connects = 0

    @when_constructed
    def __repr__(self) -> str:
        return f"<SubConnection {self.endpoint_name} {self.state.name} in_flight={self.in_flight}>"

    def start(self) -> None:
        """Begin to connect. Safe to repeat."""
        if self.state is not ConnectivityState.SHUTDOWN:
            self._dialler.start()

    # Attempts and streams.

    @property
    def in_flight(self) -> int:
        """The number of attempts under way on the current connection."""
        return self._record.in_flight

    @property
    def is_busy(self) -> bool:
        """Whether an attempt or a stream is under way, on any connection."""
        return any(record.streams or record.in_flight for record in self._live)

    async def unary(
        self,
        path: str,
        payload: bytes,
        metadata: Metadata,
        deadline: float,
        *,
        needs_leader: bool = True,
        may_move: bool = False,
    ) -> bytes:
        """Make one attempt, as `Connection.unary` does with the same arguments; `needs_leader` is that of `begin`."""
        started = self._loop.time()
        connection, record, service = self.begin(started, needs_leader)
        try:
            reply = await connection.unary(path, payload, metadata, deadline, may_move=may_move)
        except BaseException as error:  # also a cancellation: the attempt is not under way any more
            self.end_failed(record, service, started, error)
            raise
        self.end_answered(service, started)
        return reply

    # An attempt in three parts: calls make theirs without a coroutine in between.

    def begin(self, now: float, needs_leader: bool) -> tuple[Connection, ConnectionRecord, ServiceHealth]:
        """An attempt begins. Returns the connection to make it on, its record, and the service that it counts for.

        Args:
            now: the instant.
            needs_leader: the member cannot serve the request alone, so it counts for `quorum_health`, and not for
                `local_health`.

        Raises:
            AttemptFailure: there is no connection by now.
        """
        connection, record = self._connection, self._record
        if connection is None:
            raise AttemptFailure(StatusCode.UNAVAILABLE, "the sub-connection is not ready", Delivery.UNSENT)
        service = record.quorum_health if needs_leader else record.local_health
        if not service.in_flight and not self._monitor.is_armed:
            self._monitor.arm()
        service.begin(now)
        return connection, record, service

    def end_answered(self, service: ServiceHealth, started: float) -> None:
        """An attempt that began at `started` was answered."""
        self._attempts += 1
        now = self._loop.time()
        if service.answered(started, now):
            self._note_restored(service)
        sample = now - started
        self.latency += (sample - self.latency) * _LATENCY_WEIGHT if self.latency else sample

    def end_failed(
        self, record: ConnectionRecord, service: ServiceHealth, started: float, error: BaseException
    ) -> None:
        """An attempt that began at `started` failed, or was cancelled."""
        self._attempts += 1
        self._note_failure(record, service, started, error)

    async def open_stream(
        self,
        path: str,
        metadata: Metadata,
        deadline: float,
        on_leave: OnLeave | None = None,
        collect: Collect | None = None,
    ) -> SubConnectionStream:
        """Open a stream, as `Connection.open_stream` does with the same arguments.

        `on_leave` is called with the reason, at most once and from the loop, when the stream should be moved to another
        connection. Without it the stream stays until it ends by itself.
        """
        connection, record = self._connection, self._record
        if connection is None:
            raise AttemptFailure(StatusCode.UNAVAILABLE, "the sub-connection is not ready", Delivery.UNSENT)
        try:
            opened = await connection.open_stream(path, metadata, deadline, collect)
        except AttemptFailure as failure:  # some engines ask the member before they open a stream
            if failure.delivery is Delivery.ANSWERED:
                self.note_refusal(errors.server_error(failure.code, failure.message), record)
            raise
        stream = SubConnectionStream(opened, record, on_leave)
        if record.ended.is_set():  # the connection began to drain while the stream was being opened
            self._loop.call_soon(stream.leave, str(record.cause))
        return stream

    def give_up(self, reason: str) -> None:
        """Fail the attempts under way that can be made elsewhere. See `Connection.give_up`."""
        if self._connection is not None:
            self._connection.give_up(reason)

    def leave_streams(self, reason: str) -> None:
        """Ask the owners of all streams to move them to another endpoint."""
        if self._connection is not None:
            self._record.leave_streams(reason)

    @property
    def unserved(self) -> dict[str, str]:
        """Paths of RPCs that the peer of this connection was found not to have, with its text.

        The next peer may be an upgraded one.
        """
        return self._record.unserved

    # Health. Each connection starts over: attempts that are still under way on an old one are no evidence.

    @property
    def record(self) -> ConnectionRecord:
        """The record of the current connection, or of the last one."""
        return self._record

    @property
    def quorum_health(self) -> ServiceHealth:
        """Traffic and health of what needs the cluster, over the current connection, or the last one."""
        return self._record.quorum_health

    @property
    def local_health(self) -> ServiceHealth:
        """Traffic and health of what the member serves alone, over the same connection."""
        return self._record.local_health

    @property
    def is_watched(self) -> bool:
        """Whether time may change the health of a service: attempts wait, a question is open, or it is unhealthy."""
        return not (self.quorum_health.is_at_rest and self.local_health.is_at_rest)

    @property
    def round_trip(self) -> float:
        """An upper bound of the round-trip time: the fastest answer, or the dial before there is one, in seconds."""
        latencies = (*self.quorum_health.latencies, *self.local_health.latencies)
        return min(latencies) if latencies else self._dialler.seconds

    def note_refusal(self, error: EtcdError | None, record: ConnectionRecord | None = None) -> bool:
        """Note what the member's answer says about the member itself; returns whether it says anything.

        Safe to repeat with the same answer.

        Args:
            error: the answer.
            record: of its connection; None for the current one. An older one may lead to another member.
        """
        health = refused_health(error)
        if health is None or error is None:
            return False
        if record is None or record is self._record:
            service = self.quorum_health
            if service.health is not Health.NOT_SERVING and service.change(health, error.message, self._loop.time()):
                self._monitor.on_changed(self, service)
            if health is Health.NO_LEADER:
                self.leave_streams(error.message)  # the member itself ends its streams only seconds later
        return True

    def note_serving(self, is_serving: bool, record: ConnectionRecord) -> None:
        """Note what the member says of itself by gRPC's health service, over the connection with this record."""
        if record is self._record:
            for service in (record.quorum_health, record.local_health):
                if service.told(is_serving, self._loop.time()):
                    self._monitor.on_changed(self, service)

    def _note_restored(self, service: ServiceHealth) -> None:
        if service is self.quorum_health or service is self.local_health:  # not of an older connection
            self._monitor.on_changed(self, service)

    def _note_failure(
        self, record: ConnectionRecord, service: ServiceHealth, started: float, error: BaseException
    ) -> None:
        if not isinstance(error, AttemptFailure):
            service.dropped()  # a cancellation
            return
        now = self._loop.time()
        is_answer = error.delivery is Delivery.ANSWERED
        self._failures += not is_answer
        if is_answer and self.note_refusal(errors.server_error(error.code, error.message), record):
            service.refused(now)
        elif has_served(error):
            if service.answered(started, now):
                self._note_restored(service)
        elif error.reason in _LOCAL_REASONS or error.delivery is Delivery.UNSENT:
            service.dropped()  # for reasons of the client
        else:
            service.failed(started)
            # A failure that comes fast must not make the member look fast.
            sample = max(now - started, self._monitor.p99_latency)
            self.latency += (sample - self.latency) * _LATENCY_WEIGHT if self.latency else sample

    # Another connection beside the current one: the address may lead to several members.

    async def dial_beside(self) -> ConnectionRecord:
        """Connect once more, as always, without using it: the caller has `move` use it, or discards it.

        Raises:
            Exception: the reason why there is no connection.
        """
        record = ConnectionRecord(self, self._loop.time())
        await self._dialler.dial_beside(record)
        return record

    def move(self, record: ConnectionRecord) -> bool:
        """Use this connection from `dial_beside` in place of the current one, which drains.

        What can be repeated, and the streams, move at once. Returns False if the current connection serves again, or
        is gone, or the new one is.
        """
        old, now = self._record, self._loop.time()
        is_served = old.quorum_health.unserved_since == NEVER
        if self.state is not ConnectivityState.READY or is_served or record.ended.is_set():
            return False
        reason = "moved to another connection of the same endpoint, over which calls are served"
        seconds = now - old.quorum_health.unserved_since
        fields = {"endpoint": self.endpoint_name}
        self.log.info("endpoint %s: %s, after %.1f s", self.endpoint_name, reason, seconds, extra=fields)
        self.is_leader = False
        self.latency = 0.0
        self._replace(record, reason, gives_up=True)
        return True

    def renew(self, record: ConnectionRecord, reason: str) -> bool:
        """Use this connection from `dial_beside` in place of the current one, which may serve, and drains.

        Calls under way end on the old one, unless it does not serve. Streams move at once. Returns False if the current
        connection is gone, or the new one is.
        """
        if self.state is not ConnectivityState.READY or record.ended.is_set():
            return False
        self.log.info("endpoint %s: %s", self.endpoint_name, reason, extra={"endpoint": self.endpoint_name})
        self._record.is_routine = True
        # The health of the old one is no longer judged from now on.
        self._replace(record, reason, gives_up=self.quorum_health.unserved_since != NEVER)
        return True

    def _replace(self, record: ConnectionRecord, reason: str, *, gives_up: bool) -> None:
        old = self._record
        self._use(record, self._loop.time())
        old.successor = record
        if gives_up and old.connection is not None:
            old.connection.give_up(reason)
        old.on_draining(reason)
        self._on_change()

    @property
    def certificates(self) -> ConnectionCertificates | None:
        """The certificates of the current connection, or of the last one, if it is to be renewed with them."""
        return self._record.certificates

    # The end of a connection, and of all.

    @apart
    def reject(self, error: BaseException) -> None:
        """Give up the current connection: its peer is not the member it should be.

        The endpoint is dialled again, but takes no attempt until `verify` has accepted the peer.
        """
        self._dialler.is_suspect = True
        record = self._record
        if self._connection is not None:
            fields = {"endpoint": self.endpoint_name}
            self.log.warning("endpoint %s: rejected: %s", self.endpoint_name, error, extra=fields)
            record.is_rejected = True
            record.on_draining("rejected")
            self.last_error = error

    def drain(self) -> None:
        """Take no new attempts, and close the connections once everything under way has ended. Final."""
        if self.state is ConnectivityState.SHUTDOWN:
            return
        if self.quorum_health.unserved_since == NEVER:
            self._record.is_routine = True
        else:
            self.give_up("the endpoint is no longer used, since its member does not serve")
        self._connection = None
        self._dialler.cancel()
        for record in tuple(self._live):  # idle connections end at once, and leave the set
            record.on_draining("the endpoint is no longer used")
        self._change(ConnectivityState.SHUTDOWN)

    def close(self) -> Unwinding:
        """End everything now: the dialler, and every connection with all that runs on it."""
        connections = [record.connection for record in self._live if record.connection is not None]
        self.drain()
        dialling = () if self._dialler.task is None else (self._dialler.task,)
        return (*dialling, *close_all(connections))

    @property
    def has_failed(self) -> bool:
        """Whether its last dial failed, or its last connection was lost, and there is no other yet."""
        return self.state is not ConnectivityState.READY and (self._connects > 0 or self.last_error is not None)

    @property
    def is_over(self) -> bool:
        """Whether the sub-connection is shut down, and nothing is under way on it any more."""
        return self.state is ConnectivityState.SHUTDOWN and not self._live and self._dialler.is_done

    def statistics(self) -> EndpointStatistics:
        """A snapshot of its state, health and traffic."""
        now = self._loop.time()
        is_ready = self.state is ConnectivityState.READY
        return EndpointStatistics(
            endpoint=self.endpoint_name,
            state=self.state,
            since=now - self._since,
            health=self.quorum_health.health if is_ready else Health.NOT_CONNECTED,
            local_health=self.local_health.health if is_ready else Health.NOT_CONNECTED,
            health_reason=(self.quorum_health.reason or self.local_health.reason)
            if is_ready
            else reason_of(self.last_error),
            health_since=now - (self.quorum_health.since if is_ready else self._out_since),
            is_leader=self.is_leader,
            in_flight=sum(record.in_flight for record in self._live),
            streams=sum(len(record.streams) for record in self._live),
            latency=self.latency,
            attempts=self._attempts,
            failures=self._failures,
            connects=self._connects,
            last_error=self.last_error,
            client=self._client,
            engine=getattr(self._connection, "engine", ""),  # the user's own engine need not say it
        )

    # Called by the dialler: see `DialOwner`.

    def on_dialling(self) -> ConnectionRecord:
        self._change(ConnectivityState.CONNECTING)
        return ConnectionRecord(self, self._loop.time())

    def on_connected(self, record: ConnectionRecord, connection: Connection) -> None:
        now = self._loop.time()
        record.connection = connection
        self._use(record, now)
        if self.has_refused or self._connects > 1:  # the end of an outage is logged as its beginning was
            again = " again" if self._connects > 1 else ""
            fields = {"endpoint": self.endpoint_name}
            seconds = now - self._out_since
            self.log.info("endpoint %s: connected%s after %.1f s", self.endpoint_name, again, seconds, extra=fields)
        self.has_refused = False
        self._change(ConnectivityState.READY)

    def _use(self, record: ConnectionRecord, now: float) -> None:
        self._connection = record.connection
        self._record = record
        self._live[record] = None
        self._connects += 1
        record.quorum_health, record.local_health = ServiceHealth(now), ServiceHealth(now)

    def on_dial_failed(self, error: Exception) -> None:
        self.last_error = error
        # An outage is one warning; the further dials of the same outage are logged for debugging only.
        level = logging.DEBUG if self._dialler.failures or self.has_refused else logging.WARNING
        self.has_refused = True
        name, fields = type(error).__name__, {"endpoint": self.endpoint_name}
        text = printable(str(error))
        self.log.log(level, "endpoint %s: connecting failed: %s: %s", self.endpoint_name, name, text, extra=fields)
        self._change(ConnectivityState.TRANSIENT_FAILURE)

    # Called by the record of a connection: see `RecordOwner`.

    @apart
    def on_connection_ended(self, record: ConnectionRecord, reason: str) -> None:
        if record.connection is not None and record.connection is self._connection:
            self._connection = None
            self.is_leader = False
            self._out_since = self._loop.time()
            self.log.info("endpoint %s: %s", self.endpoint_name, reason, extra={"endpoint": self.endpoint_name})
            self._change(ConnectivityState.IDLE)

    @apart
    def on_connection_over(self, record: ConnectionRecord) -> None:
        self._live.pop(record, None)
        self._on_change()

    def _change(self, state: ConnectivityState) -> None:
        if self.state is ConnectivityState.SHUTDOWN:  # the dialler may take one more step before its cancellation
            return
        check_transition(self.state, state)
        self.state = state
        self._since = self._loop.time()
        self.log.debug("endpoint %s: %s", self.endpoint_name, state.name, extra={"endpoint": self.endpoint_name})
        self._on_change()
