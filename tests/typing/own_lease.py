import asyncio
from types import TracebackType
from typing import Self

from etcd_aio import Client, Key, KeyLike, op
from etcd_aio.arguments import encode_key, whole_number
from etcd_aio.base import TaskCanceller
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import EtcdError, LeaseLostError
from etcd_aio.lease import Loan


class TakenError(EtcdError):
    """Another process owns the key."""


class Owned:
    """A block that owns a key: `async with Owned(client, "reports"):`."""

    def __init__(
        self, store: StoreCalls, name: KeyLike, *, ttl: int = 10
    ) -> None:
        self._store = store
        self._pool = store.leases.pool
        self._key = encode_key(name, "name")
        self._ttl = whole_number(ttl, "ttl", minimum=1)
        self._lost: LeaseLostError | None = None

    async def __aenter__(self) -> Self:
        async with asyncio.timeout(self._ttl):  # `borrow` has no timeout
            self._loan = loan = await self._pool.borrow(self._ttl)
        put = op.put(self._key, "", lease=loan.id)
        txn = self._store.txn().when(Key(self._key).missing).then(put)
        try:
            result = await txn.commit()
        except BaseException:  # the put may still be on its way
            self._revoke(loan)
            raise
        if not result:
            loan.give_back()  # answered: nothing was put
            raise TakenError(f"{self._key!r} is taken")
        self._revision = result.revision
        self._canceller = TaskCanceller()
        loan.on_loss(self._on_loss)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        loan = self._loan
        loan.on_loss(None)
        if self._lost is not None:
            self._revoke(loan)
            self._canceller.leave_with(self._lost, exc)
            return
        self._canceller.leave()
        own = Key(self._key).create_revision == self._revision
        try:
            delete = op.delete(self._key)
            await self._store.txn().when(own).then(delete).commit()
        except BaseException:  # the key may be there
            self._revoke(loan)
            raise
        loan.give_back()  # answered: the key is not there

    def _on_loss(self, error: LeaseLostError) -> None:
        self._lost = error
        self._canceller.cancel()

    def _revoke(self, loan: Loan) -> None:
        self._pool.run(loan.revoke(), "end of an owned key")
