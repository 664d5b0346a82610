"""Watches the health of the READY sub-connections while attempts are under way, and probes suspected members.

There is one timer. It runs while attempts wait or a member looks unhealthy, or is doubted; an idle healthy client has
no timer and sends nothing. A probe is an attempt like every other, so its answer restores the member and closes the
question. The question is also put to a witness, a member that looks healthy, unless traffic shows just now that others
answer: without a witness, silence would mean nothing to a client with a single caller. If the witness does not answer
either, the next one is asked. There is at most one probe under way for each service of each member, and the distances
between questions grow. A member that says itself that it does not serve (`serving_monitor`) is not probed.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Final, TypeAlias

from etcd_aio.balancer.health_verdicts import Finding, ServiceHealth, percentile_99, silence_limit
from etcd_aio.balancer.probe import probe
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.base.aio import apart, start_background_task, start_timer
from etcd_aio.base.backoff import Backoff
from etcd_aio.base.closing import TwoPartClose, Unwinding
from etcd_aio.types import ConnectivityState, Health

_Side: TypeAlias = tuple[SubConnection, ServiceHealth]
"""One service of one member."""

PROBE_BACKOFF: Final = Backoff(initial=0.1, multiplier=2.0, maximum=1.0, jitter=0.2)
"""Waits between the probes of an unhealthy member: its return is found within a tenth of its absence, or a second."""

LEARNER_BACKOFF: Final = Backoff(initial=1.0, multiplier=2.0, maximum=30.0, jitter=0.2)
"""Waits between the probes of a learner, which stays one until an operator promotes it."""

QUESTION_PAUSE: Final = Backoff(initial=0.25, multiplier=2.0, maximum=2.0, jitter=0.2)
"""Pauses after an answered question: slow requests cost a member at most one question every two seconds."""

_INTERVAL: Final = 0.025  # seconds between two checks, by which each half of `silence_limit` may be late
_LONG_INTERVAL: Final = 0.25  # seconds; the same after a long silence of all members
_LONG_SILENCE: Final = 5.0  # seconds; no election takes so long
_LATE: Final = 0.1  # a timer this late means that the loop stalled: received data must be read first
_PERCENTILE_AGE: Final = 0.2  # seconds for which a percentile is kept
_STREAMS_LEAVE_AFTER: Final = 0.5  # seconds unhealthy: to move a stream costs more than to wait for a moment


class HealthMonitor(TwoPartClose):
    """Owner of the timer and of the probes.

    Args:
        ready: returns the READY sub-connections.
        on_change: called after every change of any health, and when a doubt begins or ends.
        on_checked: called after every check, with the READY sub-connections and the instant.
        random: returns a number in [0, 1), for jitter.

    Attributes:
        p99_latency: the 99th percentile of recent latencies, in seconds; 0 before the first answer.
        is_armed: whether the timer runs, and has the short interval.
    """

    def __init__(
        self,
        ready: Callable[[], tuple[SubConnection, ...]],
        on_change: Callable[[], None],
        on_checked: Callable[[tuple[SubConnection, ...], float], None],
        random: Callable[[], float],
    ) -> None:
        self.p99_latency = 0.0
        self.is_armed = False
        self._p99_at = 0.0
        self._ready = ready
        self._on_change = on_change
        self._on_checked = on_checked
        self._random = random
        self._timer: asyncio.TimerHandle | None = None
        self._probes: dict[ServiceHealth, asyncio.Task[None]] = {}
        self._doubted: tuple[ServiceHealth, ...] = ()
        self._is_closed = False

    def arm(self) -> None:
        """Start the timer; it stops once nothing is under way and every member looks healthy."""
        if not self.is_armed:
            self._set_timer(_INTERVAL)

    @apart
    def on_changed(self, sub_connection: SubConnection, service: ServiceHealth) -> None:
        """Take note that the health of a service has changed."""
        endpoint, calls = sub_connection.endpoint_name, _calls_of(sub_connection, service)
        if service.health is Health.HEALTHY:
            sub_connection.log.info("endpoint %s: healthy again for %s", endpoint, calls, extra={"endpoint": endpoint})
        else:
            sub_connection.log.warning(
                "endpoint %s: unhealthy for %s: %s: %s",
                endpoint,
                calls,
                service.health.value,
                service.reason,
                extra={"endpoint": endpoint},
            )
            if service.health is Health.NOT_SERVING:
                self.arm()
            else:
                self._start_probing(sub_connection, service)
        self._on_change()
        if service.health is Health.NOT_SERVING and any(_is_healthy(member) for member in self._ready()):
            sub_connection.give_up(service.reason)

    def close(self) -> Unwinding:
        """End the timer and every probe."""
        probes = tuple(self._probes.values())
        if not self._is_closed:
            self._is_closed = True
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            for task in probes:
                task.cancel()
        return probes

    # Checks.

    def _check(self) -> None:
        timer, self._timer, self.is_armed = self._timer, None, False
        now = asyncio.get_running_loop().time()
        ready = self._ready()
        if any(sub_connection.is_watched for sub_connection in ready):
            heard_at = max(max(member.quorum_health.silent_since, member.local_health.silent_since) for member in ready)
            self._set_timer(_INTERVAL if now - heard_at < _LONG_SILENCE else _LONG_INTERVAL)
        if timer is not None and now - timer.when() > _LATE:
            return
        if now - self._p99_at > _PERCENTILE_AGE:
            self._p99_at = now
            self.p99_latency = percentile_99(
                service for member in ready for service in (member.quorum_health, member.local_health)
            )
        services = [[(member, member.quorum_health) for member in ready]]
        if len(ready) > 1:  # else it is of no use to doubt what the member serves alone
            services.append([(member, member.local_health) for member in ready])
        for sides in services:
            for sub_connection, service in sides:
                self._judge(sub_connection, service, sides, now)
        doubted = tuple(member.quorum_health for member in ready if member.quorum_health.is_doubted)
        if doubted != self._doubted:
            self._doubted = doubted
            self._on_change()
        self._on_checked(ready, now)

    def _set_timer(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_closed:
            self.is_armed = seconds <= _INTERVAL
            self._timer = start_timer(seconds, self._check)

    def _judge(self, sub_connection: SubConnection, service: ServiceHealth, sides: Sequence[_Side], now: float) -> None:
        if service.is_calm(now):
            return  # the usual case, before anything is computed
        others = [side for side in sides if side[1] is not service]
        newest = max((other.newest_answered for _, other in others), default=-inf)
        if service.health is not Health.HEALTHY:
            if any(other.health is Health.HEALTHY for _, other in others):
                self._move_away(sub_connection, service, newest, now)
            return
        limit = silence_limit(self.p99_latency, service.in_flight, sub_connection.round_trip)
        finding = service.judge(now, limit, newest, is_alone=not others)
        if finding is Finding.ASK:
            self._ask(sub_connection, service, now)
            if newest <= now - limit / 2:
                self._ask_witness(others, now)
        elif finding is Finding.NOTHING:
            if newest < service.asked_at <= now - limit / 2:  # the witness may be silent too
                self._ask_witness(others, now)
        else:
            health, reason = service.verdict(finding, now)
            service.change(health, reason, now)
            self.on_changed(sub_connection, service)
            sub_connection.give_up(reason)

    def _move_away(self, sub_connection: SubConnection, service: ServiceHealth, newest: float, now: float) -> None:
        """Move what waits at an unhealthy member to a healthy one.

        That includes attempts that began before the member lost its leader, or while no other member was connected.
        """
        reason = f"{service.health.value}: {service.reason}"
        if service.in_flight and newest > service.since:
            sub_connection.give_up(reason)
        if now - service.since > _STREAMS_LEAVE_AFTER and service is sub_connection.quorum_health:
            sub_connection.leave_streams(reason)

    # Questions and probes.

    def _ask(self, sub_connection: SubConnection, service: ServiceHealth, now: float) -> None:
        """Put the question to a service."""
        if not self._is_probed(service):
            name, calls = sub_connection.endpoint_name, _calls_of(sub_connection, service)
            sub_connection.log.debug("endpoint %s: probing for %s", name, calls, extra={"endpoint": name})
            service.ask(now, QUESTION_PAUSE.wait(service.questions, self._random))
            self._start_probing(sub_connection, service)

    def _ask_witness(self, others: Iterable[_Side], now: float) -> None:
        """Put the question also to the healthy service that has answered last."""
        for sub_connection, service in sorted(others, key=lambda side: side[1].newest_answered, reverse=True):
            if service.health is Health.HEALTHY and service.may_be_asked(now):
                self._ask(sub_connection, service, now)
                return

    def _is_probed(self, service: ServiceHealth) -> bool:
        task = self._probes.get(service)
        return task is not None and not task.done()  # a task cancelled before its first step stays in the table

    def _start_probing(self, sub_connection: SubConnection, service: ServiceHealth) -> None:
        self.arm()
        if self._is_closed or self._is_probed(service):
            return
        work = self._keep_probing(sub_connection, service)
        self._probes[service] = start_background_task(work, name=f"etcd_aio probe {sub_connection.endpoint_name}")

    async def _keep_probing(self, sub_connection: SubConnection, service: ServiceHealth) -> None:
        """Send one probe, which may be a question, and more for as long as the service is unhealthy."""
        probes = 0
        try:
            while True:
                asked_at = service.asked_at
                try:
                    await probe(sub_connection, service is sub_connection.quorum_health)
                except Exception as error:  # a defect; without further probes the member would stay unhealthy for ever
                    endpoint = sub_connection.endpoint_name
                    text, fields = "endpoint %s: a probe failed: %s", {"endpoint": endpoint}
                    sub_connection.log.error(text, endpoint, type(error).__name__, extra=fields)  # noqa: TRY400
                service.question_over(asked_at)
                if not _is_worth_probing(sub_connection, service):
                    return
                backoff = LEARNER_BACKOFF if service.health is Health.LEARNER else PROBE_BACKOFF
                await asyncio.sleep(backoff.wait(probes, self._random))
                if not _is_worth_probing(sub_connection, service):
                    return
                probes += 1
        finally:
            self._probes.pop(service, None)


def _is_worth_probing(sub_connection: SubConnection, service: ServiceHealth) -> bool:
    """Whether the service is unhealthy, which an answer would end, and belongs to the current connection."""
    is_current = service is sub_connection.quorum_health or service is sub_connection.local_health
    is_restorable = service.health not in (Health.HEALTHY, Health.NOT_SERVING)
    return is_restorable and is_current and sub_connection.state is ConnectivityState.READY


def _is_healthy(sub_connection: SubConnection) -> bool:
    """Whether the member takes every attempt that another one does not serve."""
    return sub_connection.quorum_health.health is sub_connection.local_health.health is Health.HEALTHY


def _calls_of(sub_connection: SubConnection, service: ServiceHealth) -> str:
    return "linearizable calls" if service is sub_connection.quorum_health else "serializable reads"
