"""Closing: what owns tasks, timers or connections ends them at once, and then waits, bounded, for what unwinds.

A close has two parts, because its await may be cancelled, and cancelled again, at any time: by a second `cancel()`, or
by an anyio scope, which cancels every await within it. So everything that matters happens in `close`, which awaits
nothing. The only await of `aclose` comes last, and if it is cancelled the tasks go on unwinding by themselves.
"""

import asyncio
from collections.abc import Collection, Iterable
from typing import Any, Final, Protocol, TypeAlias

Unwinding: TypeAlias = "Collection[asyncio.Future[Any]]"
"""Tasks that were cancelled, and sockets that were aborted, and need a few turns of the loop to end."""

UNWIND_TIMEOUT: Final = 0.8  # seconds; Client.aclose() promises a second in any state


class Closable(Protocol):
    """Something that `close` ends."""

    def close(self) -> Unwinding:
        """End everything at once, without waiting; harmless if it has ended. Returns what still unwinds."""
        ...


class TwoPartClose:
    """Adds `aclose` to a `close`."""

    __slots__ = ()

    def close(self) -> Unwinding:
        """See `Closable.close`."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """End everything, and wait for what unwinds. Bounded in time, and complete even if the wait is cancelled."""
        await unwound(self.close())


def close_all(parts: Iterable[Closable]) -> list["asyncio.Future[Any]"]:
    """Close each of them; a mistake in one of them is reported to the loop and does not keep the others open."""
    unwinding: list[asyncio.Future[Any]] = []
    for part in parts:
        try:
            unwinding.extend(part.close())
        except Exception as error:  # it is a defect, and the connections of the other parts must not stay for it
            context = {"message": f"etcd_aio: {type(part).__name__} could not be closed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
    return unwinding


async def unwound(unwinding: Unwinding, seconds: float = UNWIND_TIMEOUT) -> None:
    """Wait until all of them have ended, but not longer than `seconds`, and not for the task that asks."""
    caller = asyncio.current_task()
    waiting = [one for one in unwinding if not one.done() and one is not caller]
    if waiting:
        await asyncio.wait(waiting, timeout=seconds)
