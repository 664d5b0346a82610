"""Health watch: looks at the sub-connections while attempts are under way, and has those probed that look bad.

Knows: the READY sub-connections, a timer, probes. Never knows: what the evidence means (`health.py`), or RPCs.

There is one timer. It runs while attempts wait or something looks bad, and costs nothing otherwise: a healthy client
that is idle looks at nothing and sends nothing. A probe is an attempt like every other, so its answer restores.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias

from etcd_aio.aio import start_background_task
from etcd_aio.backoff import Backoff
from etcd_aio.balancer.connectivity import ConnectivityState
from etcd_aio.balancer.health import Health, Service, percentile_99
from etcd_aio.balancer.sub_connection import SubConnection

logger = logging.getLogger("etcd_aio.balancer")

Probe: TypeAlias = Callable[[SubConnection, bool], Awaitable[None]]
"""Makes an attempt on a sub-connection that tells whether it serves; with True, one that needs the cluster."""

PROBE_BACKOFF: Final = Backoff(initial=0.1, multiplier=2.0, maximum=1.0, jitter=0.2)
"""Waits between the probes of a member that looks bad: found within a tenth of its absence, and within a second."""

LEARNER_BACKOFF: Final = Backoff(initial=1.0, multiplier=2.0, maximum=30.0, jitter=0.2)
"""The same for a learner, which stays one until an operator promotes it."""

_INTERVAL: Final = 0.05  # seconds; what `patience` may be late by
_LATE: Final = 0.1  # a timer this late says more about our loop: let what has arrived be read first
_SLOW_AGE: Final = 0.2  # seconds for which a percentile holds
_STREAMS_LEAVE_AFTER: Final = 0.5  # seconds of looking bad: to move is more work for a stream than to wait for a moment


class HealthWatch:
    """See above.

    Args:
        ready: the READY sub-connections.
        probe: see `Probe`.
        on_change: called after every change of any health.
        random: returns a number in [0, 1), for jitter.

    Attributes:
        slow: the 99th percentile of what recent answers took, in seconds; 0 before the first.
    """

    def __init__(
        self,
        ready: Callable[[], tuple[SubConnection, ...]],
        probe: Probe,
        on_change: Callable[[], None],
        random: Callable[[], float],
    ) -> None:
        self.slow = 0.0
        self._slow_at = 0.0
        self._ready = ready
        self._probe = probe
        self._on_change = on_change
        self._random = random
        self._timer: asyncio.TimerHandle | None = None
        self._probes: dict[Service, asyncio.Task[None]] = {}
        self._is_closed = False

    def arm(self) -> None:
        """Look from now on, until nothing is under way and nothing looks bad."""
        if self._timer is None and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(_INTERVAL, self._look)

    def on_changed(self, sub_connection: SubConnection, service: Service) -> None:
        """A service looks different than before, by whatever evidence."""
        name, what = sub_connection.endpoint_name, _name(sub_connection, service)
        if service.health is Health.HEALTHY:
            logger.info("endpoint %s: %s: healthy again", name, what)
        else:
            logger.warning("endpoint %s: %s: %s: %s", name, what, service.health.value, service.reason)
            self._have_probed(sub_connection, service)
        self._on_change()

    async def aclose(self) -> None:
        """End the timer and every probe."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        probes = tuple(self._probes.values())
        for probe in probes:
            probe.cancel()
        if probes:
            await asyncio.wait(probes)

    # Inside.

    def _look(self) -> None:
        timer, self._timer = self._timer, None
        now = asyncio.get_running_loop().time()
        ready = self._ready()
        if any(one.in_flight or one.looks_bad for one in ready):
            self.arm()
        if timer is not None and now - timer.when() > _LATE:
            return
        if now - self._slow_at > _SLOW_AGE:
            self._slow_at = now
            self.slow = percentile_99(service for one in ready for service in (one.quorum, one.local))
        if len(ready) > 1:
            for one in ready:
                self._judge(one, one.quorum, (other.quorum for other in ready if other is not one), now)
                self._judge(one, one.local, (other.local for other in ready if other is not one), now)

    def _judge(self, one: SubConnection, service: Service, others: Iterable[Service], now: float) -> None:
        if not service.in_flight and not service.timeouts and service.health is Health.HEALTHY:
            return
        newest = max(other.newest_answered for other in others)
        health, reason = service.judge(now, self.slow, newest, one.ping_silence(now))
        if service.health is Health.HEALTHY:
            if service.change(health, reason, now):
                self.on_changed(one, service)
                one.give_up(reason)
            return
        if health is Health.SILENT:  # also who was asked before it lost its leader, or came here for want of another
            one.give_up(reason)
        if now - service.since > _STREAMS_LEAVE_AFTER and service is one.quorum:
            one.leave_streams(f"{service.health.value}: {service.reason}")

    def _have_probed(self, sub_connection: SubConnection, service: Service) -> None:
        self.arm()
        if service in self._probes or self._is_closed:
            return
        work = self._probing(sub_connection, service)
        name = f"etcd_aio probe {sub_connection.endpoint_name}"
        self._probes[service] = start_background_task(work, name=name)

    async def _probing(self, sub_connection: SubConnection, service: Service) -> None:
        probes = 0
        try:
            while service.health is not Health.HEALTHY and sub_connection.state is ConnectivityState.READY:
                await self._probe(sub_connection, service is sub_connection.quorum)
                backoff = LEARNER_BACKOFF if service.health is Health.LEARNER else PROBE_BACKOFF
                await asyncio.sleep(backoff.wait(probes, self._random))
                probes += 1
        finally:
            del self._probes[service]


def _name(sub_connection: SubConnection, service: Service) -> str:
    return "what needs the cluster" if service is sub_connection.quorum else "what it serves alone"
