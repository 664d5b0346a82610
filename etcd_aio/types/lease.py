"""Results of the lease calls, as frozen values."""

from dataclasses import dataclass, fields

from etcd_aio.types.kv import Header, shown_lease


def _show_with_lease(result: "LeaseGrantResult | LeaseKeepAliveResult | LeaseTimeToLiveResult | LeaseStatus") -> str:
    """The `repr` of a dataclass whose `id` is that of a lease."""
    values = {one.name: getattr(result, one.name) for one in fields(result)}
    shown = (f"{name}={shown_lease(value) if name == 'id' else repr(value)}" for name, value in values.items())
    return f"{type(result).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True, repr=False)
class LeaseGrantResult:
    """A lease was granted.

    Attributes:
        header: who answered.
        id: the lease's id.
        ttl: the seconds it lasts unless it is renewed: what was asked for, or etcd's minimum if that is more.
    """

    header: Header
    id: int
    ttl: int

    def __repr__(self) -> str:
        return _show_with_lease(self)


@dataclass(frozen=True, slots=True)
class LeaseRevokeResult:
    """A lease was revoked, and the keys attached to it were deleted.

    Attributes:
        header: who answered.
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
        header: who answered.
        id: the lease's id.
        ttl: the seconds it lasts from now unless it is renewed again.
    """

    header: Header
    id: int = 0
    ttl: int = 0

    def __repr__(self) -> str:
        return _show_with_lease(self)


@dataclass(frozen=True, slots=True, repr=False)
class LeaseTimeToLiveResult:
    """What is left of a lease.

    Attributes:
        header: who answered.
        id: the lease's id.
        ttl: the whole seconds that are left; -1 if there is no such lease (any more).
        granted_ttl: the seconds that every renewal gives it.
        keys: the keys attached to it, if `keys=True` asked for them.
    """

    header: Header
    id: int = 0
    ttl: int = 0
    granted_ttl: int = 0
    keys: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        return _show_with_lease(self)

    @property
    def is_expired(self) -> bool:
        """Whether there is no such lease: it expired, was revoked, or never was. 0 seconds left is not yet expired."""
        return self.ttl < 0


@dataclass(frozen=True, slots=True, repr=False)
class LeaseStatus:
    """One lease of a listing. etcd tells no more than its id.

    Attributes:
        id: the lease's id.
    """

    id: int = 0

    def __repr__(self) -> str:
        return _show_with_lease(self)


@dataclass(frozen=True, slots=True)
class LeaseListResult:
    """Every lease there is.

    Attributes:
        header: who answered.
        leases: the leases, in no order.
    """

    header: Header
    leases: tuple[LeaseStatus, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the leases."""
        return tuple(lease.id for lease in self.leases)
