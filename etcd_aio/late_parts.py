"""The parts of a client that many programs never use: each is imported and made at its first use."""

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etcd_aio.admin import Auth, Cluster, Maintenance, Versions
    from etcd_aio.balancer import Balancer
    from etcd_aio.error_handler import Invoker, Lifetime
    from etcd_aio.lease import LeaseKeeper, Leases
    from etcd_aio.transport import Engine


class LateParts:
    """The lease calls and the admin calls of a client, whose constructor sets the attributes that they stand on."""

    _balancer: "Balancer"
    _engine: "Engine"
    _invoker: "Invoker"
    _lifetime: "Lifetime"

    @cached_property
    def _keeper(self) -> "LeaseKeeper":
        from etcd_aio.lease import LeaseKeeper

        return LeaseKeeper(self._invoker)

    @cached_property
    def _leases(self) -> "Leases":
        from etcd_aio.lease import Leases

        return Leases(self._keeper)

    @cached_property
    def _cluster(self) -> "Cluster":
        from etcd_aio.admin import Cluster

        return Cluster(self._invoker)

    @cached_property
    def _maintenance(self) -> "Maintenance":
        from etcd_aio.admin import Maintenance

        return Maintenance(self._invoker, self._http_get)

    @cached_property
    def _auth(self) -> "Auth":
        from etcd_aio.admin import Auth

        return Auth(self._invoker)

    @cached_property
    def _versions(self) -> "Versions":
        from etcd_aio.admin import Versions

        return Versions(self._invoker, self._http_get)

    async def _http_get(self, endpoint: str, path: str) -> bytes:
        self._lifetime.enter()
        return await self._engine.http_get(self._balancer.target(endpoint), path)
