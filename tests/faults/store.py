"""The history of the store: every change of every key, and which keys of a line are alive at a revision. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

ROOT: Final = "faults/"
RECORD: Final = "record"
COUNTER: Final = "counter"


class IncompleteError(Exception):
    """A change is missing, so the history proves nothing."""


@dataclass(frozen=True, slots=True)
class Change:
    """One event: `value` is None for a deletion, `created` the create_revision of the key that it puts or ends."""

    revision: int
    key: str
    value: str | None
    created: int
    version: int = 1


@dataclass(slots=True)
class Life:
    """A key of a line from its creation on."""

    key: str
    created: int
    value: str


@dataclass(frozen=True, slots=True)
class Place:
    """What a key is: the kind and the name of its line, record or counter, and the rest of the key."""

    kind: str
    name: str
    rest: str

    @classmethod
    def of(cls, key: str) -> "Place":
        """The place of a key below `ROOT`: `faults/<kind>/<name>/<rest>`."""
        kind, name, rest = (*key.removeprefix(ROOT).split("/", 2), "", "")[:3]
        return cls(kind, name, rest)

    @property
    def line(self) -> tuple[str, str]:
        """The line that the key belongs to."""
        return self.kind, self.name


class Lines:
    """The living keys of every line, oldest first, at the revision that was last applied."""

    def __init__(self) -> None:
        self._alive: dict[tuple[str, str], dict[str, Life]] = {}

    def of(self, kind: str, name: str) -> dict[str, Life]:
        """The living keys of one line; a dictionary keeps the order of creation, since a revision creates one key."""
        return self._alive.setdefault((kind, name), {})

    def apply(self, change: Change) -> None:
        """Create, change or end a key."""
        place = Place.of(change.key)
        alive = self.of(place.kind, place.name)
        if change.value is None:
            alive.pop(change.key, None)
        elif change.version == 1:
            alive[change.key] = Life(change.key, change.created, change.value)
        else:
            alive[change.key].value = change.value


def checked(changes: Iterable[Change]) -> list[Change]:
    """The changes by revision, if none is missing.

    Raises:
        IncompleteError: a key skips a version, or ends without having been there.
    """
    ordered = sorted(changes, key=lambda change: change.revision)
    versions: dict[str, int] = {}
    for change in ordered:
        known = versions.get(change.key, 0)
        if change.value is None:
            if not known:
                raise IncompleteError(f"{change.key} ends at {change.revision}, but was not there")
            versions[change.key] = 0
        else:
            if change.version != known + 1:
                raise IncompleteError(f"{change.key} has version {change.version} at {change.revision} after {known}")
            versions[change.key] = change.version
    return ordered
