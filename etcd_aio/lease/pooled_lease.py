"""PooledLease: one lease of a pool, from its grant to its revocation."""

import asyncio
import logging
from collections.abc import Coroutine
from math import inf
from typing import Final, Protocol, TypeVar

from etcd_aio.base.logs import log_of
from etcd_aio.base.pauses import SOON, Pauses
from etcd_aio.errors import EtcdError, LeaseLostError, LeaseNotFoundError
from etcd_aio.lease.kept_lease import KeptLease
from etcd_aio.lease.loans import Loan

T = TypeVar("T")

logger: Final = logging.getLogger("etcd_aio.locks")

_REVOKE_SECONDS: Final = 2.0  # for one attempt: twice etcd's default election timeout


class Lender(Protocol):
    """The pool, as its leases see it."""

    name: str

    def take_back(self, lease: "PooledLease") -> None:
        """The lease is clean: lend it again."""
        ...

    def forget(self, lease: "PooledLease") -> None:
        """The lease is not in use any more."""
        ...

    def drop_idle(self, lease: "PooledLease") -> bool:
        """Never lend this lease again. Returns whether it was idle."""
        ...

    def run(self, work: Coroutine[object, object, T], name: str) -> "asyncio.Task[T]":
        """Run clean-up that may outlive the caller."""
        ...


class PooledLease(Loan):
    """One lease of a pool. It is the loan of its present holder.

    Args:
        pool: the pool.
        kept: the lease, which has not begun.
        is_adopted: it was another client's, so it is revoked when its holder gives it back.

    Attributes:
        wanted_ttl: the TTL that was asked for.
        idle_since: the instant of the loop's clock at which it was given back; `inf` if it never was.
    """

    __slots__ = ("_is_adopted", "_is_revoked", "_pool", "idle_since", "wanted_ttl")

    def __init__(self, pool: Lender, kept: KeptLease, *, is_adopted: bool = False) -> None:
        super().__init__(kept)
        self._pool = pool
        self._is_adopted = is_adopted
        self._is_revoked = False
        self.wanted_ttl = kept.ttl
        self.idle_since = inf
        kept.on_end, kept.on_doubt = self._on_end, self.doubt

    def _on_end(self, error: LeaseLostError | None) -> None:
        self._pool.drop_idle(self)
        if error is not None:
            self.tell(error)

    def doubt(self) -> None:
        """See `Loan.doubt`. It may have keys that were deleted, so it is not lent again."""
        if self._pool.drop_idle(self):
            self._pool.run(self.revoke(), "revocation of an idle lease")
        super().doubt()

    async def revoke(self) -> bool:
        """Revoke it, with patience: until that is done, or the TTL has passed. It raises no `EtcdError`.

        A lost lease is revoked too, with one attempt: a new leader may have given it another TTL.

        Returns:
            Whether it is gone by this call.
        """
        if self._is_revoked:
            return False
        self._is_revoked = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (0 if self.is_lost else self.ttl)
        pauses = Pauses(SOON)
        while True:
            try:
                await self.kept.revoke(timeout=_REVOKE_SECONDS)
            except LeaseNotFoundError:
                return True
            except EtcdError as error:
                wait = pauses.next()
                if not error.retryable or loop.time() + wait >= deadline:
                    text = "lease 0x%x of a lock could not be revoked; it expires after its TTL: %s"
                    log_of(logger, self._pool.name).warning(text, self.id, error)
                    return False
                await asyncio.sleep(wait)
            else:
                return True

    @property
    def was_told(self) -> bool:
        """Whether its holder was told that it is lost."""
        return self._error is not None

    # As the loan of its holder.

    @property
    def was_idle(self) -> bool:
        """Whether it was an idle lease before."""
        return self.idle_since < inf

    def give_back(self) -> None:
        """See `Loan.give_back`."""
        self._callback = self._doubted = None
        if self._is_adopted or self.is_doubtful:
            self._pool.forget(self)
            self._pool.run(self.revoke(), "revocation of a lease")
        else:
            self._pool.take_back(self)

    def abandon(self) -> None:
        """See `Loan.abandon`: it is not renewed any more, and not revoked."""
        self._callback = self._doubted = None
        self.kept.orphan()
        self._pool.forget(self)

    async def discard(self) -> bool:
        """See `Loan.discard`."""
        self._callback = self._doubted = None
        try:
            return await self.revoke()
        finally:
            self._pool.forget(self)
