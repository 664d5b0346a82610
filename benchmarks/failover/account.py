"""Evaluates the calls and probes of a run: errors, slow calls, recovery, the outage of the servers. Pure.

All times are seconds on the clock of the run.
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
_LATE: Final = 0.02  # later than this, the load generator (or the client that shares its loop) has missed the slot


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        issued: when it was due; if the fault stops the load generator itself, when it began.
        late: how much later than that it began.
        wait: the time from `issued` to its end, so a late call counts as slow.
        outcome: "ok", or the name of the error.
        maybe_applied: of a failed mutation; None if the client has no such information.
        member: the member that answered; 0 if none did.
    """

    issued: float
    late: float
    wait: float
    outcome: str
    maybe_applied: bool | None = None
    member: int = 0

    @property
    def is_ok(self) -> bool:
        """Whether the call succeeded."""
        return self.outcome == "ok"

    @property
    def is_good(self) -> bool:
        """Whether the call succeeded in time, so that users noticed nothing."""
        return self.outcome == "ok" and self.wait <= SLOW

    @property
    def bad_at(self) -> float:
        """When the call became slow or failed: what happens after the healing must not count for the time before it."""
        return self.issued + min(self.wait, SLOW)


@dataclass(frozen=True, slots=True)
class Marks:
    """The times of the fault.

    Attributes:
        fault: just before the fault began.
        heal: just before it was ended.
    """

    fault: float
    heal: float


@dataclass(frozen=True, slots=True)
class Outage:
    """The outage of the servers, from probes of each member.

    Attributes:
        all_members: the time from the fault to the last moment without any answering member; 0 if there was none. No
            client can recover sooner.
        target: the time from the fault to the last moment at which the affected member was silent. From then on it
            returns errors, or refuses connections.
        up: the time from the healing to the first connection to a member; None if there was none.
        served: the time from the healing to the first answer of a member; None if there was none.
    """

    all_members: float
    target: float
    up: float | None
    served: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of one client.

    Attributes:
        calls: the number of calls.
        errors: the number of failed calls, by the name of the error.
        maybe_applied: the number of failed calls with `maybe_applied`; None if the client has no such information.
        recovery: the time from the fault to the start of the last call that failed or was slow before the healing.
        after_heal: the time from the healing to the start of the last call that failed or was slow after it.
        last_error: the time from the fault to the start of the last failed call; negative if before it, None if none.
        last_error_end: the time from the fault to the end of the last failed call.
        over_slow, over_very_slow: the number of calls that took longer, failed calls included.
        slowest: the longest wait.
        median_before, p99_before: of the calls before the fault.
        median_during, p99_during: of the calls during the fault.
        missed: calls before the fault that began too late, which the load generator caused.
        whole: the time from the healing until every member has answered a call; None if one never did.
        first_success: the time from the first member being up to the first successful call; None without an outage.
        cpu_during: CPU seconds per second of the fault, including the load generator.
        departures: how often a member's state in the client began to differ from its first state.
        back: the time from the healing until all members have their first state again; None if never.
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
        """The number of failed calls."""
        return sum(self.errors.values())


def calls_from(result: Mapping[str, object], *, is_generator_stopped: bool) -> list[Call]:
    """The calls of a driver's result, in the order of their starts.

    Args:
        result: what a driver has sent.
        is_generator_stopped: whether the fault stops the load generator, which then causes late calls.
    """
    outcomes, columns = result["outcomes"], [result[name] for name in ("slot", "late", "took", "outcome")]
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
        calls: all calls, sorted by `issued`.
        marks: the times of the fault.
        members: the number of members.
        up: when a member could be reached again; None without an outage.
        cpu: samples of (time, CPU seconds so far).
        states: (time, endpoint, state) of each change of an endpoint's state in the client.
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
    """Evaluate the probes. Each is a letter: o answered, r refused, s silent, u unreachable.

    Args:
        probes: the letters of each endpoint, one every `PROBE_EVERY` seconds from the start of the run.
        connects: (time, endpoint) of every connection of the prober.
        marks: when the fault was.
        targets: the endpoints of the affected members; none if the fault is of another kind.
    """
    slots = list(zip(*probes.values(), strict=True))
    under = range(_slot(marks.fault), min(_slot(marks.heal - SLOW), len(slots)))
    without_success = [number for number in under if "o" not in slots[number]]
    silent = [number for number in under if any(probes[target][number] == "s" for target in targets)]
    served = [number for number in range(_slot(marks.heal), len(slots)) if "o" in slots[number]]
    ups = [at for at, _ in connects if isinstance(at, float) and at >= marks.heal]
    return Outage(
        all_members=_since(without_success, marks.fault),
        target=_since(silent, marks.fault),
        up=min(ups) - marks.heal if ups else None,
        served=served[0] * PROBE_EVERY - marks.heal if served else None,
    )


def buckets(calls: Sequence[Call], seconds: float) -> dict[str, list[int]]:
    """The numbers of calls by start time, for the picture: all, good, failed."""
    count = round(seconds / BUCKET)
    found = {name: [0] * count for name in ("issued", "good", "failed")}
    for call in calls:
        place = min(max(int(call.issued / BUCKET), 0), count - 1)
        found["issued"][place] += 1
        found["good"][place] += call.is_good
        found["failed"][place] += not call.is_ok
    return found


def cpu_rate(samples: Sequence[Sequence[float]], begin: float, end: float) -> float:
    """CPU seconds per second between two moments; 0 without samples."""
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
