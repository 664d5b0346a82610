"""Locks: a key with a lease, which another client finds until it is deleted."""

import time
import uuid
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from etcd_aio.compat.etcd3.etcdrpc import LeaseKeepAliveResponse, WatchCreateRequest
from etcd_aio.compat.etcd3.exceptions import RevisionCompactedError, WatchTimedOut

if TYPE_CHECKING:
    from etcd_aio.compat.etcd3.leases import Lease


class Lock:
    """A lock: `with client.lock("name", ttl=20) as lock: ...`.

    It is lost `ttl` seconds after `acquire`, unless the program calls `refresh`. It is not reentrant: a second
    `acquire` waits for the first one.

    Attributes:
        name: the name.
        ttl: the seconds that it is held without `refresh`.
        key: the key, `/locks/` and the name.
        lease: the lease of the key; None before the lock is acquired.
        uuid: the value of the key while this object holds it.
    """

    lock_prefix = "/locks/"

    etcd_client: Any  # a client

    def __init__(self, name: str, ttl: int = 60, etcd_client: Any = None) -> None:
        self.name = name
        self.ttl = ttl
        if etcd_client is not None:
            self.etcd_client = etcd_client
        self.key = self.lock_prefix + name
        self.lease: Lease | None = None
        self.uuid = uuid.uuid1().bytes

    def acquire(self, timeout: float | None = 10) -> bool:
        """Acquire the lock, and wait for it while it is held.

        Args:
            timeout: seconds to wait; 0 tries once, None waits for ever.

        Returns:
            bool: whether it is held now.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            revision = self._try()
            if not revision:
                return True
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                return False
            with suppress(WatchTimedOut, RevisionCompactedError):  # the latter after an outage: look again
                self.etcd_client.watch_once(
                    self.key, timeout=left, start_revision=revision + 1, filters=[WatchCreateRequest.NOPUT]
                )

    def _try(self) -> int:
        """Put the key if it does not exist. Returns 0, or the revision at which it was found to exist."""
        client = self.etcd_client
        lease = client.lease(self.ttl)
        is_mine, responses = client.transaction(
            compare=[client.transactions.create(self.key) == 0],
            success=[client.transactions.put(self.key, self.uuid, lease=lease)],
            failure=[client.transactions.get(self.key)],
        )
        if is_mine:
            self.lease = lease
            return 0
        lease.revoke()
        revision: int = responses[0][0][1].response_header.revision
        return revision

    def release(self) -> bool:
        """Release the lock. Returns whether it was held."""
        client = self.etcd_client
        was_mine, _ = client.transaction(
            compare=[client.transactions.value(self.key) == self.uuid],
            success=[client.transactions.delete(self.key)],
            failure=[],
        )
        return bool(was_mine)

    def refresh(self) -> list[LeaseKeepAliveResponse]:
        """Hold the lock for `ttl` seconds from now.

        Raises:
            ValueError: it was not acquired.
        """
        if self.lease is None:
            raise ValueError("the lock has no lease to refresh: acquire it first")
        return self.lease.refresh()

    def is_acquired(self) -> bool:
        """Whether this object holds the lock. Asks the server."""
        value, _ = self.etcd_client.get(self.key)
        return bool(value == self.uuid)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
