"""Elections: which groups a coordinator stands for as a leader, and which it leads.

A candidate tries at each `run_watchers`, and the first that finds no leader leads. The client keeps the leadership
alive until the coordinator stands down or stops.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from etcd_aio.contrib.tooz.groups import quoted
from etcd_aio.errors import EtcdError
from etcd_aio.sync import Store

if TYPE_CHECKING:
    from etcd_aio.sync.concurrency import Lock

_log: Final = logging.getLogger("etcd_aio.tooz")


class Elections:
    """The elections of one coordinator.

    Args:
        store: gives the client, or raises if the coordinator is not started.
        member: the identifier of the coordinator.
        ttl: seconds until another may lead after a crash of this process, or in an outage.
    """

    def __init__(self, store: Callable[[], Store], member: bytes, ttl: int) -> None:
        self._store = store
        self._member = member
        self._ttl = ttl
        self._led: dict[bytes, Lock] = {}

    def try_to_lead(self, group: bytes) -> bool:
        """Lead the group if it has no leader. Returns whether the leadership begins now."""
        led = self._led.get(group)
        if led is not None and led.is_held:
            return False
        self.stand_down(group)  # it was lost
        lock = self._store().lock(_name(group), ttl=self._ttl, value=self._member, on_lost=self._lost)
        if not lock.try_acquire():
            return False
        self._led[group] = lock
        return True

    def stand_down(self, group: bytes) -> bool:
        """Give the leadership up. Returns whether the coordinator has led."""
        lock = self._led.pop(group, None)
        if lock is None:
            return False
        was_held = lock.is_held
        with suppress(EtcdError):  # it was lost, or goes on in the background
            lock.release()
        return was_held

    def end(self, until: float) -> None:
        """Give all leaderships up. If etcd does not answer until a monotonic time, the others end with their leases."""
        for group in list(self._led):
            if time.monotonic() < until:
                self.stand_down(group)
        self._led.clear()

    def leader(self, group: bytes) -> bytes | None:
        """The member that leads the group, if there is one."""
        leader = self._store().election(_name(group)).leader()
        return None if leader is None else leader.value

    def _lost(self, error: EtcdError) -> None:
        _log.warning("%s", error)


def _name(group: bytes) -> str:
    return f"leaders/{quoted(group)}"
