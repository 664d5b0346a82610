"""The cases, the keys and the values, which all drivers share; go/ repeats them.

This module imports only the standard library, because it runs in every environment.
"""

from dataclasses import dataclass
from typing import Final

VALUE: Final = b"0123456789abcdef" * 16
"""256 bytes. ASCII, because one client knows only text."""

RANGE_SIZES: Final = (1000, 10_000)
"""How many keys the ranges read. The larger is still below grpcio's default limit of 4 MiB for one reply."""


_UNITS: Final = {"watch": "event", "lock": "cycle", "own-lock": "cycle", "handoff": "handoff", "change": "change"}


@dataclass(frozen=True, slots=True)
class Case:
    """An operation on a number of keys, in a closed loop of a number of workers.

    Attributes:
        keys: the number of keys; for a watch, the number of events until it ends.
        per_txn: for a watch, the number of events in one transaction, at one revision.
    """

    name: str
    operation: str
    in_flight: int
    title: str
    keys: int = 1
    per_txn: int = 1

    @property
    def unit(self) -> str:
        """What the results count."""
        return _UNITS.get(self.operation, "call")


_IN_FLIGHT: Final = (1, 16, 64, 256)

CASES: Final = (
    *(Case(f"get-{k}", "get", k, f"get, serializable, 256 B value, {k} in flight") for k in _IN_FLIGHT),
    *(Case(f"put-{k}", "put", k, f"put, 256 B value, {k} in flight") for k in _IN_FLIGHT),
    *(
        Case(f"range-{keys}", "range", 1, f"range of {keys} keys, serializable, 256 B values, 1 in flight", keys)
        for keys in RANGE_SIZES
    ),
    # etcd lets a watch catch up by 1000 revisions every 0.1 s.
    Case("watch-catchup", "watch", 1, "watch, 20000 past events of 256 B, one to a revision", 20_000),
    Case("watch-catchup-txn", "watch", 1, "watch, 100000 past events of 256 B, 100 to a revision", 100_000, 100),
)


LOCK_CASES: Final = (
    *(
        Case(f"lock-{k}", "lock", k, f"lock and unlock without contention, {k} at once; Go: one session")
        for k in (1, 16)
    ),
    Case("own-lock-1", "own-lock", 1, "lock and unlock without contention; Go: a session for each"),
    *(Case(f"handoff-{k}", "handoff", k, f"handoffs of one lock, {k} contenders") for k in (2, 10, 100, 1000)),
)

ELECTION_CASES: Final = tuple(
    Case(f"change-{k}", "change", k, f"changes of the leader, {k} candidates") for k in (2, 10, 100)
)


def get_key(prefix: str) -> str:
    """The key that gets read."""
    return f"{prefix}get"


def put_key(prefix: str, worker: int) -> str:
    """The key that a worker writes. Each has its own, so that no write waits for another."""
    return f"{prefix}put/{worker:03}"


def range_prefix(prefix: str, keys: int) -> str:
    """The prefix of the keys for ranges of this size. None begins another, since a client drops the last slash."""
    return f"{prefix}range-{keys:05}/"


def watch_prefix(prefix: str) -> str:
    """The prefix of the keys that are watched."""
    return f"{prefix}watch/"


def history(prefix: str, events: int) -> list[str]:
    """The keys of a history in the order of the puts: a thousand keys, each written many times."""
    return [f"{watch_prefix(prefix)}{number % 1000:03}" for number in range(events)]


def stored_keys(prefix: str) -> list[str]:
    """Every key that must exist before the first call."""
    ranges = (f"{range_prefix(prefix, keys)}{number:05}" for keys in RANGE_SIZES for number in range(keys))
    return [get_key(prefix), *ranges]
