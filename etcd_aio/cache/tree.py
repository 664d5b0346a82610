"""Tree: a mapping of keys in key order, for lookups, ranges and single changes in any mix. Pure.

A dict has the values, and the keys stand sorted in runs of some hundred: a change moves the keys of one run alone. So
it costs about a microsecond with a hundred thousand keys and little more with millions, a range costs what it returns,
and a key takes a place in the dict and 8 to 16 bytes in its run.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar

V = TypeVar("V")

RUN: Final = 512
"""Keys in a run: one of twice as many is split, one of a quarter joins its neighbour."""


class Tree(Generic[V]):
    """Keys with values, sorted.

    Attributes:
        values: the values by key, in no order; only to be read.
    """

    __slots__ = ("_firsts", "_runs", "values")

    def __init__(self) -> None:
        self.values: dict[bytes, V] = {}
        self._runs: list[list[bytes]] = [[]]
        # No key of a run is below its entry here, and every key of the run before it is. The first entry is below all.
        self._firsts: list[bytes] = [b""]

    def __len__(self) -> int:
        return len(self.values)

    def put(self, key: bytes, value: V) -> None:
        """Set the value of a key."""
        if key not in self.values:
            self._insert(key)
        self.values[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key.

        Raises:
            KeyError: there is no such key.
        """
        del self.values[key]
        at = bisect_right(self._firsts, key) - 1
        run = self._runs[at]
        del run[bisect_left(run, key)]
        if len(run) < RUN // 4 and at and len(self._runs[at - 1]) + len(run) <= RUN:
            self._runs[at - 1] += run
            del self._runs[at], self._firsts[at]

    def append(self, items: Mapping[bytes, V]) -> None:
        """Add items behind all keys; their own keys are sorted."""
        self.values.update(items)
        run = self._runs[-1]
        run += items
        while len(run) > RUN:
            rest = run[RUN:]
            del run[RUN:]
            self._runs.append(rest)
            self._firsts.append(rest[0])
            run = rest

    def keys(self, first: bytes = b"", end: bytes | None = None) -> list[bytes]:
        """The keys from `first` on and before `end`, sorted. None is behind every key."""
        runs, firsts = self._runs, self._firsts
        at = bisect_right(firsts, first) - 1
        last = len(runs) - 1 if end is None else bisect_left(firsts, end, at + 1) - 1
        run = runs[at]
        begin = bisect_left(run, first)
        if last == at:
            return run[begin:] if end is None else run[begin : bisect_left(run, end, begin)]
        found = run[begin:]
        for run in runs[at + 1 : last]:
            found += run
        run = runs[last]
        found += run if end is None else run[: bisect_left(run, end)]
        return found

    def runs(self) -> Iterator[list[bytes]]:
        """The keys, sorted, some hundred at a time; nothing may change meanwhile."""
        return iter(self._runs)

    def _insert(self, key: bytes) -> None:
        at = bisect_right(self._firsts, key) - 1
        run = self._runs[at]
        insort(run, key)
        if len(run) > 2 * RUN:
            self._runs.insert(at + 1, run[RUN:])
            self._firsts.insert(at + 1, run[RUN])
            del run[RUN:]
