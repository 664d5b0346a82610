"""Lease, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.lease.lease`: do not edit.
"""

from typing import Self

from etcd_aio.base import UNSET, Timeout
from etcd_aio.errors import EtcdError, LeaseLostError
from etcd_aio.portal import Losable
from etcd_aio.types import LeaseKeepAliveResult, LeaseRevokeResult


class Lease(Losable):
    """A lease that is kept alive: `with client.lease(10) as lease:`.

    Entering grants it (with `adopt=True`, it renews one that exists), leaving revokes it, and in between it is renewed
    automatically. It is lost if another client revokes it, or if no renewal was acknowledged until its local deadline.
    That is the instant at which the last acknowledged request was sent, plus the TTL, so it passes before etcd itself
    lets the lease expire.

    When the lease is lost, the block goes on: a thread cannot be cancelled. Let it call `check()` or look at `is_lost`
    from time to time, or give `on_lost`; leaving raises `LeaseLostError` unless the block ends by an exception of its
    own.

    Closing the client loses its leases; etcd keeps them until their TTLs end. Leaving the block then raises
    `LeaseLostError` from a `ClientClosedError`.
    """

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def feed(self) -> None:
        """Tell the watchdog that the program works; see `Client.lease`. Thread-safe.

        Raises:
            LeaseLostError: the lease is lost, for example since it was not fed in time.
            ClientUsageError: it has no watchdog, or is not entered, or has ended.
            ForkedError: this is a child of the process that holds it.
        """
        self._run(self._aio.feed)

    @property
    def id(self) -> int:
        """The lease's id.

        Raises:
            ClientUsageError: the lease has not begun, so it does not exist yet.
        """
        return self._aio.id

    @property
    def remaining(self) -> float:
        """Seconds until the local deadline, which every acknowledged renewal extends; 0 if the lease is gone."""
        return self._aio.remaining

    @property
    def renewal_error(self) -> EtcdError | None:
        """Why the lease cannot be renewed at present; None if it can.

        A `NoAvailableEndpointsError`: no member is reached. A `PermissionDeniedError`: the server refuses to renew this
        lease, since the user may not write one of the keys that are attached to it (from etcd 3.5 on).
        """
        return self._aio.renewal_error

    @property
    def is_held(self) -> bool:
        """Whether it is held now: granted, and neither lost nor ended. Thread-safe, and as exact as `is_lost`."""
        return self._aio.is_held

    @property
    def is_lost(self) -> bool:
        """Whether the lease was lost while it was held. Once True, it stays True.

        It is also True if the local deadline has passed while the process did not run, or while the machine was
        suspended (on Linux; other systems may not count that time). Reading it then loses the lease for good, even if
        an acknowledgement lies unread in the socket, since the caller may have acted on the answer. Thread-safe.
        """
        return self._aio.is_lost

    def lost(self, *, timeout: float | None = None) -> LeaseLostError | None:
        """Wait until the lease is gone. Returns why it was lost; None if this process has ended it.

        Args:
            timeout: seconds to wait; 0 looks once. Default: None, no limit.

        Raises:
            EtcdTimeoutError: it was not gone in time.

        Ctrl-C changes nothing.
        """
        return self._run(self._aio.lost, timeout=timeout)

    def keep_alive_once(self, *, timeout: Timeout = UNSET) -> LeaseKeepAliveResult:
        """Renew the lease now, before it is due; see `Leases.keep_alive_once`."""
        return self._run(self._aio.keep_alive_once, timeout=timeout)

    def revoke(self, *, timeout: Timeout = UNSET) -> LeaseRevokeResult:
        """End the lease before its block ends. It is not renewed any more, even if the call fails.

        Raises:
            ClientUsageError: the lease has not begun.
            LeaseNotFoundError: the lease is gone already.
            EtcdError: as every call; the lease then ends by its TTL.
        """
        return self._run(self._aio.revoke, timeout=timeout)

    def orphan(self) -> int:
        """Stop renewing the lease without revoking it, also on closing. Returns its id. `on_end` is not called.

        The lease and its keys last until the TTL ends, or for as long as another process renews it.

        Raises:
            ClientUsageError: the lease has not begun.
        """
        return self._run(self._aio.orphan)

    @property
    def error(self) -> LeaseLostError | None:
        """Why it was lost; None if it is not."""
        return self._aio.error

    @property
    def ttl(self) -> int:
        """The seconds it lasts after each renewal; before it is granted, the requested ones."""
        return self._aio.ttl
