"""Hedging: a read that takes long is also asked of another member, and the first answer counts (gRPC A6).

Knows: two calls for one request, when the second begins, a budget. Never knows: what is read, or what an attempt is.

An error that another member would repeat (the revision was compacted, the request is wrong) ends both calls at once;
only after one that may pass does the other call go on.

It trades load for the tail of the latencies: a member that pauses costs `after` instead of its whole pause. Only what
may run twice is hedged, so there is never a doubt. The budget keeps a slow cluster from being asked everything twice: a
hedge costs one, a call earns a tenth.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias, TypeVar

from etcd_aio.aio import start_task
from etcd_aio.errors import EtcdError

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
            EtcdError: what either call raised if it is final, and what the first call raised if both failed otherwise.

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
        for call in calls:
            if call in done and not _may_pass(call):
                return call.result()
    return calls[0].result()


def _may_pass(call: "asyncio.Task[_T]") -> bool:
    """Whether a call that is over failed in a way that leaves the other one a chance."""
    if call.cancelled():
        return True
    error = call.exception()
    return isinstance(error, EtcdError) and error.retryable
