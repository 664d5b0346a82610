"""Hedging: a slow read is sent to a second member too, and the first answer counts (gRPC A6).

An error that the second member would repeat (the revision was compacted, the request is wrong) ends both calls at once;
after an error that may be temporary the other call goes on.

Hedging trades load for tail latency: a member that pauses costs `after` instead of its whole pause. Only requests that
may run twice are hedged. A budget keeps a slow cluster from getting every request twice: a hedge costs one, a call
earns a tenth.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias, TypeVar

from etcd_aio.base.aio import start_task
from etcd_aio.errors import EtcdError

_T = TypeVar("_T")

_Work: TypeAlias = Coroutine[Any, Any, _T]

_EARNED: Final = 0.1  # of a hedge, by each call: at most a tenth more calls
_MOST: Final = 10.0  # hedges at once, after a quiet period


class Hedging:
    """The hedges of one client.

    Args:
        after: seconds after which an unanswered read is sent to another member too.
        may_hedge: whether there is another member now.
    """

    def __init__(self, after: float, may_hedge: Callable[[], bool]) -> None:
        self._after = after
        self._may_hedge = may_hedge
        self._budget = _MOST

    async def run(self, first: _Work[_T], second: Callable[[], _Work[_T]]) -> _T:
        """Return the first answer of one call, or of two.

        Args:
            first: the call.
            second: makes the other call, which should go to another member.

        Raises:
            EtcdError: the error of either call if it is final; the error of the first call if both failed otherwise.

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
            # This takes one turn of the loop: a cancelled call waits for nothing.
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
    """Whether a finished call failed in a way that the other call may not."""
    if call.cancelled():
        return True
    error = call.exception()
    return isinstance(error, EtcdError) and error.retryable
