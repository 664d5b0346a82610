"""Leases: the lease calls, their arguments and their results."""

from typing import TYPE_CHECKING, Final

from etcd_aio import methods, pb
from etcd_aio.arguments import MIN_INT64, flag, lease_id, whole_number
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.deadline import time_left
from etcd_aio.errors import InvalidRequestError, LeaseNotFoundError, LeaseTTLTooLargeError
from etcd_aio.lease.keeper import LeaseKeeper
from etcd_aio.types import (
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseLike,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseTimeToLiveResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from etcd_aio.error_handler import Invoker

MAX_TTL: Final = 9_000_000_000  # seconds; etcd's own limit


class Leases:
    """The lease API: `client.leases`. Most programs only need `client.lease()`.

    A lease argument is an id or an object with an `.id`. Every call takes `timeout` and `retry`, and raises, as the
    key-value calls do.
    """

    def __init__(self, invoker: "Invoker", keeper: LeaseKeeper) -> None:
        self._invoker = invoker
        self._keeper = keeper

    def through(self, show: "Callable[[LeaseTimeToLiveResult], LeaseTimeToLiveResult]") -> "Leases":
        """The same calls, with the keys of a lease as a store that wraps another one shows them."""
        return ViewedLeases(self, show)

    async def grant(
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
        checked_ttl(ttl)
        if id is None:
            return await self._keeper.grant(self._keeper.draw_id(), ttl, timeout, retry, is_own_id=True)
        return await self._keeper.grant(checked_id(id), ttl, timeout, retry, is_own_id=False)

    async def revoke(
        self, lease: LeaseLike, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseRevokeResult:
        """Revoke a lease: etcd deletes the keys that are attached to it.

        Returns:
            LeaseRevokeResult: its revision is that of the deletion, or a later one if the first answer was lost.

        Raises:
            LeaseNotFoundError: there is no such lease, and no attempt of this call has revoked it.
        """
        id_ = lease_id(lease)
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        try:
            return await self._invoker.unary(
                methods.LEASE_REVOKE, pb.LeaseRevokeRequest(id=id_), timeout=timeout, retry=retry
            )
        except LeaseNotFoundError as error:
            if not error.maybe_applied:
                raise
            # An attempt whose answer was lost has revoked it.
            left = time_left(deadline, self._invoker.clock())
            return LeaseRevokeResult((await self.time_to_live(id_, timeout=left)).header)

    async def keep_alive_once(self, lease: LeaseLike, *, timeout: Timeout = UNSET) -> LeaseKeepAliveResult:
        """Renew a lease once, now. The request is repeated on other members until one answers.

        Returns:
            LeaseKeepAliveResult: its `ttl` is how many seconds the lease lasts from now.

        Raises:
            LeaseNotFoundError: there is no such lease: it expired, was revoked, or never existed.
        """
        result, _ = await self._keeper.renew_once(lease_id(lease), timeout)
        return result

    async def time_to_live(
        self, lease: LeaseLike, keys: bool = False, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseTimeToLiveResult:
        """Get how long a lease still lasts.

        Args:
            lease: the lease.
            keys: also return the keys that are attached to it.

        Returns:
            LeaseTimeToLiveResult: `is_expired` is True if there is no such lease, which raises no error.
        """
        request = pb.LeaseTimeToLiveRequest(id=lease_id(lease), keys=flag(keys, "keys"))
        return await self._invoker.unary(methods.LEASE_TIME_TO_LIVE, request, timeout=timeout, retry=retry)

    async def list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> LeaseListResult:
        """List the ids of all leases."""
        return await self._invoker.unary(methods.LEASE_LEASES, pb.LeaseLeasesRequest(), timeout=timeout, retry=retry)


class ViewedLeases(Leases):
    """The lease calls, as a store that wraps another one shows them.

    Args:
        leases: those of the store beneath.
        show: returns the result of `time_to_live` with the keys as they are to be seen.
    """

    def __init__(self, leases: Leases, show: "Callable[[LeaseTimeToLiveResult], LeaseTimeToLiveResult]") -> None:
        super().__init__(leases._invoker, leases._keeper)
        self._leases = leases
        self._show = show

    async def time_to_live(
        self, lease: LeaseLike, keys: bool = False, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseTimeToLiveResult:
        """Get how long a lease still lasts; see `Leases.time_to_live`. `keys` are those that the store has."""
        return self._show(await self._leases.time_to_live(lease, keys, timeout=timeout, retry=retry))


def checked_ttl(ttl: int) -> int:
    """Return a TTL, checked."""
    if whole_number(ttl, "ttl") < 1:
        raise InvalidRequestError(f"ttl must be at least 1 second, got {ttl}")
    if ttl > MAX_TTL:
        raise LeaseTTLTooLargeError(f"ttl must be at most {MAX_TTL} seconds, got {ttl}")
    return ttl


def checked_id(id: int) -> int:
    """Return the id for a new lease, checked: 0 is no lease."""
    if whole_number(id, "id", minimum=MIN_INT64) == 0:
        raise InvalidRequestError("id must not be 0, which stands for no lease")
    return id
