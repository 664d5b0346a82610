"""PooledLease: one lease of a pool, from its grant to its revocation."""

import asyncio
import logging
from collections.abc import Coroutine
from math import inf
from typing import Final, Protocol, TypeVar

from etcd_aio.base.logs import log_of
from etcd_aio.base.pauses import SOON, Pauses
from etcd_aio.errors import EtcdError, LeaseLostError, LeaseNotFoundError
from etcd_aio.lease.keeper import OnLoss
from etcd_aio.lease.kept_lease import KeptLease, OnDoubt

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


class PooledLease:
    """One lease of a pool. It is the `Loan` of its present holder.

    Args:
        pool: the pool.
        kept: the lease, which has not begun.
        is_adopted: it was another client's, so it is revoked when its holder gives it back.

    Attributes:
        kept: the same.
        wanted_ttl: the TTL that was asked for.
        holder: the task that has borrowed it.
        idle_since: the instant of the loop's clock at which it was given back; `inf` if it never was.
        is_doubtful: the store may be another one than that in which the lease was clean.
    """

    __slots__ = (
        "_callback",
        "_doubted",
        "_error",
        "_is_adopted",
        "_is_revoked",
        "_pool",
        "holder",
        "idle_since",
        "is_doubtful",
        "kept",
        "wanted_ttl",
    )

    def __init__(self, pool: Lender, kept: KeptLease, *, is_adopted: bool = False) -> None:
        self._pool = pool
        self._is_adopted = is_adopted
        self._callback: OnLoss | None = None
        self._doubted: OnDoubt | None = None
        self._error: LeaseLostError | None = None
        self._is_revoked = False
        self.kept = kept
        self.wanted_ttl = kept.ttl
        self.holder: asyncio.Task[object] | None = None
        self.idle_since = inf
        self.is_doubtful = False
        kept.on_end, kept.on_doubt = self._on_end, self._on_doubt

    def _on_end(self, error: LeaseLostError | None) -> None:
        self._pool.drop_idle(self)
        if error is not None:
            self.tell(error)

    def _on_doubt(self) -> None:
        self.is_doubtful = True
        if self._pool.drop_idle(self):
            self._pool.run(self.revoke(), "revocation of an idle lease")
        if self._doubted is not None:
            self._doubted()

    def tell(self, error: LeaseLostError) -> None:
        """The lease is lost for its holder, who is told at once."""
        if self._error is None:
            self._error = error
            callback, self._callback = self._callback, None
            if callback is not None:
                callback(error)

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
    def id(self) -> int:
        """The id of the lease."""
        return self.kept.id

    @property
    def ttl(self) -> int:
        """Its TTL in seconds, as etcd granted it."""
        return self.kept.ttl

    @property
    def remaining(self) -> float:
        """Seconds until its local deadline; 0 if it is gone. Thread-safe."""
        return 0.0 if self._error is not None else self.kept.remaining

    @property
    def renewal_error(self) -> EtcdError | None:
        """See `Loan.renewal_error`."""
        return self.kept.renewal_error

    @property
    def is_lost(self) -> bool:
        """Whether it was lost. Thread-safe."""
        return self._error is not None or self.kept.is_lost

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
