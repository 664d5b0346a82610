"""Loans: a lease for one acquisition, and its lender: a pool, or a session."""

import asyncio
from collections.abc import Coroutine
from typing import Protocol, TypeVar

from etcd_aio.errors import EtcdError, LeaseLostError
from etcd_aio.lease.keeper import OnLoss as OnLoss
from etcd_aio.lease.kept_lease import KeptLease, OnDoubt

T = TypeVar("T")


class Loan:
    """A lease for one acquisition. It ends by `give_back`, `abandon` or `discard`, whichever comes first.

    Args:
        kept: the lease.

    Attributes:
        kept: the same.
        holder: the task that has borrowed it; None once the acquisition has ended.
        is_doubtful: the store may be another one than that in which the lease was clean.
    """

    __slots__ = ("_callback", "_doubted", "_error", "holder", "is_doubtful", "kept")

    def __init__(self, kept: KeptLease) -> None:
        self.kept = kept
        self.holder: asyncio.Task[object] | None = None
        self.is_doubtful = False
        self._callback: OnLoss | None = None
        self._doubted: OnDoubt | None = None
        self._error: LeaseLostError | None = None

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
        """Why it cannot be renewed at present; None while it can."""
        return self.kept.renewal_error

    @property
    def is_lost(self) -> bool:
        """Whether it was lost. Thread-safe."""
        return self._error is not None or self.kept.is_lost

    @property
    def is_orphan(self) -> bool:
        """Whether its keys are to stay when the acquisition ends, for another process that adopts the lease."""
        return False

    @property
    def was_idle(self) -> bool:
        """Whether it was granted before this acquisition, so that it may have ended unnoticed."""
        return False

    def on_loss(self, callback: OnLoss | None) -> None:
        """Call this when the lease is lost, at once if it is lost already; None: the acquisition is ending."""
        self._callback = callback
        if callback is not None and self._error is not None:
            self._callback = None
            callback(self._error)

    def on_doubt(self, callback: OnDoubt | None) -> None:
        """Call this whenever the store may be another one than before; None: no more."""
        self._doubted = callback

    def tell(self, error: LeaseLostError) -> None:
        """The lease is lost for the holder, who is told at once."""
        if self._error is None:
            self._error = error
            callback, self._callback = self._callback, None
            if callback is not None:
                callback(error)

    def doubt(self) -> None:
        """The store may be another one."""
        self.is_doubtful = True
        if self._doubted is not None:
            self._doubted()

    def give_back(self) -> None:
        """End the acquisition: its key is deleted, and no request that could create it again is unanswered."""
        raise NotImplementedError  # pools and sessions have their own

    def abandon(self) -> None:
        """End the acquisition, and leave the lease and its keys as they are, for another process."""
        raise NotImplementedError  # pools and sessions have their own

    async def discard(self) -> bool:
        """End the acquisition and have its key deleted, whatever request may still create it.

        It returns when that is done, or when etcd does it by itself. It raises no `EtcdError`.

        Returns:
            Whether it is done.
        """
        raise NotImplementedError  # pools and sessions have their own


class LeaseSource(Protocol):
    """Lends the leases of acquisitions: a pool, or a session."""

    @property
    def over(self) -> asyncio.Event:
        """Set once it lends no lease any more: the client is being closed, or the session has ended."""
        ...

    async def borrow(self, ttl: int, key_prefix: bytes) -> Loan:
        """Lend a lease for a key with this prefix.

        Args:
            ttl: of the lease, in seconds; a session has one lease, with its own.
            key_prefix: of the key; a pool lends a lease of its own for each.

        Raises:
            LeaseLostError: it is a session that is over.
            ClientUsageError: it is a session, and this task has a key with this prefix already.
            EtcdError: there is none.

        Cancellation: the lease stays with the source.
        """
        ...

    async def try_borrow(self, ttl: int, key_prefix: bytes) -> Loan | None:
        """As `borrow`; but None at once if it is a session, and a task uses the prefix."""
        ...

    async def adopt(self, id: int) -> Loan:
        """Take over a lease that exists already, and lend it.

        Raises:
            LeaseNotFoundError: there is no such lease.
            EtcdError: it could not be renewed.

        Cancellation: the lease is left alone.
        """
        ...

    def run(self, work: Coroutine[object, object, T], name: str) -> "asyncio.Task[T]":
        """Run clean-up that may outlive the caller. Closing the client waits for it, for a limited time."""
        ...
