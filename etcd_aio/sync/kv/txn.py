"""Txn, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.kv.txn`: do not edit.
"""

from typing import Self

from etcd_aio.base import UNSET, RetryMode, Timeout
from etcd_aio.kv import Compare, Op
from etcd_aio.portal import Facade
from etcd_aio.types import TxnResult


class Txn(Facade):
    """An atomic step: if every comparison holds, one list of operations runs, else another.

        won = client.txn().when(Key("lock").missing).then(op.put("lock", "me")).otherwise(op.get("lock")).commit()

    `when`, `then` and `otherwise` may each be called once, in this order, and each may be left out. A txn without
    comparisons runs `then`. All changes of a txn get the same revision, so a key may be put only once. Nothing is sent
    before `commit()`; call it again to send the same txn again. A txn that has operations and is never committed gives
    a ResourceWarning.
    """

    def when(self, *compares: Compare) -> Self:
        """Set the comparisons. All of them must hold.

        Raises:
            InvalidRequestError: `when` was called before, or comes after `then` or `otherwise`.
            TypeError: an argument is not a comparison.
        """
        self._aio.when(*compares)
        return self

    def then(self, *ops: Op) -> Self:
        """Set the operations that run if every comparison holds.

        Raises:
            InvalidRequestError: `then` was called before, or comes after `otherwise`.
            TypeError: an argument is not an operation.
        """
        self._aio.then(*ops)
        return self

    def otherwise(self, *ops: Op) -> Self:
        """Set the operations that run if a comparison does not hold.

        Raises:
            InvalidRequestError: `otherwise` was called before.
            TypeError: an argument is not an operation.
        """
        self._aio.otherwise(*ops)
        return self

    def commit(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> TxnResult:
        """Send the txn.

        A txn that changes nothing, in either branch, is retried like a read. Any other txn is a mutation: it is applied
        at most once, unless `retry="always"`. If Ctrl-C interrupts a mutation, it may have been applied or not.

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
        return self._run(self._aio.commit, timeout=timeout, retry=retry)
