"""What is measured: the cases, the keys and the values.

Knows: names and sizes, which every driver shares (go/main.go repeats them, and every answer is checked against them).
Never knows: clients, processes, time. Imports nothing outside the standard library: it runs in every environment.
"""

from dataclasses import dataclass
from typing import Final

VALUE: Final = b"0123456789abcdef" * 16
"""256 bytes. ASCII, because one client knows only text."""

RANGE_KEYS: Final = 1000


@dataclass(frozen=True, slots=True)
class Case:
    """One column of the comparison: an operation in a closed loop of so many workers."""

    name: str
    operation: str
    in_flight: int
    title: str


CASES: Final = (
    Case("get-1", "get", 1, "get, serializable, 256 B value, 1 in flight"),
    Case("get-64", "get", 64, "get, serializable, 256 B value, 64 in flight"),
    Case("put-1", "put", 1, "put, 256 B value, 1 in flight"),
    Case("put-64", "put", 64, "put, 256 B value, 64 in flight"),
    Case("range-1", "range", 1, "range of 1 000 keys, serializable, 256 B values, 1 in flight"),
)


def get_key(prefix: str) -> str:
    """The one key that gets read."""
    return f"{prefix}get"


def put_key(prefix: str, worker: int) -> str:
    """The key that one worker writes: each has its own, so that no write waits for another's."""
    return f"{prefix}put/{worker:03}"


def range_prefix(prefix: str) -> str:
    """The prefix of the keys that ranges read."""
    return f"{prefix}range/"


def stored_keys(prefix: str) -> list[str]:
    """Every key that must exist before the first call."""
    return [get_key(prefix), *(f"{range_prefix(prefix)}{number:04}" for number in range(RANGE_KEYS))]
