"""Happy eyeballs: several ways to one server, each begun soon after the one before, until one leads there.

asyncio has its own for sockets, but cancelled at the wrong moment that leaves a connected socket behind. uvloop has
none.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final, TypeVar

from etcd_aio.base.aio import start_task

T = TypeVar("T")

DELAY: Final = 0.25  # RFC 8305, section 5: "Connection Attempt Delay" default


async def first_to_succeed(
    ways: Iterable[Callable[[], Coroutine[Any, Any, T]]],
    discard: Callable[[T], None],
    *,
    is_final: Callable[[BaseException], bool] = lambda error: False,
) -> T:
    """The result of the first way that succeeds.

    Args:
        ways: in the order in which to try them; at least one.
        discard: gives up the result of another one that has succeeded meanwhile.
        is_final: whether an error of one way is that of all.

    Raises:
        BaseException: no way succeeds; the error of the first that failed, with notes of the others.
    """
    waiting = deque(ways)
    running: set[asyncio.Task[T]] = set()
    errors: list[BaseException] = []

    def give_up(task: asyncio.Task[T]) -> None:
        if not task.cancelled() and task.exception() is None:
            discard(task.result())

    try:
        while waiting or running:
            if waiting:
                running.add(start_task(waiting.popleft()(), name="etcd_aio dial"))
            delay = DELAY if waiting else None
            done, _ = await asyncio.wait(running, timeout=delay, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                running.discard(task)
                error = task.exception()
                if error is None:
                    return task.result()
                if is_final(error):
                    raise error
                errors.append(error)
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(give_up)
    for error in errors[1:]:
        errors[0].add_note(f"and {error}")
    raise errors[0]
