"""Loans: a lease that is borrowed for one acquisition, and its source: a pool, or a session.

An acquisition ends in one of three ways. It returns the lease: its key is deleted, and no request that could create it
again is unanswered. It revokes it, if that is in doubt. Or it abandons it: another process goes on with the key.
"""

import asyncio
from collections.abc import Coroutine
from typing import Protocol, TypeVar

from etcd_aio.base.user import User, current_user
from etcd_aio.errors import EtcdError, LeaseLostError
from etcd_aio.lease.keeper import OnLoss as OnLoss
from etcd_aio.lease.kept_lease import KeptLease, OnDoubt

T = TypeVar("T")


class Loan:
    """A lease for one acquisition. It ends by `give_back`, `revoke` or `abandon`, whichever comes first.

    Args:
        kept: the lease; an attribute, too.

    Attributes:
        holder: the user that has borrowed it; None once the acquisition is ending.
        is_doubtful: the store may be another one than that in which the lease was clean.
        is_orphan: its keys are to stay when the acquisition ends, for another process that adopts the lease.
        was_idle: it was granted before this acquisition, so it may have ended unnoticed.
    """

    __slots__ = ("_callback", "_doubted", "_error", "holder", "is_doubtful", "is_orphan", "kept", "was_idle")

    def __init__(self, kept: KeptLease) -> None:
        self.kept = kept
        self.holder: User | None = current_user()
        self.is_doubtful: bool = False
        self.is_orphan: bool = False
        self.was_idle: bool = False
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

    def on_loss(self, callback: OnLoss | None) -> None:
        """Call this when the lease is lost, at once if it is lost already; None: the acquisition is ending."""
        self._callback = callback
        if callback is None:
            self.holder = None
        elif self._error is not None:
            self._callback = None
            callback(self._error)

    def on_doubt(self, callback: OnDoubt | None) -> None:
        """Call this whenever the store may be another one than before; None: no more."""
        self._doubted = callback

    def lose(self, error: LeaseLostError) -> None:
        """The lease is lost: the holder learns that at once."""
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
        """Return the lease: its key is deleted, and no request that could create it again is unanswered."""
        raise NotImplementedError  # pools and sessions have their own

    def abandon(self) -> None:
        """Leave the lease and its keys as they are, for another process."""
        raise NotImplementedError  # pools and sessions have their own

    async def revoke(self) -> bool:
        """Have the key deleted, whatever request may still create it.

        It ends when that is done, or when etcd does it by itself. It raises no `EtcdError`.

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

    async def borrow(self, ttl: int, key_prefix: bytes, *, waits: bool = True) -> Loan | None:
        """Borrow a lease for a key with this prefix.

        Args:
            ttl: of the lease, in seconds; a session has one lease, with its own.
            key_prefix: of the key; a pool lends a lease of its own for each.
            waits: for other tasks of a session that use the prefix.

        Returns:
            The lease; None if another task uses the prefix, and this does not wait.

        Raises:
            LeaseLostError: it is a session that is over.
            ClientUsageError: it is a session, and this task has a key with this prefix already.
            EtcdError: there is none.

        Cancellation: the lease stays with the source.
        """
        ...

    async def adopt(self, id: int) -> Loan:
        """Take over a lease that exists already, and borrow it.

        Raises:
            LeaseNotFoundError: there is no such lease.
            EtcdError: it could not be renewed.

        Cancellation: the lease is left alone.
        """
        ...

    def run(self, work: Coroutine[object, object, T], name: str) -> "asyncio.Task[T]":
        """Run clean-up that may outlive the caller. Closing the client waits for it, for a limited time."""
        ...
