"""RunLease: the lease of the keys of a job, so that nothing of it is left for ever.

It is renewed where it is used, not in the background: the keys outlive the agent that has written them, which other
agents need, and the agents that go on write again.
"""

import time
from collections.abc import Callable
from typing import Final

from etcd_aio.contrib.answers import until_answered
from etcd_aio.errors import LeaseNotFoundError
from etcd_aio.sync import Store

_RENEWALS: Final = 4  # in the time of a TTL, if it is used all the time


class RunLease:
    """The lease of one agent. Threads and forked children may share it.

    Args:
        store: any store of the client.
        ttl: seconds that the keys outlive their last writer.
        timeout: seconds for a grant.
        clock: the monotonic time in seconds.
    """

    def __init__(self, store: Store, ttl: int, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases = store.leases
        self._ttl = ttl
        self._timeout = timeout
        self._clock = clock
        self._id = 0
        self._renewed = 0.0

    def current(self) -> int:
        """The id of the lease, which lasts for some more time."""
        now = self._clock()
        if not self._id:
            self._grant(now)
        elif now - self._renewed > self._ttl / _RENEWALS:
            try:
                self._leases.keep_alive_once(self._id)
                self._renewed = now
            except LeaseNotFoundError:
                self._grant(now)
        return self._id

    def is_gone(self, id: int) -> None:
        """The server has no such lease: the next use grants another one."""
        if self._id == id:
            self._id = 0

    def _grant(self, now: float) -> None:
        granted = until_answered(lambda seconds: self._leases.grant(self._ttl, timeout=seconds), self._timeout)
        self._id, self._renewed = granted.id, now
