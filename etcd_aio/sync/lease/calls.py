"""Leases, for blocking code.

Made by `python -m release.facade --write` from `etcd_aio.lease.calls`: do not edit.
"""

from typing import ClassVar

from etcd_aio.arguments import LeaseLike
from etcd_aio.base import UNSET, RetryMode, Timeout
from etcd_aio.portal import Facade
from etcd_aio.types import (
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseTimeToLiveResult,
)


class Leases(Facade):
    """The lease API: `client.leases`. Most programs only need `client.lease()`.

    A lease argument is an id or an object with an `.id`. Every call takes `timeout` and `retry`, and raises, as the
    key-value calls do.
    """

    _survives_fork: ClassVar[bool] = True

    def grant(
        self, ttl: int, id: int | None = None, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseGrantResult:
        """Grant a lease without keeping it alive, which `client.lease()` does.

        Args:
            ttl: the seconds that it lasts, from 1 to 9 000 000 000. etcd raises values below its minimum, 2 by default.
            id: the lease's id. Default: a random id, so that a grant whose answer was lost can be repeated without
                leaving a second lease behind.

        Returns:
            LeaseGrantResult: its `id`, and the `ttl` that etcd gives it.

        Raises:
            LeaseExistsError: there is a lease with the given `id`. If `maybe_applied` is True, it may come from this
                call: an earlier attempt got no answer.
            EtcdError: with `maybe_applied`, the lease may have been granted; it then ends by its TTL.
        """
        return self._run(self._aio.grant, ttl, id, timeout=timeout, retry=retry)

    def revoke(
        self, lease: LeaseLike, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseRevokeResult:
        """Revoke a lease: etcd deletes the keys that are attached to it.

        Returns:
            LeaseRevokeResult: its revision is that of the deletion, or a later one if the first answer was lost.

        Raises:
            LeaseNotFoundError: there is no such lease, and no attempt of this call has revoked it.
        """
        return self._run(self._aio.revoke, lease, timeout=timeout, retry=retry)

    def keep_alive_once(self, lease: LeaseLike, *, timeout: Timeout = UNSET) -> LeaseKeepAliveResult:
        """Renew a lease once, now. The request is repeated on other members until one answers.

        Returns:
            LeaseKeepAliveResult: its `ttl` is how many seconds the lease lasts from now.

        Raises:
            LeaseNotFoundError: there is no such lease: it expired, was revoked, or never existed.
        """
        return self._run(self._aio.keep_alive_once, lease, timeout=timeout)

    def time_to_live(
        self, lease: LeaseLike, keys: bool = False, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseTimeToLiveResult:
        """Get how long a lease still lasts.

        Args:
            lease: the lease.
            keys: also return the keys that are attached to it.

        Returns:
            LeaseTimeToLiveResult: `is_expired` is True if there is no such lease, which raises no error.
        """
        return self._run(self._aio.time_to_live, lease, keys, timeout=timeout, retry=retry)

    def list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> LeaseListResult:
        """List the ids of all leases."""
        return self._run(self._aio.list, timeout=timeout, retry=retry)
