"""Closing in two parts: `close` ends tasks, timers and connections without waiting, `aclose` waits for their end.

The await of a close may be cancelled repeatedly, by `cancel()` or by an anyio scope, which cancels every await within
it. So all the work is done in `close`, which awaits nothing. The only await of `aclose` comes last and is bounded in
time; if it is cancelled, the tasks end by themselves.
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import Any, Final, Protocol, TypeAlias

Unwinding: TypeAlias = "Collection[asyncio.Future[Any]]"
"""Tasks that were cancelled, and sockets that were aborted, which need a few turns of the loop to end."""

CANCELLED_SECONDS: Final = 0.5
"""Seconds that a cancelled caller waits for the end of what it holds; then that goes on in the background."""

UNWIND_TIMEOUT: Final = 0.8  # seconds; Client.aclose() promises a second in any state


class Closable(Protocol):
    """An object with a `close`."""

    def close(self) -> Unwinding:
        """End everything, without waiting, and return the tasks that have not ended yet. Safe to repeat."""
        ...


class TwoPartClose:
    """Base class that adds `aclose` to a `close`."""

    __slots__ = ()

    def close(self) -> Unwinding:
        raise NotImplementedError

    async def aclose(self) -> None:
        """End everything, and wait for it, bounded in time. Everything ends even if the wait is cancelled."""
        await unwound(self.close())


def close_all(parts: Iterable[Closable]) -> list["asyncio.Future[Any]"]:
    """Close all parts. An exception of one is reported to the loop and does not keep the others open."""
    unwinding: list[asyncio.Future[Any]] = []
    for part in parts:
        try:
            unwinding.extend(part.close())
        except Exception as error:  # a bug, which must not keep the connections of the other parts open
            context = {"message": f"etcd_aio: {type(part).__name__} could not be closed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
    return unwinding


async def unwound(unwinding: Unwinding, seconds: float = UNWIND_TIMEOUT) -> None:
    """Wait until all have ended, except for the calling task; at most for `seconds`."""
    caller = asyncio.current_task()
    waiting = [future for future in unwinding if not future.done() and future is not caller]
    if waiting:
        await asyncio.wait(waiting, timeout=seconds)
