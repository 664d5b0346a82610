"""PooledLease: one lease of a pool, from its grant to its revocation."""

import asyncio
import logging
import random
from collections.abc import Coroutine
from math import inf
from typing import Final, Protocol, TypeVar

from etcd_aio.base.aio import resolve, start_background_task
from etcd_aio.base.logs import log_for
from etcd_aio.concurrency.loans import BACKOFF, OnDoubt, OnLoss
from etcd_aio.errors import ClientClosedError, EtcdError, LeaseLostError, LeaseNotFoundError
from etcd_aio.lease import KeptLease
from etcd_aio.store import Store

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.locks")

_REVOKE_SECONDS: Final = 2.0  # for one attempt: twice etcd's default election timeout


class Lender(Protocol):
    """The pool, as its leases see it."""

    def take_back(self, lease: "PooledLease") -> None:
        """The lease is clean: lend it again."""
        ...

    def forget(self, lease: "PooledLease") -> None:
        """The lease is not in use any more."""
        ...

    def drop_idle(self, lease: "PooledLease") -> None:
        """The lease is gone: lend it no more."""
        ...

    def doubt(self, lease: "PooledLease") -> None:
        """The lease may have keys that were deleted: lend it no more."""
        ...

    def run(self, work: Coroutine[object, object, T], name: str) -> "asyncio.Task[T]":
        """Run clean-up that may outlive the caller."""
        ...


class PooledLease:
    """One lease of a pool. It is the `Loan` of its present holder.

    Args:
        pool: the pool.
        store: grants the lease.
        wanted_ttl: the TTL to ask for.
        adopted: the id of a lease that exists already, to take over in place of a new one. It is revoked when its
            holder gives it back.

    Attributes:
        is_doubtful: the store may be another one than that in which the lease was clean.
    """

    __slots__ = (
        "_callback",
        "_doubted",
        "_error",
        "_granted",
        "_granting",
        "_is_adopted",
        "_is_retired",
        "_lease",
        "_log",
        "_pool",
        "holder",
        "id",
        "idle_since",
        "is_doubtful",
        "wanted_ttl",
    )

    def __init__(self, pool: Lender, store: Store, wanted_ttl: int, adopted: int | None = None) -> None:
        self._pool = pool
        self._log = log_for(logger, store)
        self._lease: KeptLease | None = None
        self.id = 0  # until it is granted
        self._granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._callback: OnLoss | None = None
        self._doubted: OnDoubt | None = None
        self.is_doubtful = False
        self._error: LeaseLostError | None = None
        self._is_retired = False
        self.wanted_ttl = wanted_ttl
        self.idle_since = inf  # it never was
        self.holder: asyncio.Task[object] | None = None  # the task that borrowed it
        self._is_adopted = adopted is not None
        # Raises for a wrong TTL, or a wrong id.
        lease = store.leases.kept(
            wanted_ttl, id=adopted, adopt=self._is_adopted, on_end=self._on_end, on_doubt=self._on_doubt
        )
        granting = start_background_task(self._grant(lease), name="etcd_aio lease of a lock")
        self._granting: asyncio.Task[None] | None = granting

    async def _grant(self, lease: KeptLease) -> None:
        try:
            await lease.begin()
        except EtcdError as error:
            if not self._granted.done():
                self._granted.set_exception(error)
                self._granted.exception()  # retrieved: the borrower may have been cancelled meanwhile
        else:
            self._lease, self.id = lease, lease.id
            resolve(self._granted, None)
        finally:
            self._granted.cancel()
            self._granting = None  # the task needs memory for as long as it is known

    def _on_end(self, error: LeaseLostError | None) -> None:
        self._pool.drop_idle(self)
        if error is not None:
            self.tell(error)

    def _on_doubt(self) -> None:
        self.is_doubtful = True
        self._pool.doubt(self)
        if self._doubted is not None:
            self._doubted()

    async def granted(self) -> None:
        """Wait until it is granted; cancelling the wait does not stop the grant.

        Raises:
            EtcdError: the grant failed.
        """
        await asyncio.wait([self._granted])
        if self._granted.cancelled():
            raise ClientClosedError
        self._granted.result()

    def tell(self, error: LeaseLostError) -> None:
        """The lease is lost for its holder, who is told at once."""
        if self._error is None:
            self._error = error
            callback, self._callback = self._callback, None
            if callback is not None:
                callback(error)

    async def retire(self) -> bool:
        """Revoke it, with patience: until that is done, or the TTL has passed. It raises no `EtcdError`.

        A lost lease is revoked too, with one attempt: a new leader may have given it another TTL.

        Returns:
            Whether it is gone by this call.
        """
        lease = self._lease
        if self._is_retired or lease is None:
            return False
        self._is_retired = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (0 if self.is_lost else lease.ttl)
        failures = 0
        while True:
            try:
                await lease.revoke(timeout=_REVOKE_SECONDS)
            except LeaseNotFoundError:
                return True
            except EtcdError as error:
                wait = BACKOFF.wait(failures, random.random)
                if not error.retryable or loop.time() + wait >= deadline:
                    self._log.warning(
                        "lease 0x%x of a lock could not be revoked; it expires after its TTL: %s", lease.id, error
                    )
                    return False
                failures += 1
                await asyncio.sleep(wait)
            else:
                return True

    @property
    def was_told(self) -> bool:
        """Whether its holder was told that it is lost."""
        return self._error is not None

    # As the loan of its holder.

    @property
    def ttl(self) -> int:
        """Its TTL in seconds, as etcd granted it."""
        return self.wanted_ttl if self._lease is None else self._lease.ttl

    @property
    def remaining(self) -> float:
        """Seconds until its local deadline; 0 if it is gone. Thread-safe."""
        return 0.0 if self._error is not None or self._lease is None else self._lease.remaining

    @property
    def renewal_error(self) -> EtcdError | None:
        """See `Loan.renewal_error`."""
        return None if self._lease is None else self._lease.renewal_error

    @property
    def is_lost(self) -> bool:
        """Whether it was lost. Thread-safe."""
        return self._error is not None or self._lease is None or self._lease.is_lost

    @property
    def is_orphan(self) -> bool:
        """Never: a lease of the pool is no other's."""
        return False

    @property
    def was_idle(self) -> bool:
        """Whether it was an idle lease before."""
        return self.idle_since < inf

    def on_loss(self, callback: OnLoss | None) -> None:
        """See `Loan.on_loss`."""
        self._callback = callback
        if callback is not None and self._error is not None:
            self._callback = None
            callback(self._error)

    def on_doubt(self, callback: OnDoubt | None) -> None:
        """See `Loan.on_doubt`."""
        self._doubted = callback

    def give_back(self) -> None:
        """See `Loan.give_back`."""
        self._callback = self._doubted = None
        if self._is_adopted or self.is_doubtful:
            self._pool.forget(self)
            self._pool.run(self.retire(), "revocation of a lease")
        else:
            self._pool.take_back(self)

    def let_go(self) -> None:
        """See `Loan.let_go`: it is not renewed any more, and not revoked."""
        self._callback = self._doubted = None
        if self._lease is not None:
            self._lease.orphan()
        if self._granting is not None:
            self._granting.cancel()
        self._pool.forget(self)

    async def discard(self) -> bool:
        """See `Loan.discard`."""
        self._callback = self._doubted = None
        try:
            return await self.retire()
        finally:
            self._pool.forget(self)
