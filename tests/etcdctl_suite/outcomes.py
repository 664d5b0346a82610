"""What the runs of etcd's tests say: outcomes, the comparison with etcdctl, and the table."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from tests.etcdctl_suite.deviations import MAY_PASS

Kind: TypeAlias = Literal["passed", "failed", "skipped"]

_KINDS: Final[dict[str, Kind]] = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
_RESULT: Final = re.compile(r"--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a test function.

    Attributes:
        kind: passed, failed or skipped; a test that its process did not report has failed.
        seconds: how long it took.
        parts: those of its subtests that failed.
    """

    kind: Kind
    seconds: float = 0.0
    parts: tuple[str, ...] = ()


def outcome_of(test: str, output: str) -> Outcome:
    """The outcome of a test function, by the output of Go's test program."""
    found = {name: Outcome(_KINDS[word], float(took)) for word, name, took in _RESULT.findall(output)}
    parts = tuple(name for name, part in found.items() if part.kind == "failed" and name != test)
    return replace(found.get(test, Outcome("failed")), parts=parts)


@dataclass(slots=True)
class Comparison:
    """The outcomes of one package of tests.

    Attributes:
        ours: with etcd-aio, by test.
        theirs: with etcdctl: of all tests, or of those that etcd-aio did not pass.
        known: reasons of the deviations that are known, by test.
    """

    known: Mapping[str, str]
    ours: dict[str, Outcome] = field(default_factory=dict)
    theirs: dict[str, Outcome] = field(default_factory=dict)

    def deviations(self) -> dict[str, str]:
        """Tests that etcdctl passes and etcd-aio does not, with the reason if it is known."""
        return {
            test: self.known.get(test, "")
            for test, outcome in self.ours.items()
            if outcome.kind != "passed" and self.theirs[test].kind == "passed"
        }

    def unknown(self) -> list[str]:
        """Deviations that are not known."""
        return [test for test, reason in self.deviations().items() if not reason]

    def outdated(self) -> list[str]:
        """Known deviations that etcd-aio passes, on any machine."""
        known = self.known.keys() - MAY_PASS
        return sorted(test for test in known if test in self.ours and self.ours[test].kind == "passed")


def counts(outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    """How many passed, failed and were skipped, and the minutes."""
    found = Counter(outcome.kind for outcome in outcomes.values())
    minutes = sum(outcome.seconds for outcome in outcomes.values()) / 60
    return (*(f"{found[kind]}" for kind in ("passed", "failed", "skipped")), f"{minutes:.1f}")


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """The table of all packages and programs."""
    all_rows = [("release", "tests", "with", "passed", "failed", "skipped", "minutes"), *rows]
    widths = [max(len(row[column]) for row in all_rows) for column in range(len(all_rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in all_rows
    )
