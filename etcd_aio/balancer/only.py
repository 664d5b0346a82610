"""Only: the balancer as a call sees it that must go to one endpoint and to no other.

Knows: one endpoint's name. Never knows: why the call must go there.

It offers what a call asks of the balancer, so that such a call is a call like every other: it waits until its endpoint
is READY, and what may be repeated is repeated there.
"""

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from etcd_aio.balancer.connectivity import ConnectivityState
from etcd_aio.balancer.endpoint import Endpoint
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.errors import UnknownEndpointError

if TYPE_CHECKING:
    from etcd_aio.balancer.balancer import Balancer

_DEMAND_AGAIN: Final = 10.0  # seconds; well within `balancer.DEMAND_HOLDS`


class OnlyEndpoint:
    """One endpoint of a balancer. See `Balancer.only`.

    Args:
        balancer: whose.
        endpoint: which.
    """

    __slots__ = ("_balancer", "endpoints")

    def __init__(self, balancer: "Balancer", endpoint: Endpoint) -> None:
        self._balancer = balancer
        self.endpoints = (endpoint,)

    @property
    def ready_count(self) -> int:
        """How many sub-connections are READY: one or none."""
        return 0 if self.pick() is None else 1

    slow = 0.0  # what one endpoint takes is its own affair

    def pick(
        self,
        avoid: Collection[SubConnection] = (),
        needs_leader: bool = True,
    ) -> SubConnection | None:
        """The sub-connection if it is READY, whatever is to be avoided and however it looks: there is no other."""
        del avoid, needs_leader
        found = self._balancer.sub_connection(self.endpoints[0].name)
        return found if found is not None and found.state is ConnectivityState.READY else None

    def has_other(self, avoid: Collection[SubConnection]) -> bool:
        """Whether the sub-connection is READY and not in `avoid`."""
        found = self.pick()
        return found is not None and found not in avoid

    async def wait_for_pick(
        self,
        deadline: float,
        avoid: Collection[SubConnection] = (),
        needs_leader: bool = True,
    ) -> SubConnection:
        """The sub-connection, once it is READY.

        Raises:
            NoAvailableEndpointsError: it was not READY by `deadline`, or `fail_fast` holds; `errors` has the reason.
            UnknownEndpointError: the endpoint was taken from the client meanwhile.
            ClientClosedError: the balancer was closed meanwhile.
        """
        name = self.endpoints[0].name
        while True:
            chosen = self.pick(avoid, needs_leader)
            if chosen is not None:
                return chosen
            if self._balancer.sub_connection(name) is None:
                raise UnknownEndpointError(f"endpoint {name} is not used by this client any more")
            if self._balancer.fails_fast(name):
                raise self._balancer.no_available_endpoints(name)
            # A call that waits demands it again and again: what is not demanded is not dialled.
            now = asyncio.get_running_loop().time()
            has_changed = await self._balancer.changed(min(deadline, now + _DEMAND_AGAIN))
            if not has_changed and asyncio.get_running_loop().time() >= deadline:
                raise self._balancer.no_available_endpoints(name)
