"""Health: what traffic says about one service of one member. Pure.

Knows: instants of attempts and answers, here and at the other members. Never knows: clocks, connections, RPCs.

Theory. A member offers two services, which fail apart: `quorum`, what needs the cluster (linearizable reads, writes,
watches, leases), and `local`, what it serves from its own store. A member that is cut off from its peers still offers
the second, and a learner never offers the first.

No answer is no evidence by itself: an election silences everybody. What counts is to be overtaken: attempts wait for
longer than `patience`, and another member has answered an attempt that began later. That tells a frozen, black-holed or
cut off member within `patience`, long before any deadline, and says nothing while nobody answers. An unanswered ping is
the same evidence where one caller makes one call at a time. Attempts that end by their deadlines, twice in a row, while
others answer, are too; and a member may say itself that it has no leader, or is a learner.

Bad health only means "preferred last": what looks bad is used when nothing looks better, and one answer restores it.
"""

from collections import deque
from collections.abc import Iterable
from enum import Enum
from math import inf
from typing import Final

from etcd_aio.errors import EtcdError, NoLeaderError, NotSupportedForLearnerError

_SHORTEST_PATIENCE: Final = 0.25  # seconds; a pause of the peer's collector or disk is not worth moving for
_LONGEST_PATIENCE: Final = 2.0  # by then the ping of a silent connection has decided
_PATIENCE_FACTOR: Final = 2.0  # times the 99th percentile: a short trouble of all must not hide a long one of one
_PATIENCE_EACH: Final = 0.001  # seconds for each attempt that waits: whoever got a burst has a queue, and no trouble
_FAILING_AFTER: Final = 2  # attempts in a row
_SAMPLES: Final = 128  # recent latencies, of each member


class Health(Enum):
    """What a member's service looks like."""

    HEALTHY = "healthy"
    SILENT = "silent"
    FAILING = "failing"
    NO_LEADER = "no leader"
    LEARNER = "learner"


class Service:
    """One service of one member: its traffic, and what follows from it.

    Attributes:
        health: what it looks like.
        reason: why, in words; empty while it is healthy.
        since: the instant of the last change.
        in_flight: attempts under way.
        silent_since: the instant since which attempts are under way and none was answered.
        newest_answered: when the youngest attempt began that was answered.
        timeouts: attempts in a row that ended by their deadlines.
        latencies: of recent answers, in seconds.
    """

    __slots__ = (
        "failing_since",
        "health",
        "in_flight",
        "latencies",
        "newest_answered",
        "reason",
        "silent_since",
        "since",
        "timeouts",
    )

    def __init__(self, now: float) -> None:
        self.health = Health.HEALTHY
        self.reason = ""
        self.since = now
        self.in_flight = 0
        self.silent_since = now
        self.newest_answered = -inf
        self.timeouts = 0
        self.failing_since = inf
        self.latencies: deque[float] = deque(maxlen=_SAMPLES)

    def begin(self, now: float) -> None:
        """An attempt begins."""
        if not self.in_flight:
            self.silent_since = now
        self.in_flight += 1

    def answered(self, began: float, now: float) -> bool:
        """An attempt was answered; returns whether that changed the health, since one answer restores."""
        self.in_flight -= 1
        self.silent_since = now
        if began > self.newest_answered:
            self.newest_answered = began
        self.latencies.append(now - began)
        self.timeouts = 0
        return self.health is not Health.HEALTHY and self.change(Health.HEALTHY, "", now)

    def heard(self, now: float) -> None:
        """An attempt was answered with a refusal: the member lives, but that restores nothing."""
        self.in_flight -= 1
        self.silent_since = now
        self.timeouts = 0

    def unanswered(self, began: float, *, is_timeout: bool) -> None:
        """An attempt ended without an answer; not by its deadline if it was cancelled, or the connection lost."""
        self.in_flight -= 1
        if is_timeout:
            self.failing_since = began if not self.timeouts else self.failing_since
            self.timeouts += 1

    def change(self, health: Health, reason: str, now: float) -> bool:
        """Note what it looks like now; returns whether that is news."""
        if health is self.health:
            return False
        self.health, self.reason, self.since = health, reason, now
        return True

    def reset(self, now: float) -> None:
        """Its connection is a new one: what the old one showed says nothing. Attempts under way there still end."""
        self.timeouts = 0
        self.silent_since = now
        self.change(Health.HEALTHY, "", now)

    def judge(self, now: float, slow: float, newest_elsewhere: float, ping_silence: float) -> tuple[Health, str]:
        """What it looks like by its traffic, and why.

        Args:
            now: the instant.
            slow: see `patience`.
            newest_elsewhere: when the youngest attempt began that another member has answered.
            ping_silence: seconds that a ping of its connection is unanswered.
        """
        waited = now - self.silent_since
        if self.in_flight:
            if waited >= patience(slow, self.in_flight) and newest_elsewhere > self.silent_since:
                return Health.SILENT, f"answered nothing for {waited:.2f} s while others did"
            if ping_silence >= patience(0.0, self.in_flight):  # it costs a living member next to no work
                return Health.SILENT, f"answered neither a ping nor anything else for {waited:.2f} s"
        if self.timeouts >= _FAILING_AFTER and newest_elsewhere > self.failing_since:
            return Health.FAILING, f"{self.timeouts} attempts in a row timed out while others were answered"
        return Health.HEALTHY, ""


def refused_health(error: EtcdError | None) -> Health | None:
    """What an error says of the member that answered with it; None if that is nothing."""
    if isinstance(error, NoLeaderError):
        return Health.NO_LEADER
    return Health.LEARNER if isinstance(error, NotSupportedForLearnerError) else None


def percentile_99(services: Iterable[Service]) -> float:
    """The 99th percentile of what recent answers took, in seconds; 0 before the first."""
    latencies = sorted(latency for service in services for latency in service.latencies)
    return latencies[len(latencies) * 99 // 100] if latencies else 0.0


def patience(slow: float, in_flight: int) -> float:
    """Seconds after which silence means something. An overloaded member gets more patience, not more attempts.

    Args:
        slow: the 99th percentile of what answers take.
        in_flight: how many attempts wait.
    """
    return min(max(_PATIENCE_FACTOR * slow, _SHORTEST_PATIENCE) + _PATIENCE_EACH * in_flight, _LONGEST_PATIENCE)
