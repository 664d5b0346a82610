"""Leases: the lease calls.

Knows: the calls, their arguments and their results. Never knows: how a lease is kept alive (`keeper.py`), what happens
to the task that holds one (`lease.py`).
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from etcd_aio import methods, pb
from etcd_aio.api.arguments import MIN_INT64, LeaseLike, lease_id, whole_number
from etcd_aio.api.keeper import LeaseKeeper
from etcd_aio.api.keys import flag
from etcd_aio.api.replies import lease_grant_result
from etcd_aio.errors import InvalidRequestError, LeaseExistsError, LeaseNotFoundError, LeaseTTLTooLargeError
from etcd_aio.options import UNSET, RetryMode, Timeout
from etcd_aio.results import (
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseTimeToLiveResult,
)

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

MAX_TTL: Final = 9_000_000_000  # seconds; etcd's own limit


class Leases:
    """The lease API: `client.leases`. Most of the time `client.lease()` is all that is needed.

    Where a lease is wanted, its id or an object with an `.id` serves. Every call takes `timeout` and `retry`, and
    raises, as the key-value calls do.

    Args:
        invoker: runs the calls.
        draw_id: returns a random number of 63 bits. Default: from the system's entropy, so that no two clients draw
            the same.
    """

    def __init__(self, invoker: "Invoker", draw_id: Callable[[], int] | None = None) -> None:
        self._invoker = invoker
        self._draw_id = _draw_id if draw_id is None else draw_id
        self.keeper = LeaseKeeper(invoker)

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
            return await self.grant_with(self.draw_id(), ttl, timeout, retry, is_own_id=True)
        return await self.grant_with(checked_id(id), ttl, timeout, retry, is_own_id=False)

    async def grant_with(
        self, id: int, ttl: int, timeout: Timeout, retry: RetryMode | None = None, *, is_own_id: bool
    ) -> LeaseGrantResult:
        """`grant` with arguments that were checked; `is_own_id` says that this client has drawn the id."""
        deadline = self._invoker.deadline(timeout, asyncio.get_running_loop().time())
        try:
            reply = await self._invoker.unary(
                methods.LEASE_GRANT, pb.LeaseGrantRequest(ttl=ttl, id=id), timeout=timeout, retry=retry
            )
        except LeaseExistsError as error:
            if not is_own_id or not error.maybe_applied:
                raise
            # Nobody else draws this id: an attempt whose answer was lost has granted it.
            left = await self._time_to_live(id, deadline)
            if left.is_expired:
                raise LeaseNotFoundError from error
            return LeaseGrantResult(left.header, id, left.granted_ttl)
        return lease_grant_result(reply)

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
        deadline = self._invoker.deadline(timeout, asyncio.get_running_loop().time())
        try:
            return await self._invoker.unary(
                methods.LEASE_REVOKE, pb.LeaseRevokeRequest(id=found), timeout=timeout, retry=retry
            )
        except LeaseNotFoundError as error:
            if not error.maybe_applied:
                raise
            # An attempt whose answer was lost has revoked it.
            return LeaseRevokeResult((await self._time_to_live(found, deadline)).header)

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
        return await self.keeper.renew_once(lease_id(lease), timeout)

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

    def draw_id(self) -> int:
        """A random id that no other lease has: positive, as those that etcd draws itself."""
        return self._draw_id() or 1

    async def _time_to_live(self, lease: int, deadline: float) -> LeaseTimeToLiveResult:
        return await self.time_to_live(lease, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))


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


def _draw_id() -> int:
    return secrets.randbits(63)
