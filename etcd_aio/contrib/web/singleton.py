"""Singleton: a block of code that one worker of all runs once, while the others wait until it is done.

The key `<name>/done` says that it is done, and the lock of the name, whose keys are `<name>/<lease>`, lets one worker
in. No lock has a key that ends like that, and the key is in no lock's way, whatever names singletons have.
"""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from etcd_aio import Client, KeyLike, op
from etcd_aio.arguments import encode_key
from etcd_aio.base import AsyncBlock
from etcd_aio.calls import check_store
from etcd_aio.errors import ClientUsageError

if TYPE_CHECKING:
    from etcd_aio.concurrency import Lock

_DONE = b"done"
_SUFFIX = b"/done"  # not hexadecimal, as a lease is


class Singleton(AsyncBlock):
    """A block that runs once for its name: `async with etcd.singleton("migrate-7") as won:`.

    Entering waits until the block is done, or this worker may run it. `won` says which. When the block of the winner
    ends without an exception, the key `<name>/done` is written. From then on every worker gets False at once, also
    after a restart; delete the key to have it run again. If the block fails, or its worker dies, another worker wins.

    Args:
        client: the client.
        name: of the lock; `<name>/done` is the key.
        ttl: seconds until another worker may win after a crash of the winner.
    """

    def __init__(self, client: Client, name: KeyLike, *, ttl: int) -> None:
        check_store(client)
        self._client = client
        self._key = encode_key(name, "name") + _SUFFIX
        self._lock: Lock = client.lock(name, ttl=ttl)
        self._is_entered = False
        self._won: AsyncExitStack | None = None  # the block, which holds the lock

    async def __aenter__(self) -> bool:
        """Wait until it is done, or this worker has won.

        Returns:
            Whether this worker runs the block.

        Raises:
            EtcdError: as acquiring a lock, and as every read.

        Cancellation leaves nothing behind.
        """
        if self._is_entered:
            raise ClientUsageError("a singleton can only be entered once: call `singleton` for another one")
        self._is_entered = True
        if await self._is_done():
            return False
        async with AsyncExitStack() as block:
            await block.enter_async_context(self._lock)
            if not await self._is_done():
                self._won = block.pop_all()
        return self._won is not None

    async def _is_done(self) -> bool:
        return await self._client.get(self._key) is not None

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write the key, if the block ran and has not failed.

        Raises:
            LockLostError: the lock was lost, and the block cancelled: another worker may have begun.
            EtcdError: the key could not be written: another worker may run the block again.
        """
        if self._won is None:
            return
        if exc is None:
            async with self._won:  # the key says the same whenever it is put, so the put may be repeated
                await self._lock.fenced.txn().then(op.put(self._key, _DONE)).commit(retry="always")
        else:
            await self._won.__aexit__(exc_type, exc, traceback)
