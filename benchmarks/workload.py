"""What is measured: the cases, the keys and the values.

Knows: names and sizes, which every driver shares (go/main.go repeats them, and every answer is checked against them).
Never knows: clients, processes, time. Imports nothing outside the standard library: it runs in every environment.
"""

from dataclasses import dataclass
from typing import Final

VALUE: Final = b"0123456789abcdef" * 16
"""256 bytes. ASCII, because one client knows only text."""

RANGE_SIZES: Final = (1000, 10_000)
"""How many keys the ranges read. The larger is still below grpcio's default limit of 4 MiB for one reply."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is compared: an operation on so many keys, in a closed loop of so many workers.

    Attributes:
        keys: of a watch: how many events it follows before it is left.
        per_txn: of a watch: how many of them were written by one txn, at one revision.
    """

    name: str
    operation: str
    in_flight: int
    title: str
    keys: int = 1
    per_txn: int = 1

    @property
    def unit(self) -> str:
        """What is counted: the answers, or what is in them."""
        return "event" if self.operation == "watch" else "call"


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


def get_key(prefix: str) -> str:
    """The one key that gets read."""
    return f"{prefix}get"


def put_key(prefix: str, worker: int) -> str:
    """The key that one worker writes: each has its own, so that no write waits for another's."""
    return f"{prefix}put/{worker:03}"


def range_prefix(prefix: str, keys: int) -> str:
    """The prefix of the keys that ranges of this size read. None begins another: one client drops the last slash."""
    return f"{prefix}range-{keys:05}/"


def watch_prefix(prefix: str) -> str:
    """The prefix of the keys that are watched."""
    return f"{prefix}watch/"


def history(prefix: str, events: int) -> list[str]:
    """The keys of a history, as they are put one after the other; a thousand, so that each is put again and again."""
    return [f"{watch_prefix(prefix)}{number % 1000:03}" for number in range(events)]


def stored_keys(prefix: str) -> list[str]:
    """Every key that must exist before the first call."""
    ranges = (f"{range_prefix(prefix, keys)}{number:05}" for keys in RANGE_SIZES for number in range(keys))
    return [get_key(prefix), *ranges]
