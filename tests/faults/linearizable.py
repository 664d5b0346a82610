"""Judges whether reads and writes of a store were linearizable, as one register of all keys. Pure.

etcd orders all writes by their revisions, so nothing has to be searched. A write took effect at its revision. A read of
several keys saw a set of versions, so it took effect at a revision at which all of them were there: in one of the
intervals between changes of those keys. Each operation must have taken effect between its call and its return, so it
comes behind every operation that had returned before its call. The earliest revision that fits is taken; if there is
none, no order explains the history.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

History: TypeAlias = Mapping[bytes, Sequence[tuple[int, bool]]]
"""For each key its changes: the revision, and whether the key was put."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write: when it was called, when it had returned (never, if its answer was lost), and its revision."""

    called: float
    returned: float
    revision: int


@dataclass(frozen=True, slots=True)
class Read:
    """A read: the keys that it saw together, with their mod_revisions; None is a missing key."""

    called: float
    returned: float
    seen: Mapping[bytes, int | None]
    kind: str = "read"


def point(seen: Mapping[bytes, int | None], history: History, least: int) -> int | None:
    """The first revision from `least` on at which the store was like this; None if there is none."""
    revision = least
    while True:
        moved = revision
        for key, mod in seen.items():
            changes = history.get(key, ())
            if mod is not None:
                if revision < mod:
                    if (mod, True) not in changes:
                        return None
                    revision = mod
                at = bisect_right(changes, (revision, True)) - 1
                if changes[at] != (mod, True):
                    return None
            else:
                at = bisect_right(changes, (revision, True)) - 1
                if at >= 0 and changes[at][1]:
                    gone = next((there for there, is_put in changes[at + 1 :] if not is_put), None)
                    if gone is None:
                        return None
                    revision = gone
        if revision == moved:
            return revision


def judge(operations: Iterable[Write | Read], history: History) -> list[str]:
    """What no order explains."""
    operations = list(operations)
    steps = sorted(
        [(one.called, 1, number) for number, one in enumerate(operations)]
        + [(one.returned, 0, number) for number, one in enumerate(operations) if one.returned < inf]
    )
    reached = 0
    least: dict[int, int] = {}
    violations: list[str] = []
    for _, is_call, number in steps:
        one = operations[number]
        if is_call:
            least[number] = reached
            if isinstance(one, Write) and one.revision <= reached:
                violations.append(f"a write took effect at {one.revision}, after {reached} was seen")
        elif isinstance(one, Write):
            reached = max(reached, one.revision)
        else:
            found = point(one.seen, history, least.pop(number))
            if found is None:
                violations.append(f"a {one.kind} is stale, or saw what never was together: {dict(one.seen)}")
            else:
                reached = max(reached, found)
    return violations
