"""The verdict on a run: what its processes have logged, and the history of the store, held against all rules. Pure."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.faults.account import (
    Body,
    Counted,
    Leader,
    Standstill,
    leaders,
    left_over,
    miscounted,
    misobserved,
    miswritten,
    overlapping,
    unowned,
)
from tests.faults.ownership import Ownership, Violation
from tests.faults.store import COUNTER, Change

LAST: Final = "the last leader"
"""The value of the leader that ends a run. Observers need not be told what comes after it."""


@dataclass(slots=True)
class Logs:
    """What the processes have said."""

    bodies: list[Body] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    told: dict[tuple[str, str], list[Leader | None]] = field(default_factory=dict)
    counted: list[Counted] = field(default_factory=list)
    standstills: list[Standstill] = field(default_factory=list)
    meddled: set[str] = field(default_factory=set)
    errors: Counter[str] = field(default_factory=Counter)
    quiet: set[str] = field(default_factory=set)
    violations: list[Violation] = field(default_factory=list)

    def read(self, process: str, text: str, end: float) -> None:
        """Add the log of one process; `end` is when it was killed, which ends what it believed."""
        open_bodies: dict[str, list[Any]] = {}
        for line in text.splitlines():
            try:
                what, *words = json.loads(line)
            except ValueError:
                continue  # it was killed while it wrote this
            match what, words:
                case "began", [claim, *_]:
                    open_bodies[claim] = words
                case "ended", [claim, ended]:
                    self.bodies.append(_body(process, open_bodies.pop(claim), ended))
                case "wrote", [record, revision]:
                    self.acknowledged[record] = revision
                case "refused", [record]:
                    self.refused.append(record)
                case "told", [observer, name, leader]:
                    told = None if leader is None else (leader[0], leader[1], leader[2])
                    self.told.setdefault((observer, name), []).append(told)
                case "counted", [counter, operation, outcome, revision]:
                    self.counted.append(Counted(counter, operation, outcome, revision))
                case "stall", [began, ended]:
                    self.standstills.append(Standstill(process, began, ended))
                case "error", [where, kind, text, is_expected]:
                    self.errors[f"{where}: {kind}"] += 1
                    if not is_expected:
                        self.violations.append(Violation("unexpected error", f"{process} {where}: {kind}: {text}"))
                case "stuck", [where]:
                    self.violations.append(Violation("waits for ever", f"{process} {where}"))
                case "done", []:
                    pass
                case "quiet", []:
                    self.quiet.add(process)
                case _:
                    raise ValueError(f"not understood: {line}")
        self.bodies.extend(_body(process, words, end) for words in open_bodies.values())


def _body(process: str, words: Sequence[Any], ended: float) -> Body:
    claim, kind, name, key, token, permits, limit, began = words
    return Body(claim, kind, name, key, token, process, began, ended, permits, limit)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run has shown.

    Attributes:
        violations: the broken rules.
        owned: how many claims entered, by kind; and how many increments were applied.
        faults: how often each was made.
        errors: what was raised in the clients, by place and class.
        revisions: the length of the history.
        standstills: how many there were.
    """

    violations: Sequence[Violation]
    owned: Mapping[str, int]
    faults: Mapping[str, int]
    errors: Mapping[str, int]
    revisions: int
    standstills: int


def judge(
    changes: Sequence[Change],
    logs: Logs,
    *,
    parts: Collection[str],
    left: Sequence[str],
    lasting: Collection[str],
    is_gapless: bool,
) -> Verdict:
    """Judge a run.

    Args:
        changes: the whole history of the store; see `store.checked`.
        logs: what the processes have said.
        parts: what they contended for.
        left: the keys that were left in the lines.
        lasting: the processes that were not killed, and so have to end what they do.
        is_gapless: the history was not compacted, so observers of elections were told everything.
    """
    ownership = Ownership.judge(changes)
    violations = [*ownership.violations, *logs.violations, *unowned(logs.bodies, ownership.owned)]
    violations += overlapping(logs.bodies, logs.standstills, logs.meddled)
    violations += miswritten(ownership.writes, logs.acknowledged, logs.refused)
    violations += miscounted(changes, logs.counted)
    violations += left_over(left)
    truths = {name: _up_to_the_last(leaders(changes, name)) for _, name in logs.told}
    newest = {observer.rpartition("-")[0]: observer for observer, _ in logs.told}
    for (observer, name), all_told in logs.told.items():
        told = _up_to_the_last(all_told)
        process = observer.split("-")[0]
        is_whole = process in lasting and process in logs.quiet and observer in newest.values()
        violations += misobserved(told, truths[name], observer, is_gapless=is_gapless, is_whole=is_whole)
    violations += [Violation("did not end", process) for process in lasting if process not in logs.quiet]
    owned = dict(ownership.entered)
    owned[COUNTER] = sum(each.outcome == "applied" for each in logs.counted)
    owned = {part: owned.get(part, 0) for part in parts}
    return Verdict(violations, owned, {}, logs.errors, len(changes), len(logs.standstills))


def _up_to_the_last(truth: list[Leader | None]) -> list[Leader | None]:
    """The leaders up to the one that ends the run; observers need not be told what comes after it."""
    for number, leader in enumerate(truth):
        if leader is not None and leader[2] == LAST:
            return truth[: number + 1]
    return truth
