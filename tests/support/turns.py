"""Actions that are cancelled after each number of turns of the loop, so at each of their awaits."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from tests.support.until import PATIENCE

_ONE_BY_ONE: Final = 60  # turns that are tried one by one; later ones in larger steps
_STEP: Final = 41


async def ends_within(turns: int, action: Awaitable[object]) -> bool:
    """Cancel an action after so many turns of the loop. Returns whether it had ended before; raises its exception."""
    task = asyncio.ensure_future(action)
    for _ in range(turns):
        await asyncio.sleep(0)
    is_done = task.done()
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)
    assert task.done(), f"a cancellation after {turns} turns did not end it"
    if is_done:
        task.result()
    return is_done


def more(turns: int) -> int:
    """The next number of turns to try."""
    return turns + (1 if turns < _ONE_BY_ONE else _STEP)
