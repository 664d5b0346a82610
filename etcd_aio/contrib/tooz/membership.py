"""Membership: the lease of one coordinator, and the groups that it has joined.

The lease is renewed by heartbeats alone: a program that hangs leaves its groups. After a silence that was longer than
the TTL, as in a long outage, the next heartbeat joins the groups again, if need be with another lease.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from tooz.coordination import Capabilities, GroupNotCreated, MemberAlreadyExist

from etcd_aio.contrib.answers import until_answered
from etcd_aio.contrib.tooz.groups import Groups
from etcd_aio.errors import ClientUsageError, EtcdError, LeaseNotFoundError
from etcd_aio.sync import Store

_log: Final = logging.getLogger("etcd_aio.tooz")


class Membership:
    """The lease and the groups.

    Args:
        store: the client, or a namespace.
        member: the identifier of the coordinator.
        ttl: seconds that the lease lasts without a heartbeat.
        timeout: seconds for a write.
        clock: the monotonic time in seconds.
    """

    def __init__(
        self, store: Store, member: bytes, ttl: int, timeout: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._leases = store.leases
        self._groups = Groups(store, timeout)
        self._member = member
        self._ttl = ttl
        self._timeout = timeout
        self._clock = clock
        self._lock = threading.RLock()  # of the lease: heartbeats come from a thread; a signal handler may stop them
        self._joined: dict[bytes, Capabilities | None] = {}
        self._lease, self._until = 0, 0.0

    @property
    def is_alive(self) -> bool:
        """Whether the last heartbeat still counts, by the clock of this process: etcd has the lease, and all groups."""
        return self._clock() < self._until

    @property
    def groups(self) -> frozenset[bytes]:
        """The groups that it has joined."""
        return frozenset(self._joined)

    def begin(self) -> None:
        """Get the lease."""
        with self._lock:
            self._grant()

    def end(self) -> None:
        """Leave all groups at once. If etcd does not answer, they are left when the lease ends."""
        with self._lock:
            try:
                self._leases.revoke(self._lease)
            except ClientUsageError:  # as in a coroutine: it was not asked
                raise
            except EtcdError:
                pass
            self._joined.clear()

    def beat(self) -> None:
        """Renew the lease, or get another one and join the groups again."""
        with self._lock:
            self._beat()

    def join(self, group: bytes, capabilities: Capabilities | None) -> None:
        """Join a group; see `Groups.join`."""
        with self._lock:
            try:
                self._join(group, capabilities)
            except LeaseNotFoundError:
                self._beat()
                self._join(group, capabilities)

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
        granted = until_answered(lambda seconds: self._leases.grant(self._ttl, timeout=seconds), self._timeout)
        self._lease, self._until = granted.id, began + self._ttl

    def _join(self, group: bytes, capabilities: Capabilities | None) -> None:
        self._groups.join(group, self._member, capabilities, self._lease, self._ttl)
        self._joined[group] = capabilities

    def _beat(self) -> None:
        began = self._clock()
        try:
            self._leases.keep_alive_once(self._lease)
        except LeaseNotFoundError:
            self._grant()
            was_alive, missing = False, list(self._joined)
        else:
            missing = self._groups.beat(self._joined, self._member, self._lease)
            was_alive = self.is_alive  # now: it may have been on the way for long, and been taken for silent meanwhile
            self._until = began + self._ttl
        for group in missing:
            capabilities = self._joined.pop(group)
            if not was_alive:  # else another client has let it leave
                self._join_again(group, capabilities)

    def _join_again(self, group: bytes, capabilities: Capabilities | None) -> None:
        try:
            self._join(group, capabilities)
        except (GroupNotCreated, MemberAlreadyExist) as error:
            _log.warning(
                "member %r was silent for too long, and could not join %r again: %s", self._member, group, error
            )
        except BaseException:  # Ctrl-C, too
            self._joined[group] = capabilities  # for the next heartbeat
            self._until = 0.0
            raise
        else:
            _log.warning("member %r was silent for too long, and has joined %r again", self._member, group)
