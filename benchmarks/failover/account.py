"""What a run's calls and probes come to: errors, slowness, recovery, the servers' own outage. Pure.

Knows: the definitions. Never knows: clients, processes, tables. Seconds throughout, on the run's own clock.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final

SLOW: Final = 0.2
"""Seconds beyond which users see a call as slow."""

VERY_SLOW: Final = 1.0
PROBE_EVERY: Final = 0.01
BUCKET: Final = 0.1
_LATE: Final = 0.02  # beyond it the load generator, or the client that shares its loop, has missed the slot


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        issued: when it was due, or when it began where the load generator itself was stopped on purpose.
        late: how much later than that it began.
        wait: from `issued` to its end, so what was late counts as slow.
        outcome: "ok", or the name of the error.
        maybe_applied: what the client said about a failed mutation; None if it says nothing.
        member: who answered; 0 if nobody did.
    """

    issued: float
    late: float
    wait: float
    outcome: str
    maybe_applied: bool | None = None
    member: int = 0

    @property
    def is_ok(self) -> bool:
        """Whether it returned what was asked for."""
        return self.outcome == "ok"

    @property
    def is_good(self) -> bool:
        """Whether a user saw nothing: an answer, and in time."""
        return self.outcome == "ok" and self.wait <= SLOW

    @property
    def bad_at(self) -> float:
        """When it ceased to be good: what follows on the healing must not count against the time before it."""
        return self.issued + min(self.wait, SLOW)


@dataclass(frozen=True, slots=True)
class Marks:
    """What happened when.

    Attributes:
        fault: just before the fault began.
        heal: just before it was taken back.
    """

    fault: float
    heal: float


@dataclass(frozen=True, slots=True)
class Outage:
    """What the servers themselves could do, by probes of each member.

    Attributes:
        all_members: how long after the fault no member answered for the last time, 0 if one always did. No client can
            recover sooner.
        target: how long after the fault the member it was done to was silent for the last time: from then on it says
            that it cannot, or refuses connections.
        up: how long after the healing a member was connected to for the first time; None if none was.
        served: how long after the healing a member answered for the first time; None if none did.
    """

    all_members: float
    target: float
    up: float | None
    served: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """What one client's calls came to.

    Attributes:
        calls: how many were made.
        errors: how many failed, by the name of the error.
        maybe_applied: how many of these said so; None if the client never does.
        recovery: how long after the fault the last call was issued that failed or was slow before the healing.
        after_heal: how long after the healing the last one was issued that failed or was slow from then on.
        last_error: when the last failed call was issued, after the fault; negative before it, None if none failed.
        last_error_end: when the last failure was told, after the fault.
        over_slow, over_very_slow: how many calls took longer than that, failed ones too.
        slowest: the longest wait.
        median_before, p99_before: of all calls before the fault.
        median_during, p99_during: of all calls under the fault.
        missed: calls that began too late, before the fault: these are the load generator's.
        whole: how long after the healing the last of the members answered its first call; None if one never did.
        first_success: how long after a member was up the first call came back; None without an outage.
        cpu_during: CPU seconds for each second of the fault, the load generator's included.
        departures: how often the client began to think of a member in another way than at first, as far as it says.
        back: how long after the healing it thought of all of them as at first; None if it never did again.
    """

    calls: int
    errors: Mapping[str, int]
    maybe_applied: int | None
    recovery: float
    after_heal: float
    last_error: float | None
    last_error_end: float | None
    over_slow: int
    over_very_slow: int
    slowest: float
    median_before: float
    p99_before: float
    median_during: float
    p99_during: float
    missed: int
    whole: float | None
    first_success: float | None
    cpu_during: float
    departures: int = 0
    back: float | None = 0.0

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(self.errors.values())


def calls_from(told: Mapping[str, object], *, is_generator_stopped: bool) -> list[Call]:
    """The calls as a driver tells them, in the order of their beginnings.

    Args:
        told: the answer of a driver.
        is_generator_stopped: the fault stops the load generator itself, so being late is not the client's.
    """
    outcomes, columns = told["outcomes"], [told[name] for name in ("slot", "late", "took", "outcome")]
    assert isinstance(outcomes, list)
    calls = []
    for slot, late, took, index in zip(*columns, strict=True):
        name, maybe_applied, member = outcomes[index]
        issued, wait = (slot + late, took) if is_generator_stopped else (slot, late + took)
        calls.append(Call(issued, late, wait, name, maybe_applied, member))
    return sorted(calls, key=lambda call: call.issued)


