"""Leases that end as early as etcd may end them: at the very instant, and by clocks that run a little faster."""

from heapq import heappop
from math import inf
from typing import TYPE_CHECKING

from etcd_aio.fake.cluster import FakeCluster
from etcd_aio.fake.leases import GrantedLease, LeaseTable
from etcd_aio.fake.txns import StoreWriter

if TYPE_CHECKING:
    from collections.abc import Callable


class EarlyLeases(LeaseTable):
    """The leases of a cluster.

    Args:
        drift: the part of its TTL by which each ends early.

    Attributes:
        on_end: called with each lease that has ended by itself.
    """

    def __init__(self, drift: float) -> None:
        super().__init__()
        self._drift = drift
        self.on_end: Callable[[int], None] = lambda lease: None

    def install(self, cluster: FakeCluster) -> None:
        """Let a new cluster have them."""
        cluster.leases = self
        cluster.writer = StoreWriter(cluster.store, cluster.release, self.__contains__)

    def next_look(self) -> float:
        """See `LeaseTable`; there is no pause between two looks."""
        while self._expiries and not self._is_current(*self._expiries[0]):
            heappop(self._expiries)
        return self._expiries[0][0] if self._expiries else inf

    def expired(self, now: float) -> list[int]:
        """See `LeaseTable`."""
        found = super().expired(now)
        for lease in found:
            self.on_end(lease)
        return found

    def _refresh(self, lease: GrantedLease, now: float) -> None:
        super()._refresh(lease, now - self._drift * lease.ttl)
