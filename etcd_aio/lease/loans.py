"""Loans: a lease for one acquisition, and its lender: a pool, or a session."""

import asyncio
from collections.abc import Coroutine
from typing import Protocol, TypeVar

from etcd_aio.errors import EtcdError
from etcd_aio.lease.keeper import OnLoss as OnLoss
from etcd_aio.lease.kept_lease import OnDoubt as OnDoubt

T = TypeVar("T")


class Loan(Protocol):
    """A lease for one acquisition. It ends by `give_back`, `abandon` or `discard`, whichever comes first."""

    @property
    def id(self) -> int:
        """The id of the lease."""
        ...

    @property
    def ttl(self) -> int:
        """Its TTL in seconds, as etcd granted it."""
        ...

    @property
    def remaining(self) -> float:
        """Seconds until its local deadline; 0 if it is gone. Thread-safe."""
        ...

    @property
    def renewal_error(self) -> EtcdError | None:
        """Why it cannot be renewed at present; None while it can."""
        ...

    @property
    def is_lost(self) -> bool:
        """Whether it was lost. Thread-safe."""
        ...

    @property
    def is_orphan(self) -> bool:
        """Whether its keys are to stay when the acquisition ends, for another process that adopts the lease."""
        ...

    @property
    def was_idle(self) -> bool:
        """Whether it was granted before this acquisition, so that it may have ended unnoticed."""
        ...

    def on_loss(self, callback: OnLoss | None) -> None:
        """Call this when the lease is lost, at once if it is lost already; None: the acquisition is ending."""
        ...

    def on_doubt(self, callback: OnDoubt | None) -> None:
        """Call this whenever the store may be another one than before; None: no more."""
        ...

    def give_back(self) -> None:
        """End the acquisition: its key is deleted, and no request that could create it again is unanswered."""
        ...

    def abandon(self) -> None:
        """End the acquisition, and leave the lease and its keys as they are, for another process."""
        ...

    async def discard(self) -> bool:
        """End the acquisition and have its key deleted, whatever request may still create it.

        It returns when that is done, or when etcd does it by itself. It raises no `EtcdError`.

        Returns:
            Whether it is done.
        """
        ...


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
