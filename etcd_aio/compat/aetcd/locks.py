"""Locks: a key with a value of its own and a lease, as aetcd has them, so that both clients may share one."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Protocol, Self
from uuid import uuid1

from etcd_aio import Client, EtcdTimeoutError
from etcd_aio.compat.aetcd.exceptions import ClientError, translating
from etcd_aio.compat.aetcd.leases import Lease, LeaseKeepAlive
from etcd_aio.compat.aetcd.rtypes import Get
from etcd_aio.compat.aetcd.transactions import BaseCompare, Transactions

_REVOKE_SECONDS: Final = 2.0


class LockCalls(Protocol):
    """The calls of a client that a lock makes."""

    transactions: Transactions

    @property
    def aio(self) -> Client:
        """The client of etcd_aio."""
        ...

    async def get(self, key: bytes) -> Get | None:
        """Get a key."""
        ...

    async def lease(self, ttl: int) -> Lease:
        """Grant a lease."""
        ...

    async def transaction(
        self, compare: Iterable[BaseCompare], success: Iterable[Any] | None = None, failure: Iterable[Any] | None = None
    ) -> tuple[bool, list[Any]]:
        """Do some operations if all comparisons hold, and others if not."""
        ...


class Lock:
    """A lock. It is not renewed: call `refresh` in time, or it ends after `ttl` seconds.

    Attributes:
        key: the key in the store.
        ttl: the seconds that it lasts without `refresh`.
        lease: its lease, once it is acquired.
        uuid: its value in the store, which tells whose it is.
        revision: that of its put; after a try that failed, that of its holder.
    """

    def __init__(self, client: LockCalls, key: bytes, ttl: int) -> None:
        self._client = client
        self.key = key
        self.ttl = ttl
        self.lease: Lease | None = None
        self.uuid = uuid1().bytes
        self.revision = 0

    async def acquire(self, timeout: float | None = 10) -> bool:
        """Acquire the lock. It cannot be acquired a second time before it is released, or its time is over.

        Args:
            timeout: seconds to wait; 0 tries once, None waits without a limit.

        Returns:
            bool: whether it is acquired.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            if await self._try_acquire():
                return True
            left = None if deadline is None else deadline - loop.time()
            if left is not None and left <= 0:
                return False
            with translating():
                try:
                    await self._client.aio.wait_deleted(self.key, self.revision, timeout=left)
                except EtcdTimeoutError:
                    return False

    async def _try_acquire(self) -> bool:
        made = self._client.transactions
        lease = await self._client.lease(self.ttl)
        is_acquired = False
        try:
            is_acquired, (response,) = await self._client.transaction(
                compare=[made.create(self.key) == 0],
                success=[made.put(self.key, self.uuid, lease=lease)],
                failure=[made.get(self.key)],
            )
        finally:
            if not is_acquired:  # no caller has this lease; after an error, the key may be attached to it
                with suppress(ClientError, TimeoutError):
                    async with asyncio.timeout(_REVOKE_SECONDS):
                        await lease.revoke()
        if is_acquired:
            self.lease, self.revision = lease, response.response_put.header.revision
            return True
        ((_, holder),) = response
        self.lease, self.revision = None, holder.mod_revision
        return False

    async def release(self) -> bool:
        """Release the lock. Returns whether it was held."""
        made = self._client.transactions
        is_released, _ = await self._client.transaction(
            compare=[made.value(self.key) == self.uuid], success=[made.delete(self.key)], failure=[]
        )
        return is_released

    async def refresh(self) -> LeaseKeepAlive:
        """Renew the lock.

        Raises:
            ValueError: it was not acquired.
        """
        if self.lease is None:
            raise ValueError(f"the lock {self.key!r} has no lease: acquire it first")
        return await self.lease.refresh()

    async def is_acquired(self) -> bool:
        """Ask the server whether this object holds the lock."""
        found = await self._client.get(self.key)
        return found is not None and found.value == self.uuid

    async def __aenter__(self) -> Self:
        await self.acquire()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.release()
