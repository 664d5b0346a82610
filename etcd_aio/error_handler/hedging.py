"""Hedging: a read that takes long is also asked of another member, and the first answer counts (gRPC A6).

Knows: two calls for one request, when the second begins, a budget. Never knows: what is read, or what an attempt is.

It trades load for the tail of the latencies: a member that pauses costs `after` instead of its whole pause. Only what
may run twice is hedged, so there is never a doubt. The budget keeps a slow cluster from being asked everything twice: a
hedge costs one, a call earns a tenth.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias, TypeVar

from etcd_aio.aio import start_task

_T = TypeVar("_T")

_Work: TypeAlias = Coroutine[Any, Any, _T]

_EARNED: Final = 0.1  # of a hedge, by each call: at most a tenth more calls
_MOST: Final = 10.0  # hedges at once, after a calm time


class Hedging:
    """The hedges of one client.

    Args:
        after: seconds after which an unanswered read is asked of another member too.
        may_hedge: whether another member could be asked now.
    """

    __slots__ = ("_after", "_budget", "_may_hedge")

    def __init__(self, after: float, may_hedge: Callable[[], bool]) -> None:
        self._after = after
        self._may_hedge = may_hedge
        self._budget = _MOST

    async def run(self, first: _Work[_T], second: Callable[[], _Work[_T]]) -> _T:
        """The first answer of one call, or of two.

        Args:
            first: the call.
            second: makes the other one, which should ask another member.

        Raises:
            EtcdError: what the first call raised, if the second failed too.

        Cancellation ends both.
        """
        self._budget = min(self._budget + _EARNED, _MOST)
        calls = [start_task(first, name="etcd_aio read")]
        try:
            await asyncio.wait(calls, timeout=self._after)
            if not calls[0].done() and self._budget >= 1 and self._may_hedge():
                self._budget -= 1
                calls.append(start_task(second(), name="etcd_aio hedge"))
            return await _first_answer(calls)
        finally:
            for call in calls:
                call.cancel()
            # In one turn of the loop, since whoever is cancelled waits for nobody.
            await asyncio.gather(*calls, return_exceptions=True)


async def _first_answer(calls: "list[asyncio.Task[_T]]") -> _T:
    waiting = set(calls)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for call in done:
            if not call.cancelled() and call.exception() is None:
                return call.result()
    return calls[0].result()
