"""RecipeCalls: the store that a recipe reads, the writer of its txns, and the timeout of its calls."""

import asyncio
from typing import TypeVar

from etcd_aio import Operation, TxnResult, op
from etcd_aio.base import NEVER, UNSET, RetryMode, Timeout, deadline_after, time_left
from etcd_aio.calls import StoreCalls, Writer, check_store, is_exact, writer_for

R = TypeVar("R")


class RecipeCalls:
    """The calls of one object of a recipe, which was given these arguments.

    Attributes:
        store: reads, and sends txns again.
        is_exact: whether the answers of the writer are true of every copy of a txn.
        timeout: seconds for a call that has no `timeout` of its own; None for no limit.

    Raises:
        InvalidRequestError, TypeError: the writer is of another store, or the timeout is invalid.
    """

    __slots__ = ("_writer", "is_exact", "store", "timeout")

    def __init__(self, store: StoreCalls, writer: Writer | None = None, timeout: Timeout = UNSET) -> None:
        check_store(store)
        self.store = store
        self._writer = writer_for(store, writer)
        self.is_exact = is_exact(self._writer)
        self.timeout = store.backend.shared.seconds(timeout)

    def deadline(self, timeout: Timeout) -> float:
        """The instant of the running loop by which a call ends that begins now, and has a timeout of its own or not.

        Raises:
            InvalidRequestError, TypeError: it is no timeout.
        """
        return deadline_after(self.timeout if timeout is UNSET else timeout, asyncio.get_running_loop().time())

    async def do(self, operation: Operation[R], deadline: float, retry: RetryMode | None = None) -> R:
        """Send an operation, not through the writer."""
        return await self.store.do(operation, timeout=seconds_left(deadline), retry=retry)

    async def commit(self, txn: op.TxnOp, deadline: float) -> TxnResult:
        """Send a txn through the writer.

        A store must not repeat it by itself when its answer is lost, whatever its own mode is: a copy that meets the
        effect of the first one would be taken for a conflict.
        """
        through = self._writer.txn().when(*txn.when).then(*txn.then).otherwise(*txn.otherwise)
        return await through.commit(timeout=seconds_left(deadline), retry=None if self.is_exact else "safe")


def seconds_left(deadline: float) -> float | None:
    """The timeout of a call that must end by an instant of the running loop; None if that is never."""
    return None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())