def summary(
    calls: Sequence[Call],
    marks: Marks,
    *,
    members: int = 3,
    up: float | None = None,
    cpu: Sequence[Sequence[float]] = (),
    states: Sequence[Sequence[object]] = (),
) -> Summary:
    """Sum up one client's calls.

    Args:
        calls: all of them, by `issued`.
        marks: when the fault was.
        members: how many there are.
        up: when, on the run's clock, a member could be reached again; None without an outage.
        cpu: (time, CPU seconds so far), now and then.
        states: (time, endpoint, state) of each change of what the client thinks of an endpoint.
    """
    before = [call.wait for call in calls if call.issued + SLOW < marks.fault]
    during = [call.wait for call in calls if marks.fault <= call.issued < marks.heal]
    bad = [call for call in calls if not call.is_good]
    failures = [call for call in bad if not call.is_ok]
    says = [call.maybe_applied for call in failures if call.maybe_applied is not None]
    departures, back = _absences(states, marks.heal)
    after_up = [] if up is None else [call.issued + call.wait - up for call in calls if call.is_ok]
    return Summary(
        calls=len(calls),
        errors=dict(Counter(call.outcome for call in failures).most_common()),
        maybe_applied=sum(says) if says or not failures else None,
        recovery=_last([call.issued for call in bad if call.bad_at <= marks.heal], marks.fault),
        after_heal=_last([call.issued for call in bad if call.bad_at > marks.heal], marks.heal),
        last_error=max((call.issued - marks.fault for call in failures), default=None),
        last_error_end=max((call.issued + call.wait - marks.fault for call in failures), default=None),
        over_slow=sum(call.wait > SLOW for call in calls),
        over_very_slow=sum(call.wait > VERY_SLOW for call in calls),
        slowest=max((call.wait for call in calls), default=0.0),
        median_before=_median(before),
        p99_before=_p99(before),
        median_during=_median(during),
        p99_during=_p99(during),
        missed=sum(call.late > _LATE for call in calls if call.issued < marks.fault),
        whole=_whole(calls, marks.heal, members),
        first_success=min((seconds for seconds in after_up if seconds > 0), default=None),
        cpu_during=cpu_rate(cpu, marks.fault, marks.heal),
        departures=departures,
        back=back,
    )


def outage(
    probes: Mapping[str, str], connects: Sequence[Sequence[object]], marks: Marks, targets: Sequence[str]
) -> Outage:
    """What the probes say; a letter for each: o answered, r refused, s silent, u unreachable.

    Args:
        probes: the letters of each endpoint, one every `PROBE_EVERY` seconds from the start of the run.
        connects: (time, endpoint) of every connection that the prober made.
        marks: when the fault was.
        targets: the endpoints of the members it was done to; none for a fault of another kind.
    """
    slots = list(zip(*probes.values(), strict=True))
    under = range(_slot(marks.fault), min(_slot(marks.heal - SLOW), len(slots)))
    nobody = [number for number in under if "o" not in slots[number]]
    silent = [number for number in under if any(probes[target][number] == "s" for target in targets)]
    served = [number for number in range(_slot(marks.heal), len(slots)) if "o" in slots[number]]
    ups = [at for at, _ in connects if isinstance(at, float) and at >= marks.heal]
    return Outage(
        all_members=_since(nobody, marks.fault),
        target=_since(silent, marks.fault),
        up=min(ups) - marks.heal if ups else None,
        served=served[0] * PROBE_EVERY - marks.heal if served else None,
    )


def buckets(calls: Sequence[Call], seconds: float) -> dict[str, list[int]]:
    """Calls by when they were issued, for a picture: all, good ones, failed ones."""
    count = round(seconds / BUCKET)
    found = {name: [0] * count for name in ("issued", "good", "failed")}
    for call in calls:
        place = min(max(int(call.issued / BUCKET), 0), count - 1)
        found["issued"][place] += 1
        found["good"][place] += call.is_good
        found["failed"][place] += not call.is_ok
    return found


def cpu_rate(samples: Sequence[Sequence[float]], begin: float, end: float) -> float:
    """CPU seconds for each second between two moments, as far as there are samples; 0 without."""
    inside = [(at, spent) for at, spent in samples if begin <= at <= end]
    if len(inside) < 2:
        return 0.0
    (first, spent_first), (last, spent_last) = inside[0], inside[-1]
    return (spent_last - spent_first) / (last - first)


def _last(moments: Sequence[float], origin: float) -> float:
    return max(0.0, max(moments, default=0.0) - origin)


def _whole(calls: Sequence[Call], heal: float, members: int) -> float | None:
    first: dict[int, float] = {}
    for call in calls:
        if call.member and call.issued >= heal:
            ended = call.issued + call.wait - heal
            first[call.member] = min(ended, first.get(call.member, ended))
    return max(first.values()) if len(first) >= members else None


def _absences(states: Sequence[Sequence[object]], heal: float) -> tuple[int, float | None]:
    first: dict[object, object] = {}
    away: set[object] = set()
    departures, back = 0, 0.0
    for at, endpoint, state in states:
        assert isinstance(at, float | int)
        if state != first.setdefault(endpoint, state):
            departures += endpoint not in away
            away.add(endpoint)
        elif endpoint in away:
            away.remove(endpoint)
            back = max(back, at - heal)
    return departures, None if away else back


def _slot(moment: float) -> int:
    return max(0, int(moment / PROBE_EVERY) + 1)


def _since(numbers: Sequence[int], fault: float) -> float:
    return numbers[-1] * PROBE_EVERY - fault if numbers else 0.0


def _median(numbers: Sequence[float]) -> float:
    return median(numbers) if numbers else 0.0


def _p99(numbers: Sequence[float]) -> float:
    return quantiles(numbers, n=100)[98] if len(numbers) > 1 else 0.0
