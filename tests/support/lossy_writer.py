"""A writer that loses the results of its first txns, as exactly-once writes do if the history of them is compacted."""

from etcd_aio import Client, DeleteResult, KeyLike, LeaseLike, PutResult, Txn, TxnResult, ValueLike, op
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import ResultLostError
from etcd_aio.once.replay import ranges_to_read


class LossyWriter:
    """Each txn is applied once; the first ones whose results depend on the store raise `ResultLostError`.

    Args:
        client: carries the txns out.
        times: how many results are lost.

    Attributes:
        lost: the branches that the txns whose results were lost have run: True for `then`.
    """

    def __init__(self, client: Client, times: int = 1) -> None:
        self._client = client
        self._times = times
        self.lost: list[bool] = []

    async def put(
        self,
        key: KeyLike,
        value: ValueLike,
        *,
        lease: LeaseLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> PutResult:
        return await self._client.put(key, value, lease=lease, prev_kv=prev_kv, timeout=timeout)

    async def delete(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        prev_kv: bool = False,
        timeout: Timeout = UNSET,
    ) -> DeleteResult:
        return await self._client.delete(
            key, range_end=range_end, prefix=prefix, from_key=from_key, prev_kv=prev_kv, timeout=timeout
        )

    def txn(self) -> Txn:
        return Txn(self._commit)

    async def _commit(self, operation: op.TxnOp, *, timeout: Timeout, retry: RetryMode | None) -> TxnResult:
        result = await self._client.do(operation, timeout=timeout)
        branch = operation.then if result.succeeded else operation.otherwise
        if len(self.lost) < self._times and ranges_to_read(branch) and not operation.is_read_only:
            self.lost.append(result.succeeded)
            raise ResultLostError(revision=result.revision, succeeded=result.succeeded)
        return result
