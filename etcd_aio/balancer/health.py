"""Health: what traffic says about one service of one member, over one connection. Pure.

Knows: instants of attempts and answers, here and at the other members. Never knows: clocks, connections, RPCs.

Theory. A member offers two services, which fail apart: `quorum`, what needs the cluster (linearizable reads, writes,
watches, leases), and `local`, what it serves from its own store. A member that is cut off from its peers still offers
the second, and a learner never offers the first.

No answer is no evidence by itself: an election silences all members, and some requests take long. So suspicion leads to
a question, a read that costs next to nothing, and only a question without an answer is a verdict:

    it is     what is seen                                                                        it becomes
    --------  ----------------------------------------------------------------------------------  ----------
    healthy   attempts wait for half of the patience, and another member has answered one that
              began later; or they wait for all of it; or two in a row failed while another
              member answered                                                                     asked
    asked     any answer                                                                          healthy
    asked     the question failed, or waits for half of the patience, and another member has
              answered something that began no earlier than the question                          bad
    asked     the question failed, and no other member answers                                    healthy
    any       the member says itself that it has no leader, or is a learner                       bad
    bad       any answer but such a refusal                                                       healthy

So a frozen, black-holed or cut off member is found within `patience`, long before any deadline; nothing is judged while
no member answers; and a slow request that waits beside quick ones harms neither itself nor its member: an answered
question speaks for everything that began before it. Later evidence leads to a new question, but questions come at
growing distances, or with every sixteenth request: slow ones cost a member few questions, however many there are, and a
busy member that freezes after a question is found as soon as any other.

Bad health only means "preferred last": what looks bad is used when nothing looks better, and one answer restores it.
"""

from collections import deque
from collections.abc import Iterable
from enum import Enum
from math import inf
from typing import Final

from etcd_aio.errors import EtcdError, NoLeaderError, NotSupportedForLearnerError

_SHORTEST_PATIENCE: Final = 0.25  # seconds; a pause of the peer's collector or disk is not worth moving for
_LONGEST_PATIENCE: Final = 2.0  # by then a silent connection is pinged
_PATIENCE_FACTOR: Final = 2.0  # times the 99th percentile: a short trouble of all must not hide a long one of one
_PATIENCE_EACH: Final = 0.001  # seconds for each attempt that waits: a burst makes a queue, which is no trouble
_ROUND_TRIPS: Final = 2.0  # so that half of the patience is longer than a round trip
_FAILING_AFTER: Final = 2  # attempts in a row
_REQUESTS_A_QUESTION: Final = 16  # then it is no load, however short its distance from the last one
_CALM: Final = 5.0  # seconds without a question after which the next one comes as soon as the first did
_SAMPLES: Final = 128  # recent latencies, of each member


class Health(Enum):
    """What a member's service looks like."""

    HEALTHY = "healthy"
    SILENT = "silent"
    FAILING = "failing"
    NO_LEADER = "no leader"
    LEARNER = "learner"
    NOT_CONNECTED = "not connected"  # only in statistics: there is no connection that could tell


class Finding(Enum):
    """What is to be done about a service that looks healthy."""

    NOTHING = "nothing"
    ASK = "ask it the question"
    SILENT = "it did not answer the question"
    FAILING = "it failed the question"


