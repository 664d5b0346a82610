"""What clients say of themselves, held against the history of the store, and against each other. Pure.

Bodies of different processes are compared by the machine's clock, which all of them share: the promise that a body has
ended before the next one begins is one about time. The time in which a process stood still, or its event loop did, does
not count: it learns of a loss when it goes on.
"""

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from tests.faults.ownership import Violation, is_writer
from tests.faults.store import Change, Life, Lines, Place

SHORTEST: Final = 0.03
"""Seconds: shorter standstills are not logged."""

TOLERANCE: Final = 0.1
"""Seconds: shorter overlaps prove nothing. A body needs a moment to end, and some standstills are not logged."""

UNWATCHED: Final = 0.6
"""Seconds: a block watches its own key when it has lasted for 0.5 s."""

Leader: TypeAlias = tuple[str, int, str]
"""The key of a leader, its create_revision and its value."""


@dataclass(frozen=True, slots=True)
class Body:
    """The time in which a client believed that it owned something; `ended` is infinite if nothing tells the end."""

    claim: str
    kind: str
    name: str
    key: str
    token: int
    process: str
    began: float
    ended: float
    permits: int = 1
    limit: int = 1


@dataclass(frozen=True, slots=True)
class Standstill:
    """A time in which a process did nothing, or its event loop did."""

    process: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Counted:
    """One increment by exactly-once: its id, what came out, and the revision if it was applied."""

    counter: str
    operation: str
    outcome: str
    revision: int = 0


def overlapping(
    bodies: Iterable[Body], standstills: Sequence[Standstill], meddled: Container[str] = ()
) -> Iterator[Violation]:
    """Bodies that ran at the same time, and must not.

    Args:
        bodies: all of them.
        standstills: of all processes.
        meddled: the keys that an operator has deleted while they were held: a body learns of that a while later.
    """
    lines: dict[tuple[str, str], list[Body]] = {}
    for body in bodies:
        lines.setdefault((body.kind, body.name), []).append(body)
    still: dict[str, list[Standstill]] = {}
    for standstill in standstills:
        still.setdefault(standstill.process, []).append(standstill)
    for line in lines.values():
        inside: list[Body] = []
        for body in sorted(line, key=lambda each: each.began):
            inside = [other for other in inside if other.ended > body.began]
            beside = {other: _ran(other, body.began, body.ended, still.get(other.process, ())) for other in inside}
            for other, seconds in beside.items():
                if _exclude(body, other) and seconds > _tolerance(other, meddled):
                    yield Violation("bodies overlap", f"{other.claim} and {body.claim} for {seconds:.3f} s")
            lasting = [other for other, seconds in beside.items() if seconds > _tolerance(other, meddled)]
            inside.append(body)
            if body.kind == "semaphore" and sum(each.permits for each in (*lasting, body)) > body.limit:
                holders = ", ".join(f"{other.claim} for {beside[other]:.3f} s" for other in lasting)
                yield Violation("bodies overlap", f"of {body.limit} permits of {body.name}: {body.claim} and {holders}")


def keys_of(leases: Container[int], changes: Iterable[Change]) -> set[str]:
    """The keys that had one of these leases, whose id is the end of the key."""
    return {change.key for change in changes if _lease_of(change.key) in leases}


def _lease_of(key: str) -> int:
    try:
        return int(key.rpartition("/")[2], 16)
    except ValueError:
        return 0


def _tolerance(body: Body, meddled: Container[str]) -> float:
    return TOLERANCE + (UNWATCHED if body.key in meddled else 0.0)


def _ran(body: Body, began: float, ended: float, standstills: Iterable[Standstill]) -> float:
    """The seconds that a body ran from `began` to `ended`: without the time in which its process stood still."""
    end = min(body.ended, ended)
    ran = end - began
    for standstill in standstills:
        ran -= max(0.0, min(end, standstill.ended) - max(began, standstill.began))
    return ran


def unowned(bodies: Iterable[Body], owned: Container[tuple[str, int]]) -> Iterator[Violation]:
    """Bodies that began although their key owned its line at no revision."""
    for body in bodies:
        if (body.key, body.token) not in owned:
            yield Violation("owned nothing", f"{body.claim}: {body.key} of {body.token}")


def _exclude(one: Body, other: Body) -> bool:
    if one.kind == "semaphore":
        return False
    return one.kind != "rwlock" or is_writer(one.key) or is_writer(other.key)


