"""Locks: a key with a value of its own and a lease, as etcd3gw has them, so that both clients may share one."""

from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import uuid1

from etcd_aio.compat.etcd3gw._errors import local
from etcd_aio.compat.etcd3gw.exceptions import Etcd3Exception
from etcd_aio.compat.etcd3gw.lease import Lease
from etcd_aio.compat.etcd3gw.types import TxnResponse
from etcd_aio.compat.etcd3gw.utils import DEFAULT_TIMEOUT, LOCK_PREFIX, _encode


class LockCalls(Protocol):
    """The calls of a client that a lock makes."""

    def get(self, key: str) -> list[bytes]:
        """Get the values of a key."""
        ...

    def lease(self, ttl: int) -> Lease:
        """Grant a lease."""
        ...

    def transaction(self, txn: Mapping[str, Any]) -> TxnResponse:
        """Do some operations if all comparisons hold."""
        ...


class Lock:
    """A lock. It is not renewed: call `refresh` in time, or it ends after `ttl` seconds.

    Attributes:
        name: the name.
        ttl: the seconds that it lasts without `refresh`.
        client: sends the calls.
        key: the key in the store.
        lease: its lease, once it is acquired.
    """

    def __init__(self, name: str, ttl: int = DEFAULT_TIMEOUT, *, client: LockCalls) -> None:
        self.name = name
        self.ttl = ttl
        self.client = client
        self.key = LOCK_PREFIX + name
        self.lease: Lease | None = None
        self._uuid = str(uuid1())

    @property
    def uuid(self) -> str:
        """Its value in the store, which tells whose it is."""
        return self._uuid

    def acquire(self) -> bool:
        """Try once to acquire the lock. Returns whether it is acquired now: it is not if this object holds it."""
        lease = self.client.lease(self.ttl)
        key = _encode(self.key)
        is_acquired = False
        try:
            is_acquired = self._is_done(
                compare={"key": key, "result": "EQUAL", "target": "CREATE", "create_revision": 0},
                success={"request_put": {"key": key, "value": _encode(self._uuid), "lease": lease.id}},
            )
        finally:
            if not is_acquired:  # no caller has this lease; after an error, the key may be attached to it
                with suppress(Etcd3Exception):
                    lease.revoke()
        if is_acquired:
            self.lease = lease
        return is_acquired

    def release(self) -> bool:
        """Release the lock. Returns whether it was held."""
        key = _encode(self.key)
        return self._is_done(
            compare={"key": key, "result": "EQUAL", "target": "VALUE", "value": _encode(self._uuid)},
            success={"request_delete_range": {"key": key}},
        )

    def _is_done(self, *, compare: dict[str, Any], success: dict[str, Any]) -> bool:
        return "succeeded" in self.client.transaction({"compare": [compare], "success": [success], "failure": []})

    def refresh(self) -> int:
        """Renew the lock. Returns the seconds that it lasts from now; -1 if it has ended.

        Raises:
            Etcd3Exception: it was not acquired.
        """
        if self.lease is None:
            raise local("the lock has no lease: acquire it first")
        return self.lease.refresh()

    def is_acquired(self) -> bool:
        """Ask the server whether this object holds the lock."""
        return self._uuid.encode() in self.client.get(self.key)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
