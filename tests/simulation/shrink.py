"""Shrinking: the shortest list that still fails, by delta debugging. Pure."""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrink(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Leave out what a failure does not need: first halves, then ever smaller pieces, at last single items.

    Args:
        items: a list that fails.
        fails: whether a part of it, in the same order, fails too.

    Returns:
        A part that fails, and of which no single item can be left out.
    """
    kept = list(items)
    if fails([]):
        return []
    pieces = 2
    while len(kept) > 1:
        size = -(-len(kept) // pieces)
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            if fails(rest):
                kept, pieces = rest, max(pieces - 1, 2)
                break
        else:
            if size == 1:
                break
            pieces = min(2 * pieces, len(kept))
    return kept
