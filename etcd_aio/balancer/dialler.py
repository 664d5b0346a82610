"""Keeps one endpoint connected: dials, waits its backoff, and dials again when the connection has ended.

One task lives from `start()` to the end of the sub-connection. A failed dial waits its backoff. A connection that is
lost or drains is replaced at once if it had lived for `STABLE_AFTER`, else after the backoff, so that an endpoint that
accepts connections and drops them makes no busy loop.

The dial at once has no jitter, as in gRPC: it would add to the outage of every connection that is lost alone. If a
member restarts, all its clients dial at once, and it refuses them; the dials that follow have jitter.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from etcd_aio.balancer.connection_record import ConnectionRecord
from etcd_aio.balancer.endpoint import ProxyFor
from etcd_aio.base.aio import start_background_task
from etcd_aio.base.backoff import Backoff
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ConnectionLostError
from etcd_aio.transport import CertificateRenewal, Connection, Engine, Target

DIAL_BACKOFF: Final = Backoff(initial=0.05, multiplier=1.6, maximum=0.8, jitter=0.2)
"""Waits between dials. gRPC's limit of 120 s would leave a member unused for two minutes after its return. A dial or
two a second cost little, and a member that returns is found within a second."""

STABLE_AFTER: Final = 1.0  # seconds READY, after which a lost connection is redialled without a wait


@dataclass(frozen=True, slots=True)
class Dialling:
    """The way in which a client dials its endpoints.

    Attributes:
        engine: opens connections.
        verify: raises if the peer of a connection, to the endpoint of this name, must not be used.
        verify_all: verify the peer of every connection, not only after a rejection.
        random: returns a number in [0, 1), for jitter.
        client: name of the client; empty if it has none.
        certificates: the source of TLS contexts whose connections are renewed with their certificates; None if none is.
        proxy_for: chooses the proxy of an endpoint; None for none.
    """

    engine: Engine
    verify: Callable[[Connection, str], Awaitable[None]]
    verify_all: bool
    random: Callable[[], float]
    client: str = ""
    certificates: CertificateRenewal | None = None
    proxy_for: ProxyFor | None = None


class DialOwner(Protocol):
    """The sub-connection, as its dialler sees it."""

    def on_dialling(self) -> ConnectionRecord:
        """Note that a dial begins; return the record of the future connection."""
        ...

    def on_connected(self, record: ConnectionRecord, connection: Connection) -> None:
        """The dial has succeeded, and the peer may be used."""

    def on_dial_failed(self, error: Exception) -> None:
        """The dial has failed."""


class Dialler:
    """The only dialler of one endpoint.

    Args:
        owner: is called about every dial.
        endpoint: its name.
        target: what the engine dials.
        dialling: the client's way of dialling.
        failures: how many dials to other endpoints have failed in a row before; the backoff continues from there.
        verifies: verify the peer of every connection, whatever `dialling` says.

    Attributes:
        failures: see above.
        is_suspect: the last peer was rejected, and no other was accepted since.
        seconds: how long the last successful dial took.
        task: None before the start.
    """

    def __init__(
        self,
        owner: DialOwner,
        endpoint: str,
        target: Target,
        dialling: Dialling,
        *,
        failures: int,
        verifies: bool = False,
    ) -> None:
        self.is_suspect = False
        self.seconds = 0.0
        self.task: asyncio.Task[None] | None = None
        self._owner = owner
        self._endpoint = endpoint
        self._target = target
        self._dialling = dialling
        self._verifies = verifies or dialling.verify_all
        self.failures = failures

    def start(self) -> None:
        """Begin to dial. Safe to repeat."""
        if self.task is None:
            self.task = start_background_task(self._keep_connected(), name=f"etcd_aio dial {self._endpoint}")

    def cancel(self) -> None:
        """Stop dialling. The current connection is not touched."""
        if self.task is not None:
            self.task.cancel()

    @property
    def is_done(self) -> bool:
        """Whether no dial is under way, and none will be unless it is started."""
        return self.task is None or self.task.done()

    async def _keep_connected(self) -> None:
        clock = asyncio.get_running_loop().time
        failures = self.failures  # in a row: failed dials, and connections that did not last
        while True:
            record = self._owner.on_dialling()
            try:
                connection = await self._connect(record)
            except Exception as error:  # whatever it is, this endpoint cannot be used, and the user must see why
                self._owner.on_dial_failed(error)
            else:
                connected_at = clock()
                self._owner.on_connected(record, connection)
                del connection  # neither it nor its record is kept once another one has taken its place
                await record.ended.wait()
                while record.successor is not None:
                    record = record.successor
                    await record.ended.wait()
                if clock() - connected_at >= STABLE_AFTER and not record.is_rejected:
                    failures = 0
                    continue
            await asyncio.sleep(DIAL_BACKOFF.wait(failures, self._dialling.random))
            failures += 1

    async def dial_beside(self, record: ConnectionRecord) -> None:
        """Give the record a connection, whatever becomes of the current one.

        Raises:
            Exception: the reason why the dial failed.
        """
        record.connection = await self._connect(record)

    async def _connect(self, record: ConnectionRecord) -> Connection:
        clock = asyncio.get_running_loop().time
        began = clock()
        connection = await self._dialling.engine.connect(self._target_for(record), record)
        self.seconds = clock() - began
        try:
            if self.is_suspect or self._verifies:
                await self._dialling.verify(connection, self._endpoint)
            # The peer may have ended the connection before this task continued.
            if record.ended.is_set():
                raise ConnectionLostError(f"the connection ended at once: {record.cause}") from record.cause
        except BaseException:  # also a cancellation: the connection has no other owner yet
            connection.close()
            raise
        self.is_suspect = False
        return connection

    def _target_for(self, record: ConnectionRecord) -> Target:
        certificates = self._dialling.certificates
        if certificates is None or self._target.tls is not certificates:
            return self._target
        record.certificates = certificates.for_connection()
        return dataclasses.replace(self._target, tls=record.certificates)
