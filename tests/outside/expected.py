"""How the tests of a suite have ended, beside how they end with the suite's own client. Pure, but for `expected`.

A file of `expected/` has a line for each test: a word, its name, and the reason. The words are `passed`, `failed` and
`skipped`, as with the own client; `internals` for a test that passes with it, but reaches into it; and `promised` for
one that the own client skips, and another one owes all the same.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from xml.etree import ElementTree as ET

_FOLDER: Final = Path(__file__).with_name("expected")
_SEPARATOR: Final = "  # "
_LONGEST_REASON: Final = 160  # characters: a failure may print whole values
WORDS: Final = frozenset({"passed", "failed", "skipped", "internals", "promised"})
_WITH_OWN: Final = {"internals": "passed", "promised": "skipped"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a test.

    Attributes:
        word: `passed`, `failed` or `skipped`; in the expected outcomes also `internals` and `promised`.
        reason: why it did not pass, or cannot be asked of another client.
    """

    word: str
    reason: str = ""


Outcomes: TypeAlias = Mapping[str, Outcome]


def expected(suite: str) -> dict[str, Outcome]:
    """The outcomes of a suite with its own client."""
    return read((_FOLDER / f"{suite}.txt").read_text())


def read(text: str) -> dict[str, Outcome]:
    """The outcomes that a file has.

    Raises:
        ValueError: a word is unknown, or a test that did not pass has no reason.
    """
    found: dict[str, Outcome] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        name, _, reason = rest.strip().partition(_SEPARATOR)
        if word not in WORDS or (word != "passed" and not reason):
            raise ValueError(f"not a word, a test and a reason: {line}")
        found[name] = Outcome(word, reason)
    return found


def parsed(report: str, top: str) -> dict[str, Outcome]:
    """The outcomes in a report of pytest.

    Args:
        report: in the format of JUnit.
        top: the package of all tests, which is left out of their names.
    """
    found: dict[str, Outcome] = {}
    for case in ET.fromstring(report).iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name')}".removeprefix(f"{top}.").removeprefix(".")
        name = name.encode("unicode_escape").decode()
        outcome = Outcome("passed")
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                reason = " ".join((child.get("message") or child.text or child.tag).split())[:_LONGEST_REASON]
                outcome = Outcome("skipped" if child.tag == "skipped" else "failed", reason)
        if name not in found or found[name].word != "failed":  # an error when a fixture ends is a case of its own
            found[name] = outcome
    return found


def counts(outcomes: Outcomes) -> str:
    """How many have passed, failed and were skipped."""
    words = Counter(_WITH_OWN.get(outcome.word, outcome.word) for outcome in outcomes.values())
    return ", ".join(f"{words[word]} {word}" for word in ("passed", "failed", "skipped"))


def owed(baseline: Outcomes) -> list[str]:
    """The tests that another client must pass: those that pass with the own one and do not reach into it, and more."""
    return [name for name, outcome in baseline.items() if outcome.word in ("passed", "promised")]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a client owes to a suite.

    Attributes:
        missing: the tests that it does not pass and the own client does, with how they ended.
        beyond: the tests that it passes without owing them.
        owed: how many it owes.
    """

    missing: Outcomes
    beyond: tuple[str, ...]
    owed: int

    def lines(self) -> list[str]:
        """The lines of a report; the last one is the sum."""
        found = [f"OWED: {name}: {outcome.word}: {outcome.reason}" for name, outcome in self.missing.items()]
        found += [f"beyond: {name}" for name in self.beyond]
        return [*found, f"{self.owed - len(self.missing)} of {self.owed} owed, {len(self.beyond)} beyond"]


def judged(baseline: Outcomes, outcomes: Outcomes) -> Judgement:
    """Judge the outcomes of another client. A skipped test has not passed."""
    none = Outcome("failed", "the test did not run")
    missing = {name: outcomes.get(name, none) for name in owed(baseline)}
    missing = {name: outcome for name, outcome in missing.items() if outcome.word != "passed"}
    known = set(owed(baseline))
    beyond = tuple(name for name, outcome in outcomes.items() if outcome.word == "passed" and name not in known)
    return Judgement(missing, beyond, len(known))


def changed(baseline: Outcomes, outcomes: Outcomes) -> list[str]:
    """How the own client ends otherwise than the file says, a line each; empty if the file is right."""
    lines = []
    for name in sorted(baseline.keys() | outcomes.keys()):
        before, now = baseline.get(name), outcomes.get(name)
        was = "missing" if before is None else _WITH_OWN.get(before.word, before.word)
        is_now = "missing" if now is None else now.word
        if was != is_now:
            lines.append(f"CHANGED: {name}: {was}, now {is_now} {now.reason if now else ''}".rstrip())
    return lines
