"""The parts of a client that many programs never use: each is imported and made at its first use."""

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from etcd_aio.admin import Auth, Cluster, Maintenance, Versions
    from etcd_aio.error_handler import Invoker
    from etcd_aio.lease import Guard, LeaseKeeper, Leases, MakeGuardClient


class HttpGet(Protocol):
    """Gets a document from an endpoint."""

    async def __call__(self, endpoint: str, path: str) -> bytes:
        """Return the document at a path."""
        ...


class LateParts:
    """The lease calls and the admin calls of a client.

    Args:
        invoker: runs their calls.
        http_get: gets a document from an endpoint.
        guard_client: see `LeaseKeeper`.
    """

    def __init__(self, invoker: "Invoker", http_get: HttpGet, guard_client: "Callable[[], MakeGuardClient]") -> None:
        self._invoker = invoker
        self._http_get = http_get
        self._guard_client = guard_client

    @property
    def has_leases(self) -> bool:
        """Whether the lease calls were used."""
        return "leases" in vars(self)

    @property
    def guards(self) -> "tuple[Guard, ...]":
        """The guarded leases, if there were any."""
        guard = self.leases.used_guard if self.has_leases else None
        return () if guard is None else (guard,)

    @cached_property
    def keeper(self) -> "LeaseKeeper":
        """The leases that are kept alive."""
        from etcd_aio.lease import LeaseKeeper

        return LeaseKeeper(self._invoker, guard_client=self._guard_client)

    @cached_property
    def leases(self) -> "Leases":
        """The lease calls."""
        from etcd_aio.lease import Leases

        return Leases(self.keeper)

    @cached_property
    def cluster(self) -> "Cluster":
        """The calls about members."""
        from etcd_aio.admin import Cluster

        return Cluster(self._invoker)

    @cached_property
    def maintenance(self) -> "Maintenance":
        """The maintenance calls."""
        from etcd_aio.admin import Maintenance

        return Maintenance(self._invoker, self._http_get)

    @cached_property
    def auth(self) -> "Auth":
        """The calls about users and roles."""
        from etcd_aio.admin import Auth

        return Auth(self._invoker)

    @cached_property
    def versions(self) -> "Versions":
        """The releases of the members."""
        from etcd_aio.admin import Versions

        return Versions(self._invoker, self._http_get)
