"""Ids: idempotency ids, each a key that lasts at least until the end of its call, and for the window after that."""

import asyncio
from hashlib import sha256
from math import ceil
from typing import Final

from etcd_aio import InvalidRequestError, op
from etcd_aio.arguments import check_text
from etcd_aio.calls import StoreCalls
from etcd_aio.once.guarded import IdKey, Write
from etcd_aio.once.single_flight import SingleFlight, seconds_left

_LONGEST: Final = 24 * 3600.0  # seconds; for a call without a limit the window begins after so long at the latest


class Ids:
    """The keys of ids, and their lease: a new one for each window, which is never renewed.

    A lease lasts for two windows and the longest time that a call may take: its last user ends within that time after
    the first window, and has the second one left.

    Args:
        store: the client.
        prefix: of the keys.
        window: seconds for which an id is remembered at least, from the end of the call on.
        timeout: seconds for granting a lease.
    """

    def __init__(self, store: StoreCalls, *, prefix: bytes, window: int, timeout: float | None) -> None:
        self._store = store
        self._prefix = prefix
        self._window = window
        self._timeout = timeout
        self._lease = 0
        self._valid_until = 0.0  # until then, a call that has the lease must have ended
        self._longest = 0.0  # seconds that a call may take, of those that were seen
        self._granting = SingleFlight(self._grant, "lease of ids")

    async def key(self, id: str, write: Write, deadline: float) -> IdKey:
        """The key of the id of a write.

        Raises:
            InvalidRequestError: the id is empty, or the write cannot be sent.
            TypeError: the id is no str.
            EtcdError: a lease could not be granted.
        """
        name = check_text(id, "id").encode()
        if not name:
            raise InvalidRequestError("id is empty")
        digest = sha256(op.TxnOp(write.when, write.then, write.otherwise).message()).hexdigest().encode()
        now = asyncio.get_running_loop().time()
        ends = min(deadline, now + _LONGEST)
        while self._lease == 0 or ends > self._valid_until:  # a grant under way may be for shorter calls
            self._longest = max(self._longest, ends - now)
            await self._granting.result(deadline)
        return IdKey(self._prefix + name, digest, self._lease)

    async def is_lost(self, id_key: IdKey, deadline: float) -> bool:
        """Whether the lease of a write's id is gone, since another client has revoked it; the next key has a new one.

        Raises:
            EtcdError: the server could not be asked.
        """
        lease = id_key.lease
        if lease != self._lease:  # another write has found out
            return True
        found = await self._store.leases.time_to_live(lease, timeout=seconds_left(deadline))
        if found.is_expired and lease == self._lease:
            self._lease = 0
        return found.is_expired

    def close(self) -> None:
        """Grant no lease any more. The one that there is stays, with the ids."""
        self._granting.cancel()

    async def _grant(self) -> int:
        began, longest = asyncio.get_running_loop().time(), ceil(self._longest)
        granted = await self._store.leases.grant(2 * self._window + longest, timeout=self._timeout)
        self._lease, self._valid_until = granted.id, began + granted.ttl - self._window
        return granted.id
