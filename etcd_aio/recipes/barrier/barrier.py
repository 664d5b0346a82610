"""Barrier: a key that processes wait for the end of. It is Go's `Barrier` recipe, and works together with it."""

import asyncio

from etcd_aio import EtcdTimeoutError, Key, KeyValue, op
from etcd_aio.arguments import encode_key, lease_id
from etcd_aio.base import NEVER, UNSET, Timeout, deadline_after, time_left, when_constructed
from etcd_aio.calls import StoreCalls, Writer, check_store, is_exact, writer_for
from etcd_aio.errors import BarrierError, BarrierTimeoutError, ResultLostError
from etcd_aio.types import KeyLike, LeaseLike, OpResult, ValueLike, shown_key


class Barrier:
    """A barrier: processes that wait go on when it is released.

        barrier = Barrier(client, "deploy/ready")
        await barrier.hold()
        await barrier.release()
        await barrier.wait_released(timeout=30)      in other processes

    The key is the name itself, as of Go's `Barrier`. Without a lease it stays until it is released.

    Args:
        client: the client, or a store that wraps one.
        name: the key.
        writer: makes `hold` exact although its answer is lost, such as `client.exactly_once()`. Default: the client.
        timeout: seconds for `hold` and `release` without a `timeout` of their own; None for no limit. Default: 5, as of
            `Client`.

    Raises:
        EmptyKeyError, InvalidRequestError, TypeError: an argument is invalid.
    """

    def __init__(
        self,
        client: StoreCalls,
        name: KeyLike,
        *,
        writer: Writer | None = None,
        timeout: Timeout = UNSET,
    ) -> None:
        check_store(client)
        self._store = client
        self._key = encode_key(name, "name")
        self._writer = writer_for(client, writer)
        self._is_exact = is_exact(self._writer)
        self._timeout = client.backend.shared.seconds(timeout)
        self._revision = 0  # `create_revision` of the key that this object has created

    @when_constructed
    def __repr__(self) -> str:
        return f"<Barrier {shown_key(self._key)}{' held' if self._revision else ''}>"

    async def hold(self, *, value: ValueLike = b"", lease: LeaseLike | None = None, timeout: Timeout = UNSET) -> bool:
        """Hold the barrier, if it is not held.

        Args:
            value: of the key, such as the name of the holder.
            lease: the lease to attach the key to, so that the barrier ends with its holder. Default: none.
            timeout: seconds for the whole call; None for no limit.

        Returns:
            bool: whether this call holds it now; False if it was held already.

        Raises:
            EtcdError: as every txn. If `maybe_applied` is True, it may be held, now or later. It is not repeated by
                itself, since a late copy would hold the barrier after its release. With a lease, call it again: it
                finds the key that is its own.

        Cancellation: it is held or not, as with every write.
        """
        own = 0 if lease is None else lease_id(lease)
        put, look = op.put(self._key, value, lease=own), op.get(self._key)
        txn = self._writer.txn().when(Key(self._key).missing).then(put).otherwise(look)
        deadline = deadline_after(self._limit(timeout), asyncio.get_running_loop().time())
        try:
            result = await txn.commit(timeout=self._limit(timeout), retry=None if self._is_exact else "safe")
        except ResultLostError:  # it was held already, and the key that was there is compacted
            found: OpResult = await self._store.do(look, timeout=self._left(deadline)) if own else None
        else:
            if result.succeeded:
                self._revision = result.revision
                return True
            found = result.responses[0]
        if own and isinstance(found, KeyValue) and found.lease == own and found.create_revision != self._revision:
            self._revision = found.create_revision
            return True
        return False

    async def release(self, *, force: bool = False, timeout: Timeout = UNSET) -> bool:
        """Release the barrier: all that wait for it go on.

        Args:
            force: release it also if another process holds it.
            timeout: seconds for the whole call; None for no limit.

        Returns:
            bool: whether it was held until now; False if another process has released it, or its lease has ended, or if
                an earlier copy of the request, whose answer was lost, has released it.

        Raises:
            BarrierError: this object does not hold it, and there is no `force`.
            EtcdError: as every txn.

        Cancellation: it is released or not; call it again.
        """
        deadline = deadline_after(self._limit(timeout), asyncio.get_running_loop().time())
        revision = self._revision
        if force:
            found = await self._store.get(self._key, keys_only=True, timeout=self._limit(timeout))
            revision = 0 if found is None else found.create_revision
            if not revision:
                self._revision = 0
                return False
        elif not revision:
            raise BarrierError(f"this object does not hold the barrier {shown_key(self._key)}: force=True releases it")
        # Repeated until it is answered: the revision never comes back, so a late copy deletes nothing else.
        txn = op.txn(when=[Key(self._key).create_revision == revision], then=[op.delete(self._key)])
        result = await self._store.do(txn, timeout=self._left(deadline), retry="always")
        self._revision = 0
        return result.succeeded

    async def wait_released(self, *, timeout: float | None = None) -> None:
        """Wait until the barrier is not held; it returns at once if it is not.

        It goes on with other members after a failure, and is not disturbed by compactions. If the barrier is held again
        at once, it returns all the same.

        Args:
            timeout: seconds for the whole wait. Default: None, no limit.

        Raises:
            BarrierTimeoutError: the barrier was not released in time.
            EtcdError: as every read and watch.

        Cancellation leaves nothing behind.
        """
        try:
            await self._store.wait_deleted(self._key, timeout=timeout)
        except EtcdTimeoutError as error:
            raise BarrierTimeoutError(f"the barrier {shown_key(self._key)} was not released in time") from error

    def _limit(self, timeout: Timeout) -> float | None:
        return self._timeout if timeout is UNSET else timeout

    def _left(self, deadline: float) -> float | None:
        return None if deadline == NEVER else time_left(deadline, asyncio.get_running_loop().time())
