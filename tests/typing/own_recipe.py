import asyncio
import time

from etcd_aio import UNSET, Client, Key, KeyLike, Timeout, op
from etcd_aio.arguments import encode_key, finite_seconds, whole_number
from etcd_aio.base import SOON, Pauses, time_left
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import EtcdTimeoutError, InvalidRequestError


class RateLimiter:
    """At most `limit` entries in each window of `seconds`.

    The clocks of the machines say which window it is.

    Args:
        store: a client, or a view of one.
        name: the key of the state.
        limit: entries in one window.
        seconds: the length of a window.
    """

    def __init__(
        self, store: StoreCalls, name: KeyLike, *, limit: int, seconds: float
    ) -> None:
        self._store = store
        self._key = encode_key(name, "name")
        self._limit = whole_number(limit, "limit", minimum=1)
        self._seconds = finite_seconds(seconds, "seconds")
        if not self._seconds:
            raise InvalidRequestError("seconds must be more than 0")

    async def enter(self, *, timeout: Timeout = UNSET) -> int:
        """Wait for a place. Returns how many are left in its window.

        Raises:
            EtcdTimeoutError: there was no place in time.
            EtcdError: as every call.
        """
        shared, pauses = self._store.backend.shared, Pauses(SOON)
        deadline = shared.deadline(timeout)
        while True:
            left = await self._try_to_enter(deadline)
            if left is not None:
                return left
            pause = pauses.next()
            if shared.clock() + pause >= deadline:
                raise EtcdTimeoutError(f"{self._key!r} had no place in time")
            await asyncio.sleep(pause)

    async def _try_to_enter(self, deadline: float) -> int | None:
        clock = self._store.backend.shared.clock
        window = int(time.time() // self._seconds)
        left = time_left(deadline, clock())
        kv = await self._store.get(self._key, timeout=left)
        before, entered = map(int, kv.value.split()) if kv else (window, 0)
        if before > window:  # by another machine, whose clock is ahead
            window = before
        elif before < window:
            entered = 0
        if entered >= self._limit:
            return None
        unchanged = Key(self._key).mod_revision == (
            kv.mod_revision if kv else 0
        )
        put = op.put(self._key, f"{window} {entered + 1}")
        txn = self._store.txn().when(unchanged).then(put)
        result = await txn.commit(timeout=time_left(deadline, clock()))
        return self._limit - entered - 1 if result else None
