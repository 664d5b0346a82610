"""Health watch: looks at the sub-connections while attempts are under way, and has those probed that are suspected.

Knows: the READY sub-connections, a timer, probes. Never knows: what the evidence means (`health.py`), or RPCs.

There is one timer. It runs while attempts wait or something looks bad, and costs nothing otherwise: a healthy client
that is idle looks at nothing and sends nothing. A probe is an attempt like every other, so its answer restores, and
closes the question that it was. The question is also put to a witness, a member that looks healthy, unless traffic
shows just now that the others answer: without that, silence would mean nothing to a client with one caller. A witness
that does not answer either is followed by the next one. There is at most one probe under way for each service of each
member, and questions come at growing distances.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

from etcd_aio.aio import start_background_task
from etcd_aio.backoff import Backoff
from etcd_aio.balancer.connectivity import ConnectivityState
from etcd_aio.balancer.health import Finding, Health, Service, patience, percentile_99
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.closing import TwoPartClose, Unwinding

logger = logging.getLogger("etcd_aio.balancer")

Probe: TypeAlias = Callable[[SubConnection, bool], Awaitable[None]]
"""Makes an attempt on a sub-connection that tells whether it serves; with True, one that needs the cluster."""

_Side: TypeAlias = tuple[SubConnection, Service]
"""The same service of one of the members."""

PROBE_BACKOFF: Final = Backoff(initial=0.1, multiplier=2.0, maximum=1.0, jitter=0.2)
"""Waits between the probes of a member that looks bad: found within a tenth of its absence, and within a second."""

LEARNER_BACKOFF: Final = Backoff(initial=1.0, multiplier=2.0, maximum=30.0, jitter=0.2)
"""The same for a learner, which stays one until an operator promotes it."""

QUESTION_PAUSE: Final = Backoff(initial=0.25, multiplier=2.0, maximum=2.0, jitter=0.2)
"""Between two questions that a member answered: slow requests cost it at most one question every two seconds."""

_INTERVAL: Final = 0.025  # seconds; what each half of `patience` may be late by
_SELDOM: Final = 0.25  # seconds; the same while no member has answered anything for long
_LONG: Final = 5.0  # seconds; no election takes so long
_LATE: Final = 0.1  # a timer this late says more about our loop: let what has arrived be read first
_SLOW_AGE: Final = 0.2  # seconds for which a percentile holds
_STREAMS_LEAVE_AFTER: Final = 0.5  # seconds of looking bad: to move is more work for a stream than to wait for a moment


class HealthWatch(TwoPartClose):
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
        self._is_seldom = False  # whether the timer is far away
        self._is_closed = False

    def arm(self) -> None:
        """Look from now on, until nothing is under way and nothing looks bad."""
        if self._timer is None or self._is_seldom:
            self._set(_INTERVAL)

    def on_changed(self, sub_connection: SubConnection, service: Service) -> None:
        """A service looks different than before, by whatever evidence."""
        name, what = sub_connection.endpoint_name, _name(sub_connection, service)
        if service.health is Health.HEALTHY:
            logger.info("endpoint %s: healthy again for %s", name, what)
        else:
            logger.warning("endpoint %s: unhealthy for %s: %s: %s", name, what, service.health.value, service.reason)
            self._have_probed(sub_connection, service)
        self._on_change()

    def close(self) -> Unwinding:
        """End the timer and every probe."""
        probes = tuple(self._probes.values())
        if not self._is_closed:
            self._is_closed = True
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            for probe in probes:
                probe.cancel()
        return probes

    # Inside.

    def _look(self) -> None:
        timer, self._timer = self._timer, None
        now = asyncio.get_running_loop().time()
        ready = self._ready()
        if any(one.is_watched for one in ready):
            heard = max(max(one.quorum.silent_since, one.local.silent_since) for one in ready)
            self._set(_INTERVAL if now - heard < _LONG else _SELDOM)
        if timer is not None and now - timer.when() > _LATE:
            return
        if now - self._slow_at > _SLOW_AGE:
            self._slow_at = now
            self.slow = percentile_99(service for one in ready for service in (one.quorum, one.local))
        if len(ready) > 1:
            for sides in ([(one, one.quorum) for one in ready], [(one, one.local) for one in ready]):
                for one, service in sides:
                    self._judge(one, service, sides, now)

    def _set(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_closed:
            self._is_seldom = seconds > _INTERVAL
            self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _judge(self, one: SubConnection, service: Service, sides: Sequence[_Side], now: float) -> None:
        if service.is_calm(now):
            return  # the usual case, before anything is computed
        others = [side for side in sides if side[1] is not service]
        newest = max(other.newest_answered for _, other in others)
        if service.health is not Health.HEALTHY:
            if any(other.health is Health.HEALTHY for _, other in others):
                self._have_left(one, service, newest, now)
            return
        limit = patience(self.slow, service.in_flight, one.round_trip)
        finding = service.judge(now, limit, newest)
        if finding is Finding.ASK:
            self._ask(one, service, now)
            if newest <= now - limit / 2:
                self._ask_witness(others, now)
        elif finding is Finding.NOTHING:
            if newest < service.asked_at <= now - limit / 2:  # the witness may be silent too
                self._ask_witness(others, now)
        else:
            health, reason = service.verdict(finding, now)
            service.change(health, reason, now)
            self.on_changed(one, service)
            one.give_up(reason)

    def _have_left(self, one: SubConnection, service: Service, newest: float, now: float) -> None:
        """There is a better place for what waits at a member that looks bad.

        That is also what was asked before the member lost its leader, or came here for want of another.
        """
        reason = f"{service.health.value}: {service.reason}"
        if service.in_flight and newest > service.since:
            one.give_up(reason)
        if now - service.since > _STREAMS_LEAVE_AFTER and service is one.quorum:
            one.leave_streams(reason)

    def _ask(self, one: SubConnection, service: Service, now: float) -> None:
        """Put the question to a service."""
        if not self._is_probed(service):
            logger.debug("endpoint %s: a probe is sent for %s", one.endpoint_name, _name(one, service))
            service.ask(now, QUESTION_PAUSE.wait(service.questions, self._random))
            self._have_probed(one, service)

    def _ask_witness(self, others: Iterable[_Side], now: float) -> None:
        """Put it to that other service, too, which has answered last."""
        for one, service in sorted(others, key=lambda side: side[1].newest_answered, reverse=True):
            if service.health is Health.HEALTHY and service.may_be_asked(now):
                self._ask(one, service, now)
                return

    def _is_probed(self, service: Service) -> bool:
        task = self._probes.get(service)
        return task is not None and not task.done()  # one that is cancelled before its first step stays in the table

    def _have_probed(self, one: SubConnection, service: Service) -> None:
        self.arm()
        if self._is_closed or self._is_probed(service):
            return
        work = self._probing(one, service)
        name = f"etcd_aio probe {one.endpoint_name}"
        self._probes[service] = start_background_task(work, name=name)

    async def _probing(self, one: SubConnection, service: Service) -> None:
        """One probe, which may be a question, and more for as long as the service looks bad."""
        probes = 0
        try:
            while True:
                asked_at = service.asked_at
                try:
                    await self._probe(one, service is one.quorum)
                except Exception as error:  # a mistake on this side: without further probes it would look bad for ever
                    logger.error("endpoint %s: a probe failed: %s", one.endpoint_name, type(error).__name__)  # noqa: TRY400
                service.question_over(asked_at)
                if not _is_worth_probing(one, service):
                    return
                backoff = LEARNER_BACKOFF if service.health is Health.LEARNER else PROBE_BACKOFF
                await asyncio.sleep(backoff.wait(probes, self._random))
                if not _is_worth_probing(one, service):
                    return
                probes += 1
        finally:
            self._probes.pop(service, None)


def _is_worth_probing(one: SubConnection, service: Service) -> bool:
    """Whether it looks bad, and is a service of the connection that there is."""
    is_current = service is one.quorum or service is one.local
    return service.health is not Health.HEALTHY and is_current and one.state is ConnectivityState.READY


def _name(one: SubConnection, service: Service) -> str:
    return "linearizable calls" if service is one.quorum else "serializable reads"