class Service:
    """One service of one member: its traffic over one connection, and what follows from it.

    Attributes:
        health: what it looks like.
        reason: why, in words; empty while it is healthy.
        since: the instant of the last change.
        in_flight: attempts under way.
        silent_since: the instant since which attempts are under way and none was answered.
        newest_answered: when the youngest attempt began that was answered.
        failures: attempts in a row that failed without an answer.
        failing_since: when the first of them began.
        asked_at: when the question was asked that is open; infinity if none is.
        questions: how many were asked in a row, without a calm in between.
        latencies: of recent answers, in seconds.
    """

    __slots__ = (
        "_begun",
        "_has_question_failed",
        "_last_asked",
        "_not_before",
        "asked_at",
        "failing_since",
        "failures",
        "health",
        "in_flight",
        "latencies",
        "newest_answered",
        "questions",
        "reason",
        "silent_since",
        "since",
    )

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
        self.questions = 0
        self._begun = 0  # attempts since the last question
        self._last_asked = -inf
        self._not_before = -inf
        self._has_question_failed = False
        self.latencies: deque[float] = deque(maxlen=_SAMPLES)

    # Its traffic.

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
        return self.health is not Health.HEALTHY and self.change(Health.HEALTHY, "", now)

    def refused(self, now: float) -> None:
        """An attempt was answered with a refusal of the whole service: the member lives, but that restores nothing."""
        self.in_flight -= 1
        self.silent_since = now
        self.failures = 0
        self.asked_at = inf

    def failed(self, began: float) -> None:
        """An attempt ended without an answer, and the member is to blame: by its deadline, or as unavailable."""
        self.in_flight -= 1
        self.failing_since = began if not self.failures else self.failing_since
        self.failures += 1

    def dropped(self) -> None:
        """An attempt ended without an answer, and that says nothing of the member: it was cancelled, or moved."""
        self.in_flight -= 1

    # The question.

    def ask(self, now: float, pause: float) -> None:
        """The question is asked now, and not again for `pause` seconds, or until many more attempts have begun."""
        self.questions = self.questions + 1 if now - self._last_asked <= _CALM else 1
        self.asked_at = self._last_asked = now
        self._not_before = now + pause
        self._begun = 0
        self._has_question_failed = False

    def question_over(self, asked_at: float) -> None:
        """The attempt is over that was the question; without an answer, if that question is still open."""
        self._has_question_failed = self._has_question_failed or self.asked_at == asked_at

    def may_be_asked(self, now: float) -> bool:
        """Whether no question is open, and enough has happened since the last one."""
        return self.asked_at == inf and (now >= self._not_before or self._begun > _REQUESTS_A_QUESTION)

    @property
    def is_at_rest(self) -> bool:
        """Whether time alone shows nothing about it."""
        return not self.in_flight and self.asked_at == inf and self.health is Health.HEALTHY

    def is_calm(self, now: float) -> bool:
        """Whether nothing can follow from its traffic."""
        if self.failures or self.asked_at != inf or self.health is not Health.HEALTHY:
            return False
        return not self.in_flight or now - self.silent_since < _SHORTEST_PATIENCE / 2

    def judge(self, now: float, limit: float, newest_elsewhere: float) -> Finding:
        """What is to be done about a healthy service.

        Args:
            now: the instant.
            limit: its patience, in seconds.
            newest_elsewhere: when the youngest attempt began that another member has answered.
        """
        if self.asked_at != inf:
            if newest_elsewhere >= self.asked_at:
                if self._has_question_failed:
                    return Finding.FAILING
                return Finding.SILENT if now - self.asked_at >= limit / 2 else Finding.NOTHING
            if not self._has_question_failed or now - self.asked_at < limit / 2:
                return Finding.NOTHING
            self.asked_at = inf  # nothing follows from it: the other members do not answer either
        if not self.may_be_asked(now):
            return Finding.NOTHING
        waited = now - self.silent_since if self.in_flight else 0.0
        is_overtaken = waited >= limit / 2 and newest_elsewhere > self.silent_since
        is_failing = self.failures >= _FAILING_AFTER and newest_elsewhere > self.failing_since
        return Finding.ASK if is_overtaken or waited >= limit or is_failing else Finding.NOTHING

    def verdict(self, finding: Finding, now: float) -> tuple[Health, str]:
        """What it looks like by such a finding, and why, in words."""
        if finding is Finding.SILENT:
            return Health.SILENT, f"no answer for {now - self.silent_since:.2f} s while other members answered"
        return Health.FAILING, f"{self.failures} attempts in a row failed while other members answered"

    def change(self, health: Health, reason: str, now: float) -> bool:
        """Note what it looks like now; returns whether that is news."""
        if health is self.health:
            return False
        self.health, self.reason, self.since = health, reason, now
        return True


def refused_health(error: EtcdError | None) -> Health | None:
    """What an error says of the member that answered with it; None if that is nothing."""
    if isinstance(error, NoLeaderError):
        return Health.NO_LEADER
    return Health.LEARNER if isinstance(error, NotSupportedForLearnerError) else None


def percentile_99(services: Iterable[Service]) -> float:
    """The 99th percentile of what recent answers took, in seconds; 0 before the first."""
    latencies = sorted(latency for service in services for latency in service.latencies)
    return latencies[len(latencies) * 99 // 100] if latencies else 0.0


def patience(slow: float, in_flight: int, round_trip: float) -> float:
    """Seconds after which silence means something. An overloaded member gets more patience, not more attempts.

    Args:
        slow: the 99th percentile of what answers take.
        in_flight: how many attempts wait.
        round_trip: the shortest that is known between this side and the member.
    """
    usual = max(_PATIENCE_FACTOR * slow, _SHORTEST_PATIENCE) + _PATIENCE_EACH * in_flight
    return max(min(usual, _LONGEST_PATIENCE), _SHORTEST_PATIENCE + _ROUND_TRIPS * round_trip)
