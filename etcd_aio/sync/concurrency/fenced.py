"""FencedWriter, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.concurrency.fenced`: do not edit.
"""

from typing import Generic, TypeVar

from etcd_aio.arguments import KeyLike, LeaseLike, ValueLike
from etcd_aio.base import UNSET, Timeout
from etcd_aio.errors import EtcdError
from etcd_aio.portal import Facade
from etcd_aio.sync.kv.txn import Txn
from etcd_aio.types import DeleteResult, PutResult

E = TypeVar("E", bound=EtcdError)


class FencedWriter(Facade, Generic[E]):
    """A `Writer` for what a `Held` holds.

    Each call raises the error of the loss, such as `LockLostError`, if the ownership is lost: before anything is sent,
    if that is known here, and otherwise when etcd refuses the write. It raises `NotHeldError` after the block. With
    `retry="always"`, `maybe_applied` of a refusal is True: an earlier copy may have been applied.

    Writes are retried as with `retry="safe"`, unless a commit says otherwise, whatever is the default of the client:
    each is applied at most once. With `Client(retry="always")`, a refusal would not tell whether an earlier copy was
    applied; with `Client(retry="never")`, a request that was not sent, or not processed, is sent again all the same.

    Raises:
        InvalidRequestError: the writer is of another namespace or client, where the own key is not.
    """

    def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> PutResult:
        """Put a value under a key, as `client.put()` does."""
        return self._run(self._aio.put, key, value, lease=lease, prev_kv=prev_kv, timeout=timeout)

    def delete(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> DeleteResult:
        """Delete a key or a range, as `client.delete()` does."""
        return self._run(
            self._aio.delete,
            key,
            range_end=range_end,
            prefix=prefix,
            from_key=from_key,
            prev_kv=prev_kv,
            timeout=timeout,
        )

    def txn(self) -> Txn:
        """Build a txn, as `client.txn()` does. The ownership takes one of the operations that etcd allows in a txn."""
        return self._made("txn")
