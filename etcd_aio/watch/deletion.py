"""wait_deleted: wait until a key is gone, by a watch from now and then one read."""

import asyncio
from collections.abc import Awaitable, Callable

from etcd_aio.base.aio import repeat_unanswered
from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import CompactedError, EtcdError, EtcdTimeoutError
from etcd_aio.types import KeyValue
from etcd_aio.watch.watcher import Watcher


async def wait_deleted(
    watch: Callable[[], Watcher], look: Callable[[], Awaitable[KeyValue | None]], revision: int, deadline: float
) -> None:
    """Wait until a key is deleted; see `Client.wait_deleted`.

    The watch is on the server before the read. So if the read finds the key, its deletion is later than the watch, and
    will be delivered. No old revision is named, so a compaction cannot end the wait: a watch that lost its stream for
    so long starts over.

    Args:
        watch: makes a watch of the key from now on, without the puts.
        look: reads the key, without a timeout; called again if it has no answer.
        revision: of the key that is meant; 0 for the one that exists now.
        deadline: the instant at which the wait ends.

    Raises:
        EtcdTimeoutError: the key was not deleted by the deadline.
        EtcdError: the watch or the read failed.
    """
    try:
        async with asyncio.timeout_at(None if deadline == NEVER else deadline):
            while not await _is_deleted(watch, look, revision):
                pass
    except TimeoutError as error:
        if isinstance(error, EtcdError):
            raise
        raise EtcdTimeoutError("the key was not deleted in time") from None


async def _is_deleted(
    watch: Callable[[], Watcher], look: Callable[[], Awaitable[KeyValue | None]], revision: int
) -> bool:
    """One watch and one read; False if the watch ended too early to know."""
    try:
        async with watch() as watcher:
            found = await repeat_unanswered(look)
            if found is None or 0 < revision < found.create_revision:
                return True
            async for event in watcher:
                # A member that is behind also delivers deletions from before the read.
                if event.revision > found.mod_revision:
                    return True
    except CompactedError:
        pass
    return False
