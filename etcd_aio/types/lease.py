"""Results of the lease calls, as frozen values."""

from dataclasses import fields
from typing import Any

from etcd_aio.dataclass import dataclass
from etcd_aio.types.kv import Header, shown_lease


def _show_with_lease(self: Any) -> str:
    """The `repr` of a dataclass whose `id` is a lease id."""
    values = {field.name: getattr(self, field.name) for field in fields(self)}
    shown = (f"{name}={shown_lease(value) if name == 'id' else repr(value)}" for name, value in values.items())
    return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True, repr=False)
class LeaseGrantResult:
    """A lease was granted.

    Attributes:
        header: the metadata of the response.
        id: the lease's id.
        ttl: the seconds until it expires unless it is renewed: as requested, or etcd's minimum if that is more.
    """

    header: Header
    id: int
    ttl: int

    __repr__ = _show_with_lease


@dataclass(frozen=True, slots=True)
class LeaseRevokeResult:
    """A lease was revoked, and the keys attached to it were deleted.

    Attributes:
        header: the metadata of the response.
    """

    header: Header

    @property
    def revision(self) -> int:
        """The store's revision after the revocation."""
        return self.header.revision


@dataclass(frozen=True, slots=True, repr=False)
class LeaseKeepAliveResult:
    """A lease was renewed.

    Attributes:
        header: the metadata of the response.
        id: the lease's id.
        ttl: the seconds from now until it expires unless it is renewed again.
    """

    header: Header
    id: int = 0
    ttl: int = 0

    __repr__ = _show_with_lease


@dataclass(frozen=True, slots=True, repr=False)
class LeaseTimeToLiveResult:
    """The remaining time of a lease.

    Attributes:
        header: the metadata of the response.
        id: the lease's id.
        ttl: the remaining whole seconds; -1 if the lease does not exist, or no longer.
        granted_ttl: the seconds that each renewal gives it.
        keys: the keys attached to it, if requested with `keys=True`.
    """

    header: Header
    id: int = 0
    ttl: int = 0
    granted_ttl: int = 0
    keys: tuple[bytes, ...] = ()

    __repr__ = _show_with_lease

    @property
    def is_expired(self) -> bool:
        """Whether the lease does not exist: it expired, was revoked or never granted. At 0 seconds it still exists."""
        return self.ttl < 0


@dataclass(frozen=True, slots=True, repr=False)
class LeaseStatus:
    """One lease of a listing. etcd sends only its id.

    Attributes:
        id: the lease's id.
    """

    id: int = 0

    __repr__ = _show_with_lease


@dataclass(frozen=True, slots=True)
class LeaseListResult:
    """All leases of the cluster.

    Attributes:
        header: the metadata of the response.
        leases: the leases, in no particular order.
    """

    header: Header
    leases: tuple[LeaseStatus, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the leases."""
        return tuple(lease.id for lease in self.leases)
