"""The builder behind `client.txn()`: when, then, otherwise, in this order."""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, Self

from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.reprs import when_constructed
from etcd_aio.errors import ClientUsageError, InvalidRequestError
from etcd_aio.kv.compare import Compare
from etcd_aio.kv.op import checked_compares, checked_operations
from etcd_aio.kv.operations import Op, Sends, TxnOp
from etcd_aio.types import TxnResult


class Txn:
    """An atomic step: if every comparison holds, one list of operations runs, else another.

        won = await client.txn().when(Key("lock").missing).then(op.put("lock", "me")).otherwise(op.get("lock")).commit()

    `when`, `then` and `otherwise` may each be called once, in this order, and each may be left out. A txn without
    comparisons runs `then`. All changes of a txn get the same revision, so a key may be put only once. Nothing is sent
    before `commit()`; call it again to send the same txn again. A txn that has operations and is never committed gives
    a ResourceWarning.
    """

    __slots__ = ("_do", "_is_pending", "_otherwise", "_then", "_when")

    def __init__(self, do: Sends[TxnOp, TxnResult]) -> None:
        self._do = do
        self._when: tuple[Compare, ...] | None = None
        self._then: tuple[Op, ...] | None = None
        self._otherwise: tuple[Op, ...] | None = None
        self._is_pending = False  # has operations, and was never committed

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:  # at exit the module may be gone
        if self._is_pending:
            text = f"{self!r} was never committed: write `await client.txn().then(...).commit()`"
            warn(text, ResourceWarning, stacklevel=1, source=self)  # tracemalloc shows where it was made

    if not TYPE_CHECKING:  # hidden from type checkers, so that they report the mistake

        def __await__(self) -> NoReturn:
            self._is_pending = False  # the error replaces the warning
            raise ClientUsageError("a txn cannot be awaited itself: write `await client.txn().then(...).commit()`")

    @when_constructed
    def __repr__(self) -> str:
        # Operations may hold values, which are secrets.
        parts = (("when", self._when), ("then", self._then), ("otherwise", self._otherwise))
        return f"<Txn {' '.join(f'{name}={len(items or ())}' for name, items in parts)}>"

    def when(self, *compares: Compare) -> Self:
        """Set the comparisons. All of them must hold.

        Raises:
            InvalidRequestError: `when` was called before, or comes after `then` or `otherwise`.
            TypeError: an argument is not a comparison.
        """
        self._is_pending = False  # if there are operations already, the error replaces the warning
        if self._when is not None:
            raise InvalidRequestError("when() is called twice: write all comparisons in one when(a, b, ...)")
        if self._then is not None or self._otherwise is not None:
            raise InvalidRequestError("when() comes before then() and otherwise()")
        self._when = checked_compares(compares, "when()")
        return self

    def then(self, *ops: Op) -> Self:
        """Set the operations that run if every comparison holds.

        Raises:
            InvalidRequestError: `then` was called before, or comes after `otherwise`.
            TypeError: an argument is not an operation.
        """
        self._is_pending = False  # an error here replaces the warning
        if self._then is not None:
            raise InvalidRequestError("then() is called twice: write all operations in one then(a, b, ...)")
        if self._otherwise is not None:
            raise InvalidRequestError("then() comes before otherwise()")
        self._then = checked_operations(ops, "then()")
        self._is_pending = bool(self._then)
        return self

    def otherwise(self, *ops: Op) -> Self:
        """Set the operations that run if a comparison does not hold.

        Raises:
            InvalidRequestError: `otherwise` was called before.
            TypeError: an argument is not an operation.
        """
        is_pending, self._is_pending = self._is_pending, False  # an error here replaces the warning
        if self._otherwise is not None:
            raise InvalidRequestError("otherwise() is called twice: write all operations in one otherwise(a, b, ...)")
        self._otherwise = checked_operations(ops, "otherwise()")
        self._is_pending = is_pending or bool(self._otherwise)
        return self

    async def commit(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> TxnResult:
        """Send the txn.

        A txn that changes nothing, in either branch, is retried like a read. Any other txn is a mutation: it is applied
        at most once, unless `retry="always"`. If a mutation is cancelled, it may have been applied or not.

        Args:
            timeout: seconds for the whole call; None waits for ever. The client's default if left out.
            retry: `"safe"`, `"never"` or `"always"`. The client's default if left out.

        Returns:
            TxnResult: true if the comparisons held; its `responses` are those of the branch that ran.

        Raises:
            InvalidRequestError: the txn writes, in either branch, and has a get or range with `revision=`. Nothing was
                sent.
            TooManyOpsError: more operations than the server allows in one txn (128 by default).
            DuplicateKeyError: one branch puts a key twice, or deletes a range with a key that it puts. If the range
                has no end, nothing was sent: etcd would accept the txn, and its members would crash.
            EtcdError: as every call; `maybe_applied` is True if the txn may have been applied.
        """
        self._is_pending = False
        operation = TxnOp(self._when or (), self._then or (), self._otherwise or ())
        return await self._do(operation, timeout=timeout, retry=retry)
