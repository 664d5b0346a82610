"""Renews connections whose certificates have changed or will expire: see `renewal_schedule`. For `TLS(reconnect=True)`.

One task reads the files and looks at every connection. It dials beside a connection, and the endpoint moves to the new
one if that has other certificates; so one endpoint moves at a time, and none is ever without a connection. The members
read their own files at each handshake, so a new dial shows a new certificate of theirs, too.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from etcd_aio.balancer.renewal_schedule import RenewalSchedule
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.base.aio import start_background_task, wait_until, wake
from etcd_aio.base.backoff import jittered
from etcd_aio.base.closing import TwoPartClose, Unwinding
from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import printable
from etcd_aio.transport import OF_MEMBER, CertificateRenewal, ConnectionCertificates
from etcd_aio.types import ConnectivityState

READ_SECONDS: Final = 5.0
"""Seconds from one reading of the files to the next. It takes a thread less than a millisecond."""

_READ_JITTER: Final = 0.2
_SHORTEST_PAUSE: Final = 0.1


class Renewer(TwoPartClose):
    """Owner of the one task.

    Args:
        certificates: the source of the client's TLS contexts.
        sub_connections: returns those in use.
        on_moved: called after a move.
        random: returns a number in [0, 1), for jitter.
        wall: returns the seconds since 1970.
    """

    def __init__(
        self,
        certificates: CertificateRenewal,
        sub_connections: Callable[[], Iterable[SubConnection]],
        on_moved: Callable[[], None],
        random: Callable[[], float],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._certificates = certificates
        self._sub_connections = sub_connections
        self._on_moved = on_moved
        self._random = random
        self._wall = wall
        self._schedules: dict[ConnectionCertificates, RenewalSchedule] = {}
        self._told: dict[str, float] = {}  # which expiry was told, by the endpoint; that of the client itself by ""
        self._task: asyncio.Task[None] | None = None
        self._change: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Start the task. Called once, in the client's loop."""
        self._task = start_background_task(self._keep_renewing(), name="etcd_aio renew connections")

    def close(self) -> Unwinding:
        """End the task, and the dial that is under way."""
        if self._task is None:
            return ()
        self._task.cancel()
        return (self._task,)

    def nudge(self) -> None:
        """A connection may have been made: its certificates may be the first to expire."""
        wake(self._change)

    async def _keep_renewing(self) -> None:
        loop = asyncio.get_running_loop()
        # Clients that start together read at different times. Without files too, the wall clock may be set meanwhile.
        read_at = loop.time() + READ_SECONDS * self._random()
        while True:
            self._change = loop.create_future()
            at = min([due for _, due in self._look()], default=NEVER)
            await wait_until(self._change, max(min(at, read_at), loop.time() + _SHORTEST_PAUSE), None)
            if loop.time() >= read_at:
                await self._read()
                read_at = loop.time() + jittered(READ_SECONDS, _READ_JITTER, self._random)
            for sub_connection, due in self._look():
                if due <= loop.time():
                    await self._renew(sub_connection)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                await self._certificates.read()
        except Exception as error:  # whatever it is, an expiry must be seen all the same
            logging.getLogger("etcd_aio.tls").debug("certificate files were not read: %s", type(error).__name__)

    def _look(self) -> list[tuple[SubConnection, float]]:
        """The READY ones over TLS, and when a dial is due for each; the first one that is due comes first."""
        now, wall = self._now(), self._wall()
        found: list[tuple[SubConnection, float]] = []
        schedules: dict[ConnectionCertificates, RenewalSchedule] = {}
        for sub_connection in self._sub_connections():
            certificates = sub_connection.certificates
            if certificates is None or sub_connection.state is not ConnectivityState.READY:
                continue
            expires = certificates.expiry[0]
            schedule = self._schedules.get(certificates)
            if schedule is None:
                schedule = RenewalSchedule(expires, wall, self._random)
            schedules[certificates] = schedule
            found.append((sub_connection, schedule.due(certificates.is_current, expires, now, wall)))
        self._schedules = schedules
        return sorted(found, key=lambda entry: entry[1])

    async def _renew(self, sub_connection: SubConnection) -> None:
        old = sub_connection.certificates
        if old is None or old not in self._schedules:
            return  # it has just been dialled again
        try:
            record = await sub_connection.dial_beside()
        except Exception as error:  # whatever it is, the connection that there is stays in use
            if sub_connection.certificates is old:
                self._note_vain(sub_connection, old, f"{type(error).__name__}: {printable(str(error))}")
            return
        new = record.certificates
        has_moved = False
        try:
            if sub_connection.certificates is not old or new is None:
                return
            if not old.is_current:
                reason = "certificate files have changed"
            elif new.expiry[0] > old.expiry[0]:
                reason = f"{old.expiry[1]} would expire"
            else:
                self._note_same(sub_connection, old)
                return
            has_moved = sub_connection.renew(record, f"the connection is renewed: {reason}")
        finally:
            if not has_moved:
                record.discard()
        if has_moved:
            self._on_moved()

    def _note_same(self, sub_connection: SubConnection, old: ConnectionCertificates) -> None:
        expires, whose = old.expiry
        seconds = expires - self._wall()
        when = f"expires in {seconds:.0f} s" if seconds > 0 else f"expired {-seconds:.0f} s ago"
        # That of the client is the same for all its connections.
        subject = sub_connection.endpoint_name if whose == OF_MEMBER else ""
        is_told = self._told.get(subject) == expires
        self._told[subject] = expires
        self._note_vain(sub_connection, old, f"{whose} {when}, and there is no newer one", is_told=is_told)

    def _note_vain(
        self, sub_connection: SubConnection, old: ConnectionCertificates, reason: str, *, is_told: bool = False
    ) -> None:
        schedule = self._schedules[old]
        endpoint, fields = sub_connection.endpoint_name, {"endpoint": sub_connection.endpoint_name}
        level = logging.DEBUG if is_told or schedule.vain else logging.WARNING  # one warning, not one for every dial
        text = "endpoint %s: the connection is not renewed, and stays in use: %s"
        sub_connection.log.log(level, text, endpoint, reason, extra=fields)
        schedule.in_vain(self._now(), self._wall())
