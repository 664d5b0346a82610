"""Leases: when they expire, and which keys they have. Pure: the time is an argument, in seconds."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil, inf
from typing import Final

from etcd_aio import pb
from etcd_aio.fake.refusals import Reason, Refusal

LEAST_TTL: Final = 2  # seconds; one and a half election timeouts, rounded up
MOST_TTL: Final = 9_000_000_000
_LOOK: Final = 0.5  # seconds between two looks for expired leases
_MOST_AT_ONCE: Final = 500  # leases that one look may find: 1000 in a second


@dataclass(slots=True)
class GrantedLease:
    """One lease.

    Attributes:
        ttl: seconds that it was granted for.
        expiry: when it expires.
        keys: the keys that are attached to it.
    """

    id: int
    ttl: int
    expiry: float
    keys: set[bytes] = field(default_factory=set)

    def remaining(self, now: float) -> int:
        """Whole seconds until it expires; negative afterwards."""
        return int(self.expiry - now)


class LeaseTable:
    """The leases of a cluster."""

    def __init__(self) -> None:
        self._leases: dict[int, GrantedLease] = {}
        self._of_key: dict[bytes, int] = {}
        self._expiries: list[tuple[float, int]] = []  # a heap, in which a renewed lease has old entries, too
        self._looked = -inf

    def copy(self) -> "LeaseTable":
        """The leases as they are now, which go their own way from here."""
        copy = LeaseTable()
        copy.become(self)
        return copy

    def become(self, other: "LeaseTable") -> None:
        """Be as another table is, which goes its own way from here."""
        self._leases = {
            one.id: GrantedLease(one.id, one.ttl, one.expiry, set(one.keys)) for one in other._leases.values()
        }
        self._of_key, self._expiries = other._of_key.copy(), other._expiries.copy()

    def __contains__(self, id: int) -> bool:
        return id in self._leases

    def get(self, id: int) -> GrantedLease:
        """One lease.

        Raises:
            Refusal: there is none.
        """
        lease = self._leases.get(id)
        if lease is None:
            raise Refusal(Reason.LEASE_NOT_FOUND)
        return lease

    def all(self) -> list[GrantedLease]:
        """The leases, those that expire first before the others."""
        return sorted(self._leases.values(), key=lambda lease: lease.expiry)

    def grant(self, id: int, ttl: int, now: float) -> GrantedLease:
        """Make a lease.

        Raises:
            Refusal: the TTL is too large, or the id is taken.
        """
        if ttl > MOST_TTL:
            raise Refusal(Reason.LEASE_TTL_TOO_LARGE)
        if id in self._leases:
            raise Refusal(Reason.LEASE_EXISTS)
        lease = self._leases[id] = GrantedLease(id, max(ttl, LEAST_TTL), 0.0)
        self._refresh(lease, now)
        return lease

    def renew(self, id: int, now: float) -> GrantedLease:
        """Let a lease last for its whole TTL again.

        Raises:
            Refusal: there is none, or it has expired and only waits to be revoked.
        """
        lease = self.get(id)
        if lease.expiry <= now:
            raise Refusal(Reason.LEASE_NOT_FOUND)
        self._refresh(lease, now)
        return lease

    def renew_all(self, now: float) -> None:
        """Let all leases last for their whole TTL again, as a new leader does."""
        for lease in self._leases.values():
            self._refresh(lease, now)

    def remove(self, id: int) -> list[bytes]:
        """Remove a lease. Returns the keys to delete, sorted.

        Raises:
            Refusal: there is none.
        """
        keys = sorted(self.get(id).keys)
        del self._leases[id]
        for key in keys:
            del self._of_key[key]
        return keys

    def follow(self, changes: Iterable[pb.KeyValue]) -> None:
        """Attach and detach the keys that a transaction has put or deleted."""
        for change in changes:
            key, new = change.key, change.lease
            old = self._of_key.get(key, 0)
            if old == new:
                continue
            if old:
                self._leases[old].keys.discard(key)
                del self._of_key[key]
            if new:
                self._leases[new].keys.add(key)
                self._of_key[key] = new

    def next_look(self) -> float:
        """When to call `expired` next; infinity without leases."""
        expiries = self._expiries
        while expiries and not self._is_current(*expiries[0]):
            heappop(expiries)
        if not expiries:
            return inf
        return max(ceil(expiries[0][0] / _LOOK) * _LOOK, self._looked + _LOOK)

    def expired(self, now: float) -> list[int]:
        """The leases to revoke now, which have expired: late by half a second at most, unless there are many."""
        if now < self.next_look():
            return []
        self._looked = now
        found: dict[int, None] = {}  # a lease that was renewed twice in one instant has equal entries
        while self._expiries and self._expiries[0][0] <= now and len(found) < _MOST_AT_ONCE:
            entry = heappop(self._expiries)
            if self._is_current(*entry):
                found[entry[1]] = None
        return list(found)

    def _refresh(self, lease: GrantedLease, now: float) -> None:
        lease.expiry = now + lease.ttl
        heappush(self._expiries, (lease.expiry, lease.id))

    def _is_current(self, expiry: float, id: int) -> bool:
        lease = self._leases.get(id)
        return lease is not None and lease.expiry == expiry
