"""The judge of linearizability: a good history has no violation, and each thing that can be wrong is seen."""

import pytest

from tests.faults.linearizable import Read, Write, judge

A, B = b"a", b"b"
HISTORY = {A: [(2, True), (4, True), (6, False), (8, True)], B: [(3, True), (7, True)]}


def write(called: float, returned: float, revision: int) -> Write:
    return Write(called, returned, revision)


def read(called: float, returned: float, **seen: int | None) -> Read:
    return Read(called, returned, {key.encode(): mod for key, mod in seen.items()})


@pytest.mark.parametrize(
    "operations",
    [
        [write(1, 2, 2), read(3, 4, a=2), write(5, 6, 3), write(7, 8, 4), read(9, 10, a=4, b=3)],
        [read(1, 10, a=4), write(1, 2, 2), write(3, 4, 3), write(5, 6, 4)],
        [write(1, 2, 6), read(3, 4, a=None)],
        [read(1, 2, a=None), write(3, 4, 2)],
        [write(1, 2, 7), read(3, 4, a=None, b=7)],
        [write(1, 9, 4), read(2, 3, a=4), read(4, 5, a=4)],
        [write(1, float("inf"), 4), read(2, 3, a=2), read(4, 5, a=4)],
    ],
)
def test_good_histories(operations: list[Write | Read]) -> None:
    assert judge(operations, HISTORY) == []


@pytest.mark.parametrize(
    "operations",
    [
        [write(1, 2, 4), read(3, 4, a=2)],  # an old value after a newer write had returned
        [read(1, 2, a=4), read(3, 4, a=2)],  # back from a newer read
        [read(1, 2, b=3), read(3, 4, a=None)],  # over two keys: b was there before a was deleted, and a was there
        [read(1, 2, a=2, b=7)],  # never together
        [read(1, 2, a=5)],  # never written
        [read(1, 2, a=4), write(3, 4, 4)],  # seen before it was called
        [read(1, 2, a=8), read(3, 4, a=None)],  # deleted once more: it never was
        [write(1, 2, 3), read(3, 4, b=None)],
        [read(1, 2, a=2), read(3, 4, a=2, b=None), write(1, 2, 3)],
    ],
)
def test_bad_histories(operations: list[Write | Read]) -> None:
    # Before revision 2 nothing was there, so `a` was missing then, and between 6 and 8.
    history = HISTORY if operations != [read(1, 2, b=3), read(3, 4, a=None)] else {A: [(2, True)], B: [(3, True)]}
    assert len(judge(operations, history)) == 1
