"""Health verdicts: when a member counts as unhealthy, by the traffic of one connection. Pure.

Knows: instants of attempts and answers, here and at the other members. Never knows: clocks, connections, RPCs.

A member offers two services, which fail independently. `quorum` is everything that needs the cluster: linearizable
reads, writes, watches, leases. `local` is what the member serves from its own store: serializable reads. A member that
is cut off from its peers still offers the second, and a learner never offers the first.

A missing answer alone is no evidence: an election silences all members, and some requests take long. So suspicion leads
to a question, a cheap read, and only a question without an answer is a verdict:

    state     evidence                                                                            next state
    --------  ----------------------------------------------------------------------------------  ----------
    healthy   attempts have waited for half of the silence limit, and another member has answered
              an attempt that began later; or they have waited for all of it; or two in a row
              failed while another member answered, or no other is connected                      asked
    asked     any answer                                                                          healthy
    asked     the question failed, or has waited for half of the silence limit, and another
              member has answered an attempt that began no earlier than the question              unhealthy
    asked     the question failed, and no other member answers                                    doubted
    doubted   as asked: the question is put again and again                                       as asked
    any       the member itself says that it has no leader, or is a learner                       unhealthy
    unhealthy any answer but such a refusal                                                       healthy
    any       its health service says that it does not serve, as before it defragments            not serving
    not       its health service says that it serves, or says nothing any more                    healthy
    serving

So a frozen or unreachable member is found within `silence_limit`, long before any deadline. No member is judged while
no other member answers: without another connection to compare with, it can only be doubted. That has no effect on the
picks, but on what is connected: an election takes less time than the question to fail, so another connection is worth
its while, to another endpoint or to the same (`connection_set`, `redial_schedule`).

A slow request beside quick ones harms neither itself nor its member: an answered question
closes the suspicion about everything that began before it. Later evidence leads to a new question, but questions come
at growing distances, or with every sixteenth request: slow requests cost a member few questions, however many there
are, and a busy member that freezes after a question is found as soon as any other.

Unhealthy means "preferred last": such a member is used when no healthy one is left, and one answer restores it. Not
serving is unhealthy too, but the member's own word ends it, and no answer that was on its way: so it is not probed.
"""

from collections import deque
from collections.abc import Iterable
from enum import Enum
from math import inf
from typing import Final

from etcd_aio import errors
from etcd_aio.errors import (
    AttemptFailure,
    Delivery,
    EtcdError,
    NoLeaderError,
    NotSupportedForLearnerError,
    StatusCode,
)
from etcd_aio.types import Health

_SHORTEST_LIMIT: Final = 0.25  # seconds; a pause of the member's garbage collector or disk is not worth moving for
_LONGEST_LIMIT: Final = 2.0  # seconds; by then a silent connection is pinged
_LATENCY_FACTOR: Final = 2.0  # times the 99th percentile: short delays of all must not hide a long one of one member
_LIMIT_PER_ATTEMPT: Final = 0.001  # seconds for each attempt that waits: a burst makes a queue, which is normal
_ROUND_TRIPS: Final = 2.0  # so that half of the limit is longer than a round trip
_FAILING_AFTER: Final = 2  # attempts in a row
_REQUESTS_PER_QUESTION: Final = 16  # a question for so many requests is no load, however soon after the last one
_CALM: Final = 5.0  # seconds without a question, after which the pauses start from the shortest again
_SAMPLES: Final = 128  # recent latencies of each service
_NOT_SERVING_REASON: Final = "the member says that it does not serve, as while it defragments"
_NO_ANSWER_CODES: Final = frozenset({StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED})


class Finding(Enum):
    """The consequence for a service that is healthy so far."""

    NOTHING = "nothing"
    ASK = "ask the question"
    SILENT = "the question was not answered"
    FAILING = "the question failed"


