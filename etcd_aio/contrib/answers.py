"""Answers: a write that is sent again until it is answered. For writes that change nothing if they are applied twice.

A member that loses the leader of the cluster may forget a write that it has passed on: no answer comes, although the
cluster serves again after a second. So an attempt waits no longer than an election takes, and the next one, which goes
to another member, waits longer, in case that the cluster is only slow.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from etcd_aio import TxnResult
from etcd_aio.errors import EtcdError
from etcd_aio.sync import Txn

R = TypeVar("R")

_FIRST_SECONDS: Final = 2.0  # twice etcd's default election timeout
_GROWTH: Final = 2.0


def until_answered(send: Callable[[float], R], seconds: float, *, clock: Callable[[], float] = time.monotonic) -> R:
    """Send a request until it is answered.

    Args:
        send: sends it, with the seconds that it may take.
        seconds: for all attempts.
        clock: the monotonic time in seconds.

    Raises:
        EtcdTimeoutError: there was no answer in time; it may have been applied.
        EtcdError: as the request, if another attempt could not help.
    """
    end, patience = clock() + seconds, _FIRST_SECONDS
    while True:
        left = end - clock()
        try:
            return send(max(0.001, min(patience, left)))
        except EtcdError as error:
            if not error.retryable or left <= patience:
                raise
        patience *= _GROWTH


def commit_until_answered(txn: Txn, seconds: float) -> TxnResult:
    """Send a txn until it is answered. It tells by itself whether it was applied before; see `until_answered`."""
    return until_answered(lambda timeout: txn.commit(timeout=timeout, retry="always"), seconds)
