"""The shortest part of a failing history that still fails."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

Item = TypeVar("Item")

MOST_PLAYS: Final = 150


async def shortest(items: Sequence[Item], fails: Callable[[Sequence[Item]], Awaitable[bool]]) -> Sequence[Item]:
    """Leave out items, in large pieces first, as long as what is left fails.

    Args:
        items: a history that fails.
        fails: plays a history.
    """
    plays = 0
    size = len(items) // 2
    while size and plays < MOST_PLAYS:
        start = len(items) - size
        while start > -size and plays < MOST_PLAYS:
            rest = [*items[: max(start, 0)], *items[start + size :]]
            plays += 1
            if await fails(rest):
                items = rest
            start -= size
        size //= 2
    return items