def miswritten(
    writes: Mapping[str, int], acknowledged: Mapping[str, int], refused: Iterable[str]
) -> Iterator[Violation]:
    """Fenced writes whose outcome was told wrongly.

    Args:
        writes: the records in the store, with their revisions.
        acknowledged: those that were answered, with the revisions that the answers named.
        refused: those that ended with an error which says that they were not applied.
    """
    for text, revision in acknowledged.items():
        if writes.get(text) != revision:
            yield Violation("acknowledged, but not written", f"{text} at {revision}, written at {writes.get(text)}")
    for text in refused:
        if text in writes:
            yield Violation("refused, but written", f"{text} at {writes[text]}")


def leaders(changes: Iterable[Change], name: str) -> list[Leader | None]:
    """Every leader of an election in turn, and None where there was none: the oldest key of the line."""
    lines = Lines()
    found: list[Leader | None] = []
    alive = lines.of("election", name)
    own = (change for change in changes if Place.of(change.key).line == ("election", name))
    for revision in _revisions(own):
        for change in revision:
            lines.apply(change)
        oldest: Life | None = next(iter(alive.values()), None)
        told = None if oldest is None else (oldest.key, oldest.created, oldest.value)
        if not found or found[-1] != told:
            found.append(told)
    return found


def _revisions(changes: Iterable[Change]) -> Iterator[list[Change]]:
    batch: list[Change] = []
    for change in changes:
        if batch and batch[-1].revision != change.revision:
            yield batch
            batch = []
        batch.append(change)
    if batch:
        yield batch


def misobserved(
    told: Sequence[Leader | None], truth: Sequence[Leader | None], who: str, *, is_gapless: bool, is_whole: bool
) -> Iterator[Violation]:
    """What an observer was told that was not so, or was not told that was.

    Args:
        told: what it was told, in turn; the first is what was so when it began.
        truth: see `leaders`.
        who: the observer.
        is_gapless: nothing may be missing; else, after a compaction, what was overtaken may.
        is_whole: it observed to the end.
    """
    for one, other in pairwise(told):
        if one == other:
            yield Violation("observed twice", f"{who}: {one}")
            return
    # Before the first leader there is none, which no change says.
    whole = [None, *truth] if truth[:1] != [None] else [*truth]
    steps = _steps(told, whole) if is_gapless else _overtaken(told, whole)
    if steps is None:
        missing = [leader for leader in told if leader not in whole]
        yield Violation("observed wrongly", f"{who}: {missing or told} instead of {whole}"[:1000])
    elif is_whole and told and steps < len(whole):
        yield Violation("missed by an observer", f"{who}: the last {len(whole) - steps}")


def _steps(told: Sequence[Leader | None], truth: Sequence[Leader | None]) -> int | None:
    """How much of the truth there is up to the end of what was told without a gap; None if it was not so."""
    for start in reversed(range(len(truth) - len(told) + 1)):
        if list(truth[start : start + len(told)]) == list(told):
            return start + len(told)
    return None


def _overtaken(told: Sequence[Leader | None], truth: Sequence[Leader | None]) -> int | None:
    """The same, if some of the truth may be left out."""
    at = 0
    for leader in told:
        while at < len(truth) and truth[at] != leader:
            at += 1
        if at == len(truth):
            return None
        at += 1
    # What was told last may have been so again.
    return len(truth) if told and truth[-1] == told[-1] else at


def miscounted(changes: Iterable[Change], counted: Iterable[Counted]) -> Iterator[Violation]:
    """Increments that were applied twice, or whose outcome was told wrongly.

    A counter's value is a number and the id of the operation that made it, as JSON.
    """
    made: dict[str, list[int]] = {}
    numbers: Counter[str] = Counter()
    for change in changes:
        if Place.of(change.key).kind != "counter" or change.value is None:
            continue
        number, operation = json.loads(change.value)
        numbers[change.key] += 1
        if number != numbers[change.key]:
            yield Violation(
                "a counter skips", f"{change.key} is {number} at {change.revision}, not {numbers[change.key]}"
            )
            numbers[change.key] = number
        made.setdefault(operation, []).append(change.revision)
    for operation, revisions in made.items():
        if len(revisions) > 1:
            yield Violation("counted twice", f"{operation} at {revisions}")
    for each in counted:
        revisions = made.get(each.operation, [])
        if each.outcome == "applied" and revisions[:1] != [each.revision]:
            yield Violation("counted wrongly", f"{each} is at {revisions}")
        if each.outcome == "not applied" and revisions:
            yield Violation("counted wrongly", f"{each} is at {revisions}")


def left_over(keys: Iterable[str]) -> Iterator[Violation]:
    """Keys of lines that nothing holds or waits for any more."""
    for key in keys:
        yield Violation("left over", key)