class ServiceHealth:
    """The traffic of one service of one member over one connection, and the health that follows from it.

    Attributes:
        health: the current health.
        reason: the reason, in words; empty while healthy.
        since: the instant of the last change.
        in_flight: attempts under way.
        silent_since: the instant since when attempts are under way and none was answered.
        newest_answered: when the latest of the answered attempts began.
        failures: attempts in a row that failed without an answer.
        failing_since: when the first of them began.
        asked_at: when the open question was asked; infinity if no question is open.
        unserved_since: the instant since when it has not served although it was asked: it is unhealthy, or doubted;
            infinity if neither.
        questions: questions in a row, without a calm time in between.
        latencies: of recent answers, in seconds.
    """

    def __init__(self, now: float) -> None:
        self.health = Health.HEALTHY
        self.reason = ""
        self.since = now
        self.in_flight = 0
        self.silent_since = now
        self.newest_answered = -inf
        self.failures = 0
        self.failing_since = inf
        self.asked_at = inf
        self.unserved_since = inf
        self.questions = 0
        self._begun = 0  # attempts since the last question
        self._last_asked = -inf
        self._not_before = -inf
        self._has_question_failed = False
        self.latencies: deque[float] = deque(maxlen=_SAMPLES)

    # Traffic.

    def begin(self, now: float) -> None:
        """An attempt begins."""
        if not self.in_flight:
            self.silent_since = now
        self.in_flight += 1
        self._begun += 1

    def answered(self, began: float, now: float) -> bool:
        """An attempt was answered; returns whether that changed the health, since one answer restores."""
        self.in_flight -= 1
        self.silent_since = now
        self.failures = 0
        self.asked_at = inf
        if began > self.newest_answered:
            self.newest_answered = began
        self.latencies.append(now - began)
        if self.health is Health.HEALTHY:
            self.unserved_since = inf
            return False
        return self.health is not Health.NOT_SERVING and self.change(Health.HEALTHY, "", now)

    def refused(self, now: float) -> None:
        """An attempt was answered with a refusal of the whole service: the member is alive, but is not restored."""
        self.in_flight -= 1
        self.silent_since = now
        self.failures = 0
        self.asked_at = inf

    def failed(self, began: float) -> None:
        """An attempt ended without an answer, by its deadline or as unavailable, which counts against the member."""
        self.in_flight -= 1
        self.failing_since = began if not self.failures else self.failing_since
        self.failures += 1

    def dropped(self) -> None:
        """An attempt ended without an answer, which is no evidence: it was cancelled, or moved."""
        self.in_flight -= 1

    # Questions.

    def ask(self, now: float, pause: float) -> None:
        """The question is asked now. The next one waits for `pause` seconds, or until many more attempts have begun."""
        self.questions = self.questions + 1 if now - self._last_asked <= _CALM else 1
        self.asked_at = self._last_asked = now
        self._not_before = now + pause
        self._begun = 0
        self._has_question_failed = False

    def question_over(self, asked_at: float) -> None:
        """The attempt that was the question is over; if the question is still open, it failed."""
        self._has_question_failed = self._has_question_failed or self.asked_at == asked_at

    def may_be_asked(self, now: float) -> bool:
        """Whether no question is open, and the pause after the last one is over."""
        return self.asked_at == inf and (now >= self._not_before or self._begun > _REQUESTS_PER_QUESTION)

    @property
    def is_at_rest(self) -> bool:
        """Whether its health cannot change by time alone."""
        return not self.in_flight and self.asked_at == inf and self.unserved_since == inf

    @property
    def is_doubted(self) -> bool:
        """Whether the service is healthy only because no other member answers that it could be compared with."""
        return self.health is Health.HEALTHY and self.unserved_since != inf

    def is_calm(self, now: float) -> bool:
        """Whether its traffic gives no reason to judge it."""
        if self.failures or self.asked_at != inf or self.unserved_since != inf:
            return False
        return not self.in_flight or now - self.silent_since < _SHORTEST_LIMIT / 2

    def judge(self, now: float, limit: float, newest_elsewhere: float, *, is_alone: bool = False) -> Finding:
        """Return the consequence for a healthy service.

        Args:
            now: the instant.
            limit: its `silence_limit`.
            newest_elsewhere: when the latest of the attempts began that other members have answered.
            is_alone: no other member is connected.
        """
        if self.asked_at != inf:
            if newest_elsewhere >= self.asked_at:
                if self._has_question_failed:
                    return Finding.FAILING
                return Finding.SILENT if now - self.asked_at >= limit / 2 else Finding.NOTHING
            if not self._has_question_failed or now - self.asked_at < limit / 2:
                return Finding.NOTHING
            self.unserved_since = min(self.unserved_since, self.asked_at)
            self.asked_at = inf  # no verdict: the other members do not answer either
        if not self.may_be_asked(now):
            return Finding.NOTHING
        waited = now - self.silent_since if self.in_flight else 0.0
        is_overtaken = waited >= limit / 2 and newest_elsewhere > self.silent_since
        is_failing = self.failures >= _FAILING_AFTER and (is_alone or newest_elsewhere > self.failing_since)
        is_suspect = self.is_doubted or is_overtaken or is_failing or waited >= limit
        return Finding.ASK if is_suspect else Finding.NOTHING

    def verdict(self, finding: Finding, now: float) -> tuple[Health, str]:
        """The health by such a finding, and the reason, in words."""
        if finding is Finding.SILENT:
            return Health.SILENT, f"no answer for {now - self.silent_since:.2f} s while other members answered"
        return Health.FAILING, f"{self.failures} attempts in a row failed while other members answered"

    def told(self, is_serving: bool, now: float) -> bool:
        """The member says whether it serves; returns whether that changed the health."""
        if not is_serving:
            return self.change(Health.NOT_SERVING, _NOT_SERVING_REASON, now)
        return self.health is Health.NOT_SERVING and self.change(Health.HEALTHY, "", now)

    def change(self, health: Health, reason: str, now: float) -> bool:
        """Set the health; returns whether it has changed."""
        if health is self.health:
            return False
        self.health, self.reason, self.since = health, reason, now
        is_healthy = health is Health.HEALTHY
        self.unserved_since = inf if is_healthy else min(self.unserved_since, self.asked_at, now)
        return True


