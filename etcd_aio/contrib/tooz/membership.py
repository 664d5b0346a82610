"""Membership: the lease of one coordinator, and the groups that it has joined.

The lease is renewed by heartbeats alone: a program that hangs leaves its groups. If it has ended nevertheless, as after
an outage that is longer than its TTL, the next heartbeat gets another one, and joins the groups again.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from etcd_aio.contrib.tooz.groups import Groups
from etcd_aio.errors import EtcdError, LeaseNotFoundError
from etcd_aio.sync import Store
from tooz.coordination import Capabilities, GroupNotCreated, MemberAlreadyExist

_log: Final = logging.getLogger("etcd_aio.tooz")


class Membership:
    """The lease and the groups.

    Args:
        store: the client, or a namespace.
        member: the identifier of the coordinator.
        ttl: seconds that the lease lasts without a heartbeat.
        clock: the monotonic time in seconds.
    """

    def __init__(
        self, store: Store, member: bytes, ttl: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._leases = store.leases
        self._groups = Groups(store)
        self._member = member
        self._ttl = ttl
        self._clock = clock
        self._lock = threading.Lock()  # of the lease: heartbeats come from a thread of their own
        self._joined: dict[bytes, Capabilities | None] = {}
        self._lease, self._until = 0, 0.0

    @property
    def is_alive(self) -> bool:
        """Whether etcd has the lease, by the clock of this process."""
        return self._clock() < self._until

    @property
    def groups(self) -> frozenset[bytes]:
        """Those that it has joined."""
        return frozenset(self._joined)

    def begin(self) -> None:
        """Get the lease."""
        with self._lock:
            self._grant()

    def end(self) -> None:
        """Leave all groups at once. If etcd does not answer, it does so when the lease ends."""
        with self._lock, suppress(EtcdError):
            self._joined.clear()
            self._leases.revoke(self._lease)

    def beat(self) -> None:
        """Renew the lease, or get another one and join the groups again."""
        with self._lock:
            self._renew()

    def join(self, group: bytes, capabilities: Capabilities | None) -> None:
        """Join a group; see `Groups.join`."""
        with self._lock:
            try:
                self._groups.join(group, self._member, capabilities, self._lease)
            except LeaseNotFoundError:
                self._renew()
                self._groups.join(group, self._member, capabilities, self._lease)
            self._joined[group] = capabilities

    def update(self, group: bytes, capabilities: Capabilities) -> None:
        """Change what it has given to a group; see `Groups.update`."""
        with self._lock:
            self._groups.update(group, self._member, capabilities)
            if group in self._joined:
                self._joined[group] = capabilities

    def leave(self, group: bytes) -> None:
        """Leave a group; see `Groups.leave`."""
        with self._lock:
            self._joined.pop(group, None)
            self._groups.leave(group, self._member)

    def was_left(self, group: bytes) -> None:
        """The group lacks this member: another client has let it leave, unless the lease has ended."""
        if self.is_alive:
            with self._lock:
                self._joined.pop(group, None)

    def _grant(self) -> None:
        began = self._clock()
        granted = self._leases.grant(self._ttl)
        self._lease, self._until = granted.id, began + granted.ttl

    def _renew(self) -> None:
        began = self._clock()
        try:
            self._until = began + self._leases.keep_alive_once(self._lease).ttl
        except LeaseNotFoundError:
            self._grant()
            _log.warning("the lease of member %r had ended: it joins its groups again", self._member)
            for group in list(self._joined):
                self._join_again(group)

    def _join_again(self, group: bytes) -> None:
        try:
            self._groups.join(group, self._member, self._joined[group], self._lease)
        except (GroupNotCreated, MemberAlreadyExist) as error:
            del self._joined[group]
            _log.warning("member %r could not join %r again: %s", self._member, group, error)
