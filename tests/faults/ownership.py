"""Who owns what at which revision, and the writes that were made in its name. Pure.

The oldest key of a line owns it, by etcd's revisions; clocks play no part. A client that owns a line writes fenced
records: on entering, in between, and on leaving. Every record must be of a key that exists and owns the line at that
revision: a client that entered early, without a key or beside another one shows itself by what it wrote.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.faults.store import RECORD, Change, Life, Lines, Place


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that was broken, and where."""

    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """What a fenced write says.

    Attributes:
        claim: an id of this ownership, which no other has.
        kind: of the line, and `name` its name.
        key: the key that owns, and `token` its create_revision.
        step: "enter", "work" or "leave".
    """

    claim: str
    kind: str
    name: str
    key: str
    token: int
    step: str

    def text(self) -> str:
        """The value to write."""
        return json.dumps([self.claim, self.kind, self.name, self.key, self.token, self.step])

    @classmethod
    def parse(cls, value: str) -> "Record":
        """What was written."""
        return cls(*json.loads(value))


Rule = Callable[[dict[str, Life], Life], str]
"""Takes the living keys of a line, oldest first, and one of them; returns what keeps it from owning, or nothing."""


def _is_first(alive: dict[str, Life], own: Life) -> str:
    first = next((life for life in alive.values() if "/" not in Place.of(life.key).rest), own)
    return "" if first is own else f"{first.key} of {first.created} is before it"


def _is_readers_writer(alive: dict[str, Life], own: Life) -> str:
    for life in alive.values():
        if life is own:
            return ""
        if is_writer(own.key) or is_writer(life.key):
            return f"{life.key} of {life.created} is before it"
    return ""


def _is_within_limit(alive: dict[str, Life], own: Life) -> str:
    limit = json.loads(own.value)["limit"]
    taken = 0
    for life in alive.values():
        taken += json.loads(life.value)["permits"]
        if life is own:
            break
    return "" if taken <= limit else f"{taken} permits up to it, of {limit}"


def _number(proclaimed: str) -> int:
    """The number of a proclamation: each leader counts its own, behind the last blank."""
    number = proclaimed.rpartition(" ")[2]
    return int(number) if number.isdigit() else 0


def _is_older(kind: str, new: str, old: str) -> bool:
    return kind == "election" and _number(new) < _number(old)


def is_writer(key: str) -> bool:
    """Whether a key of a readers-writer lock is a writer's."""
    return Place.of(key).rest.startswith("write/")


RULES: Final[Mapping[str, Rule]] = {
    "lock": _is_first,
    "election": _is_first,
    "rwlock": _is_readers_writer,
    "semaphore": _is_within_limit,
}


@dataclass(slots=True)
class _Inside:
    """The claims that have entered one line, and not left: by the key that each owns."""

    records: dict[str, Record] = field(default_factory=dict)
    permits: dict[str, int] = field(default_factory=dict)
    last_exclusive: int = 0
    last: int = 0


@dataclass(slots=True)
class Ownership:
    """The judgement of a history.

    Attributes:
        violations: all that was wrong.
        entered: how many claims entered, by kind.
        writes: the revision of every record, by its text.
        owned: each key, with its create_revision, that owned its line at some revision.
    """

    violations: list[Violation] = field(default_factory=list)
    entered: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    owned: set[tuple[str, int]] = field(default_factory=set)
    _lines: Lines = field(default_factory=Lines)
    _inside: dict[tuple[str, str], _Inside] = field(default_factory=dict)

    @classmethod
    def judge(cls, changes: Iterable[Change]) -> "Ownership":
        """Judge the changes of a whole run, by revision (see `store.checked`)."""
        found = cls()
        for change in changes:
            kind = Place.of(change.key).kind
            if kind == RECORD:
                if change.value is not None:
                    found._record(change.revision, change.value)
            elif kind in RULES:
                found._apply(change)
        return found

    def _apply(self, change: Change) -> None:
        place = Place.of(change.key)
        alive = self._lines.of(*place.line)
        own = alive.get(change.key)
        if own is not None and change.value is not None and _is_older(place.kind, change.value, own.value):
            self._add("an older proclamation came back", f"{change} after {own.value}")
        self._lines.apply(change)
        rule = RULES[place.kind]
        self.owned.update((life.key, life.created) for life in alive.values() if not rule(alive, life))
        inside = self._inside.get(place.line)
        if change.value is None and inside is not None:
            inside.records.pop(change.key, None)
            inside.permits.pop(change.key, None)

    def _record(self, revision: int, value: str) -> None:
        record = Record.parse(value)
        if value in self.writes:
            self._add("written twice", f"{value} at {self.writes[value]} and {revision}")
        self.writes[value] = revision
        alive = self._lines.of(record.kind, record.name)
        own = alive.get(record.key)
        if own is None or own.created != record.token:
            self._add("fenced write without the key", f"{value} at {revision}: the key is gone, or not there yet")
            return
        if reason := RULES[record.kind](alive, own):
            self._add("entered before its turn", f"{value} at {revision}: {reason}")
        if record.step == "enter":
            self.entered[record.kind] = self.entered.get(record.kind, 0) + 1
        inside = self._inside.setdefault((record.kind, record.name), _Inside())
        for violation in _crowd(inside, record, revision, own):
            self._add(*violation)
        if record.step == "leave":
            inside.records.pop(record.key, None)
            inside.permits.pop(record.key, None)

    def _add(self, rule: str, text: str) -> None:
        self.violations.append(Violation(rule, text))


def _crowd(inside: _Inside, record: Record, revision: int, own: Life) -> Iterator[tuple[str, str]]:
    """What is wrong with those inside, by their own records alone."""
    is_exclusive = record.kind in ("lock", "election") or (record.kind == "rwlock" and is_writer(record.key))
    if record.step == "enter":
        before = inside.last if is_exclusive else inside.last_exclusive
        if record.token <= before:
            yield "tokens grow", f"{record.text()} at {revision} after {before}"
        inside.last = max(inside.last, record.token)
        if is_exclusive:
            inside.last_exclusive = max(inside.last_exclusive, record.token)
    elif record.kind != "semaphore" and record.token < inside.last_exclusive:
        yield "tokens grow", f"{record.text()} at {revision} after {inside.last_exclusive} has entered"
    inside.records[record.key] = record
    if record.kind == "semaphore":
        told = json.loads(own.value)
        inside.permits[record.key] = told["permits"]
        if sum(inside.permits.values()) > told["limit"]:
            yield "too many permits", f"{inside.permits} at {revision}, of {told['limit']}"
        return
    others = [other for key, other in inside.records.items() if key != record.key]
    if record.kind == "rwlock" and not is_exclusive:
        others = [other for other in others if is_writer(other.key)]
    for other in others:
        yield "two inside", f"{record.text()} at {revision} beside {other.text()}"
