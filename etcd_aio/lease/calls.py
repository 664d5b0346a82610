"""Leases: the lease calls, their arguments and their results."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, get_args

from etcd_aio import methods, pb
from etcd_aio.arguments import finite_seconds, flag, lease_id, one_of
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import InvalidRequestError
from etcd_aio.lease.arguments import checked_id, checked_ttl
from etcd_aio.lease.kept_lease import KeptLease, OnDoubt, OnEnd
from etcd_aio.lease.lease import Lease, LeaseGuard, OnLost
from etcd_aio.types import (
    LeaseGrantResult,
    LeaseKeepAliveResult,
    LeaseLike,
    LeaseListResult,
    LeaseRevokeResult,
    LeaseTimeToLiveResult,
)

if TYPE_CHECKING:
    from etcd_aio.lease.guard import Guard
    from etcd_aio.lease.keeper import LeaseKeeper
    from etcd_aio.lease.pool import LeasePool

Show: TypeAlias = Callable[[LeaseTimeToLiveResult], LeaseTimeToLiveResult]


class Leases:
    """The lease API: `client.leases`. Most programs only need `client.lease()`.

    A lease argument is an id or an object with an `.id`. Every call takes `timeout` and `retry`, and raises, as the
    key-value calls do.

    Args:
        keeper: keeps the leases of the client; or the calls of another store, for a view that shows their keys in
            another way: a subclass with a `time_to_live` of its own.
    """

    def __init__(self, keeper: "LeaseKeeper | Leases") -> None:
        self._keeper: LeaseKeeper
        self._pools: list[LeasePool]  # one, after its first use
        self._guards: list[Guard]  # one, after its first use
        if isinstance(keeper, Leases):
            self._keeper, self._pools, self._guards = keeper._keeper, keeper._pools, keeper._guards
        else:
            self._keeper, self._pools, self._guards = keeper, [], []

    @property
    def pool(self) -> "LeasePool":
        """The leases that the client lends for one acquisition each, as to locks; made at its first use. For recipes.

        A lease that is returned clean is lent again, so an acquisition mostly needs no grant. Closing the client
        tells the borrowers, while it still works.
        """
        if not self._pools:
            from etcd_aio.lease.pool import LeasePool

            self._pools.append(LeasePool(self._keeper, self._keeper.invoker.client))
        return self._pools[0]

    @property
    def used_pool(self) -> "LeasePool | None":
        """The pool if it was used, for closing the client."""
        return self._pools[0] if self._pools else None

    def kept(
        self,
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        timeout: Timeout = UNSET,
        on_end: OnEnd | None = None,
        on_doubt: OnDoubt | None = None,
    ) -> KeptLease:
        """A lease that is kept alive without a block, for recipes: callbacks say when it ends.

            lease = client.leases.kept(10, on_end=self._on_end)
            await lease.begin()         grants it; from now on it is renewed
            ...
            await lease.close()         revokes it, within 2 seconds

        Within a block, `client.lease()` is simpler: it revokes the lease whatever happens, and can cancel the task.

        Args:
            ttl: the seconds that it lasts after each renewal, as of `grant`.
            id: the lease's id. Default: a random id.
            adopt: take over the lease that has this `id` already, instead of granting one. Its own TTL counts.
            timeout: seconds for `begin`; None for no limit; the client's default if it is not given.
            on_end: called once, in the loop, when the lease ends: with the `LeaseLostError` if it is lost; with None
                if this process ends it, before the revocation is sent, so before another may get what the lease holds.
                It must not raise.
            on_doubt: called when the store may be another one than before, as after a restore from a backup: it may
                lack the keys of the lease, or have older ones. It must not raise.

        Returns:
            KeptLease: nothing is sent before `begin`. `close` ends it; closing the client loses it.

        Raises:
            InvalidRequestError, LeaseTTLTooLargeError, TypeError: an argument is invalid.
        """
        return KeptLease(self._keeper, ttl, id=id, adopt=adopt, timeout=timeout, on_end=on_end, on_doubt=on_doubt)

    def block(
        self,
        ttl: int,
        on_lost: OnLost,
        *,
        id: int | None = None,
        adopt: bool = False,
        guard: LeaseGuard | None = None,
        watchdog: float | None = None,
        timeout: Timeout = UNSET,
    ) -> Lease:
        """A lease for a block; see `Client.lease`."""
        if guard is None:
            if watchdog is not None:
                raise InvalidRequestError("watchdog= belongs to guard='thread'")
            return Lease(self._keeper, ttl, on_lost, id=id, adopt=adopt, timeout=timeout)
        one_of(get_args(LeaseGuard), guard, "guard")
        if watchdog is not None and finite_seconds(watchdog, "watchdog") == 0:
            raise InvalidRequestError("watchdog must be more than 0 seconds")
        from etcd_aio.lease.guarded_lease import GuardedLease

        return GuardedLease(self._keeper, ttl, on_lost, self._guard(), watchdog, id=id, adopt=adopt, timeout=timeout)

    def _guard(self) -> "Guard":
        if not self._guards:
            from etcd_aio.lease.guard import Guard

            self._guards.append(Guard(self._keeper.guard_client, self._keeper.invoker.client))
        return self._guards[0]

    @property
    def used_guard(self) -> "Guard | None":
        """The guard if it was used, for closing the client."""
        return self._guards[0] if self._guards else None

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
        return await self._keeper.revoke(lease_id(lease), timeout, retry)

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
        return await self._keeper.invoker.unary(methods.LEASE_TIME_TO_LIVE, request, timeout=timeout, retry=retry)

    async def list(self, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> LeaseListResult:
        """List the ids of all leases."""
        return await self._keeper.invoker.unary(
            methods.LEASE_LEASES, pb.LeaseLeasesRequest(), timeout=timeout, retry=retry
        )
