"""Txn: the builder behind `client.txn()`.

Knows: the order of when, then, otherwise. Never knows: how a txn is sent; it is given what commits it.
"""

import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn, Self, TypeAlias

from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import ClientUsageError, InvalidRequestError
from etcd_aio.kv.compare import Compare
from etcd_aio.kv.op import comparisons, operations
from etcd_aio.kv.operations import Op, TxnOp
from etcd_aio.types import TxnResult

Commit: TypeAlias = Callable[[TxnOp, Timeout, RetryMode | None], Awaitable[TxnResult]]
"""Sends a txn: the operation, `timeout=` and `retry=`."""


class Txn:
    """One atomic step: if all comparisons hold, one list of operations is carried out, else another.

        won = await client.txn().when(Key("lock").missing).then(op.put("lock", "me")).otherwise(op.get("lock")).commit()

    `when`, `then` and `otherwise` are each given at most once, in this order; every one may be left out. A txn without
    comparisons carries out `then`. All changes of a txn get one revision, so a key may be put only once. Nothing is
    sent before `commit()`, which may be called again to try the same txn once more. A txn that has operations and is
    never committed gives a ResourceWarning.
    """

    __slots__ = ("_commit", "_is_pending", "_otherwise", "_then", "_when")

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._when: tuple[Compare, ...] | None = None
        self._then: tuple[Op, ...] | None = None
        self._otherwise: tuple[Op, ...] | None = None
        self._is_pending = False  # it has operations, and was never committed

    def __del__(self) -> None:
        if self._is_pending:
            text = f"{self!r} was never committed: write `await client.txn().then(...).commit()`"
            warnings.warn(text, ResourceWarning, stacklevel=1, source=self)  # tracemalloc tells where it was made

    if not TYPE_CHECKING:  # a type checker finds the mistake by this being absent

        def __await__(self) -> NoReturn:
            self._is_pending = False  # said now
            raise ClientUsageError("a txn is not awaited itself: write `await client.txn().then(...).commit()`")

    def __repr__(self) -> str:
        # Operations may hold values, which no repr shows.
        parts = (("when", self._when), ("then", self._then), ("otherwise", self._otherwise))
        return f"<Txn {' '.join(f'{name}={len(given or ())}' for name, given in parts)}>"

    def when(self, *compares: Compare) -> Self:
        """The comparisons, of which all must hold.

        Raises:
            InvalidRequestError: it was given already, or comes after `then` or `otherwise`.
            TypeError: something is no comparison.
        """
        self._is_pending = False  # if there are operations already, this is an error, which needs no warning besides
        if self._when is not None:
            raise InvalidRequestError("when() is given twice: write all comparisons in one when(a, b, ...)")
        if self._then is not None or self._otherwise is not None:
            raise InvalidRequestError("when() comes before then() and otherwise()")
        self._when = comparisons(compares, "when()")
        return self

    def then(self, *ops: Op) -> Self:
        """What is carried out if every comparison holds.

        Raises:
            InvalidRequestError: it was given already, or comes after `otherwise`.
            TypeError: something is no operation.
        """
        self._is_pending = False  # an error here needs no warning besides
        if self._then is not None:
            raise InvalidRequestError("then() is given twice: write all operations in one then(a, b, ...)")
        if self._otherwise is not None:
            raise InvalidRequestError("then() comes before otherwise()")
        self._then = operations(ops, "then()")
        self._is_pending = bool(self._then)
        return self

    def otherwise(self, *ops: Op) -> Self:
        """What is carried out if a comparison does not hold.

        Raises:
            InvalidRequestError: it was given already.
            TypeError: something is no operation.
        """
        is_pending, self._is_pending = self._is_pending, False  # an error here needs no warning besides
        if self._otherwise is not None:
            raise InvalidRequestError("otherwise() is given twice: write all operations in one otherwise(a, b, ...)")
        self._otherwise = operations(ops, "otherwise()")
        self._is_pending = is_pending or bool(self._otherwise)
        return self

    async def commit(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> TxnResult:
        """Carry it out.

        A txn that changes nothing, in either branch, is repeated like a read. Any other is a mutation: it is carried
        out at most once, unless `retry="always"`.

        Args:
            timeout: seconds for the whole call; None waits for ever. The client's default if left out.
            retry: `"safe"`, `"never"` or `"always"`. The client's default if left out.

        Returns:
            TxnResult: true if the comparisons held; its `responses` are those of the branch that ran.

        Raises:
            TooManyOpsError: more operations than the server allows in one txn (128 by default).
            DuplicateKeyError: one branch puts a key twice.
            EtcdError: as every call; `maybe_applied` tells whether the txn may have been carried out.

        Cancelling it may leave the txn carried out or not, as with every mutation.
        """
        self._is_pending = False
        return await self._commit(
            TxnOp(self._when or (), self._then or (), self._otherwise or ()),
            timeout,
            retry,
        )