def refused_health(error: EtcdError | None) -> Health | None:
    """The health that an error reveals of the member that answered with it; None if it reveals nothing."""
    if isinstance(error, NoLeaderError):
        return Health.NO_LEADER
    return Health.LEARNER if isinstance(error, NotSupportedForLearnerError) else None


def has_served(failure: AttemptFailure) -> bool:
    """Whether a failed attempt was answered by the service itself, which refuses only this request."""
    is_answer = failure.delivery is Delivery.ANSWERED and failure.code not in _NO_ANSWER_CODES
    return is_answer and refused_health(errors.server_error(failure.code, failure.message)) is None


def percentile_99(services: Iterable[ServiceHealth]) -> float:
    """The 99th percentile of recent latencies, in seconds; 0 before the first answer."""
    latencies = sorted(latency for service in services for latency in service.latencies)
    return latencies[len(latencies) * 99 // 100] if latencies else 0.0


def silence_limit(p99_latency: float, in_flight: int, round_trip: float) -> float:
    """Seconds of silence after which a member is suspect. A busy member gets more time, not more attempts.

    Args:
        p99_latency: the 99th percentile of recent latencies, in seconds.
        in_flight: the number of attempts that wait.
        round_trip: the shortest known round-trip time, in seconds.
    """
    usual = max(_LATENCY_FACTOR * p99_latency, _SHORTEST_LIMIT) + _LIMIT_PER_ATTEMPT * in_flight
    return max(min(usual, _LONGEST_LIMIT), _SHORTEST_LIMIT + _ROUND_TRIPS * round_trip)
