"""Base copy: makes a destination with any content equal to a source at one revision."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

from etcd_aio.base import start_task
from etcd_aio.calls import StoreCalls
from etcd_aio.mirror.batching import Limits, pack
from etcd_aio.mirror.reconcile import Change, Merge, differences

_IN_FLIGHT: Final = 8
"""Txns under way: enough to keep a member busy, few enough that others are served meanwhile."""


async def copy_base(
    source: StoreCalls,
    destination: StoreCalls,
    *,
    prefix: bytes,
    to_prefix: bytes,
    leave: bytes,
    limits: Limits,
    write: Callable[[tuple[Change, ...]], Coroutine[object, object, None]],
) -> int:
    """Compare both sides page by page, and write the differences, but for the key of the destination to leave.

    Several calls of `write` are under way, with changes of different keys, within the limits of a txn.

    Returns:
        The revision of the source that the destination is equal to.

    Raises:
        CompactedError: it took longer than a compaction of one of the two. What is copied stays.
        EtcdError: one of the two failed.

    Cancellation ends the txns under way; they may have been applied.
    """
    wanted, present = source.scan(prefix=prefix).pages(), destination.scan(prefix=to_prefix).pages()
    merge: Merge[bytes, bytes] = Merge()
    writes: set[asyncio.Task[None]] = set()
    try:
        while not merge.is_complete:
            side, pages = (merge.source, wanted) if merge.reads_source else (merge.destination, present)
            page = await anext(pages)
            copies = {kv.key: kv.value for kv in page.kvs}
            if pages is wanted:
                copies = {to_prefix + key[len(prefix) :]: value for key, value in copies.items()}
            for left_out in (b"", leave):  # etcd has no empty key
                copies.pop(left_out, None)
            side.add(list(copies), list(copies.values()), is_last=not page.more)
            for changes in pack(differences(*merge.take()), limits):
                writes = await _settled(writes, _IN_FLIGHT - 1)
                writes.add(start_task(write(changes), name="etcd_aio mirror write"))
        await _settled(writes, 0)
    finally:
        for task in writes:
            task.cancel()
        await wanted.aclose()
        await present.aclose()
        await asyncio.gather(*writes, return_exceptions=True)
    return wanted.revision


async def _settled(writes: set[asyncio.Task[None]], most: int) -> set[asyncio.Task[None]]:
    """Wait until at most so many txns are under way, and return these."""
    while len(writes) > most:
        done, writes = await asyncio.wait(writes, return_when=asyncio.FIRST_COMPLETED)
        errors = [error for write in done if (error := write.exception()) is not None]  # all are retrieved
        if errors:
            raise errors[0]
    return writes
