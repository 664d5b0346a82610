"""StoreCalls: the calls about keys, watches and leases, written once, over any backend."""

from etcd_aio.backend import Backend, Block
from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.base.key_space import KeySpace
from etcd_aio.calls.keys import KeyCalls
from etcd_aio.calls.watches import WatchCalls
from etcd_aio.lease import Lease, Leases, OnLost
from etcd_aio.types import EndpointVersions


class StoreCalls(KeyCalls, WatchCalls):
    """A store as far as recipes and other layers need it; a `Client` is one.

    Args:
        backend: what the calls go through: that of a client, or a view of another one.

    Attributes:
        backend: see above.
        is_exact: False; see `Writer`.
    """

    is_exact = False

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    @property
    def name(self) -> str:
        """The name of the client; empty if it has none. Lines in logs begin with it."""
        return self.backend.shared.name

    @property
    def default_timeout(self) -> float | None:
        """Seconds of a call without a `timeout` of its own; None for no limit."""
        return self.backend.shared.timeout

    @property
    def key_space(self) -> KeySpace:
        """Whose keys the calls name. What writes for a recipe has that of the store that it reads."""
        return self.backend.key_space

    @property
    def leases(self) -> Leases:
        """The single lease calls: grant, revoke, time_to_live, keep_alive_once, list."""
        return self.backend.leases

    def lease(
        self,
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        on_lost: OnLost = "cancel",
        timeout: Timeout = UNSET,
    ) -> Lease:
        """A lease for a block of code: `async with client.lease(10) as lease:`.

        Entering grants the lease, and raises what `leases.grant` raises. In the block it is kept alive. Leaving revokes
        it, within 2 seconds and even if the block was cancelled; if that fails, a warning is logged and the lease
        expires.

        Args:
            ttl: seconds until it expires without renewal, from 1 to 9 000 000 000: after a crash of this process, or in
                an outage. etcd raises smaller values to its minimum, 2 by default.
            id: its id. Default: a random one.
            adopt: take over the lease that has this `id` already, as after a restart, instead of granting one: entering
                renews it, and raises `LeaseNotFoundError` if it is gone. Its own TTL counts, not `ttl`. If entering
                fails or is cancelled, the lease is left alone.
            on_lost: what happens if the lease is lost: `"cancel"` cancels the task in the block, `"signal"` only sets
                `lease.is_lost`. Leaving raises `LeaseLostError` in both cases.
            timeout: seconds for the grant, or for the first renewal.

        Raises:
            InvalidRequestError: an argument is invalid. Nothing was sent.
        """
        return self.backend.leases.block(ttl, on_lost, id=id, adopt=adopt, timeout=timeout)

    async def versions(self, timeout: Timeout = UNSET) -> tuple[EndpointVersions, ...]:
        """The release of etcd at each endpoint, and the version that the cluster has agreed on.

        The latter is not in etcd's gRPC API; it is read from `/version` on the same port, by a separate connection.

        Args:
            timeout: seconds; None for no limit; the client's default if it is not given.

        Returns:
            tuple[EndpointVersions, ...]: one for each endpoint, in their order; with the error if there was no answer.

        Raises:
            ClientUsageError: the client is closed, or belongs to another loop or process.
        """
        return await self.backend.shared.versions(timeout)

    def end_with_client(self, block: Block) -> None:
        """Have the client end a block when it is closed, unless the block is gone before. It holds the block weakly."""
        self.backend.shared.blocks.add(block)
