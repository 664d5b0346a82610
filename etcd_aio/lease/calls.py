"""Leases: the lease calls.

Knows: the calls, their arguments and their results. Never knows: how a lease is granted or kept alive (`keeper.py`),
what happens to the task that holds one (`lease.py`).
"""

from typing import TYPE_CHECKING, Final

from etcd_aio import methods, pb
from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.deadline import time_left
from etcd_aio.errors import InvalidRequestError, LeaseNotFoundError, LeaseTTLTooLargeError
from etcd_aio.lease.keeper import LeaseKeeper
from etcd_aio.types import (
    MIN_INT64,
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseLike,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseTimeToLiveResult,
    flag,
    lease_id,
    whole_number,
)

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

MAX_TTL: Final = 9_000_000_000  # seconds; etcd's own limit


class Leases:
    """The lease API: `client.leases`. Most of the time `client.lease()` is all that is needed.

    Where a lease is wanted, its id or an object with an `.id` serves. Every call takes `timeout` and `retry`, and
    raises, as the key-value calls do.
    """

    def __init__(self, invoker: "Invoker", keeper: LeaseKeeper) -> None:
        self._invoker = invoker
        self._keeper = keeper

    async def grant(
        self, ttl: int, id: int | None = None, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseGrantResult:
        """Grant a lease, which nothing keeps alive: see `client.lease()` for that.

        Args:
            ttl: the seconds that it lasts, from 1 to 9 000 000 000. etcd raises what is less than its minimum, 2 by
                default.
            id: the lease's id. By default this client draws one, so that a grant whose answer was lost can be repeated
                without leaving a second lease behind.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            LeaseGrantResult: its `id`, and the `ttl` that etcd gives it.

        Raises:
            LeaseExistsError: there is a lease with the `id` you gave. If `maybe_applied` is True, it may be this very
                one: an earlier attempt got no answer.
            EtcdError: as every call. A lease that may have been granted all the same ends by its TTL.
        """
        checked_ttl(ttl)
        if id is None:
            return await self._keeper.grant(self._keeper.draw_id(), ttl, timeout, retry, is_own_id=True)
        return await self._keeper.grant(checked_id(id), ttl, timeout, retry, is_own_id=False)

    async def revoke(
        self, lease: LeaseLike, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseRevokeResult:
        """Revoke a lease: etcd deletes the keys that are attached to it.

        Args:
            lease: which one.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            LeaseRevokeResult: with the revision of the deletion, or, if the first answer was lost, a later one.

        Raises:
            LeaseNotFoundError: there is no such lease, and no attempt of this call has revoked it.
            EtcdError: as every call.
        """
        found = lease_id(lease)
        deadline = self._invoker.deadline(timeout, self._invoker.clock())
        try:
            return await self._invoker.unary(
                methods.LEASE_REVOKE, pb.LeaseRevokeRequest(id=found), timeout=timeout, retry=retry
            )
        except LeaseNotFoundError as error:
            if not error.maybe_applied:
                raise
            # An attempt whose answer was lost has revoked it.
            left = time_left(deadline, self._invoker.clock())
            return LeaseRevokeResult((await self.time_to_live(found, timeout=left)).header)

    async def keep_alive_once(self, lease: LeaseLike, *, timeout: Timeout = UNSET) -> LeaseKeepAliveResult:
        """Renew a lease, once and now. It is repeated on other members until one answers.

        Args:
            lease: which one.
            timeout: seconds for the whole call.

        Returns:
            LeaseKeepAliveResult: its `ttl` is the seconds it lasts from now.

        Raises:
            LeaseNotFoundError: there is no such lease: it expired, was revoked, or never was.
            EtcdTimeoutError: no member has answered in time.
            NoAvailableEndpointsError: none could be reached at all; `errors` has every endpoint's real reason.
            EtcdError: as every call.
        """
        return await self._keeper.renew_once(lease_id(lease), timeout)

    async def time_to_live(
        self, lease: LeaseLike, keys: bool = False, *, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> LeaseTimeToLiveResult:
        """Ask how long a lease still lasts.

        Args:
            lease: which one.
            keys: also ask for the keys that are attached to it.
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            LeaseTimeToLiveResult: `is_expired` is True if there is no such lease; that is no error.

        Raises:
            EtcdError: as every call.
        """
        request = pb.LeaseTimeToLiveRequest(id=lease_id(lease), keys=flag(keys, "keys"))
        return await self._invoker.unary(methods.LEASE_TIME_TO_LIVE, request, timeout=timeout, retry=retry)

    async def list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> LeaseListResult:
        """Get the ids of all leases there are.

        Args:
            timeout: seconds for the whole call.
            retry: which failed attempts are repeated.

        Returns:
            LeaseListResult: with the `ids`.

        Raises:
            EtcdError: as every call.
        """
        return await self._invoker.unary(methods.LEASE_LEASES, pb.LeaseLeasesRequest(), timeout=timeout, retry=retry)


def checked_ttl(ttl: int) -> int:
    """`ttl` itself.

    Raises:
        InvalidRequestError: it is below 1.
        LeaseTTLTooLargeError: it is more than etcd allows.
        TypeError: it is no int.
    """
    if whole_number(ttl, "ttl") < 1:
        raise InvalidRequestError(f"ttl must be at least 1 second, got {ttl}")
    if ttl > MAX_TTL:
        raise LeaseTTLTooLargeError(f"ttl must be at most {MAX_TTL} seconds, got {ttl}")
    return ttl


def checked_id(id: int) -> int:
    """A lease id of the user's choice.

    Raises:
        InvalidRequestError: it is 0, which is no lease, or does not fit 64 bits.
        TypeError: it is no int.
    """
    if whole_number(id, "id", minimum=MIN_INT64) == 0:
        raise InvalidRequestError("id must not be 0, which stands for no lease")
    return id
