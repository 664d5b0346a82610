"""BaseCopy: makes a destination with any content equal to a source at one revision."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, TypeAlias

from etcd_aio.base import start_task
from etcd_aio.calls import StoreCalls
from etcd_aio.mirror.batching import Limits, pack
from etcd_aio.mirror.reconcile import Change, Merge, differences

_IN_FLIGHT: Final = 8
"""Txns under way: enough to keep a member busy, few enough that others are served meanwhile."""

Write: TypeAlias = Callable[[tuple[Change, ...]], Coroutine[object, object, None]]


class BaseCopy:
    """One comparison of a source and a destination, page by page, with the txns that end the differences.

    Args:
        source: has the keys.
        destination: gets them.
        prefix: of the keys at the source.
        to_prefix: of the keys at the destination.
        leave: a key of the destination that is none of the copy.
        limits: of a txn.
        write: applies changes of different keys, on the condition that the checkpoint is unchanged.
    """

    def __init__(
        self,
        source: StoreCalls,
        destination: StoreCalls,
        *,
        prefix: bytes,
        to_prefix: bytes,
        leave: bytes,
        limits: Limits,
        write: Write,
    ) -> None:
        self._source = source.scan(prefix=prefix).pages()
        self._destination = destination.scan(prefix=to_prefix).pages()
        self._cut = len(prefix)
        self._to_prefix = to_prefix
        self._leave = leave
        self._limits = limits
        self._write = write
        self._writes: set[asyncio.Task[None]] = set()
        self._merge: Merge[bytes, bytes] = Merge()

    async def run(self) -> int:
        """Copy the differences; returns the revision of the source that they lead to.

        Raises:
            CompactedError: it took longer than a compaction of one of the two. What is copied stays.
            EtcdError: one of the two failed.

        Cancellation ends the txns under way; they may have been applied.
        """
        try:
            while not self._merge.is_complete:
                await self._read()
                wanted, found = self._merge.take()
                for changes in pack(differences(wanted, found), self._limits):
                    await self._settle(_IN_FLIGHT - 1)
                    self._writes.add(start_task(self._write(changes), name="etcd_aio mirror write"))
            await self._settle(0)
        finally:
            for write in self._writes:
                write.cancel()
            await self._source.aclose()
            await self._destination.aclose()
            await asyncio.gather(*self._writes, return_exceptions=True)
        return self._source.revision

    async def _read(self) -> None:
        """Read the next page of the side that is behind."""
        if self._merge.reads_source:
            page = await anext(self._source)
            keys = [self._to_prefix + kv.key[self._cut :] for kv in page.kvs]
            side = self._merge.source
        else:
            page = await anext(self._destination)
            keys = [kv.key for kv in page.kvs]
            side = self._merge.destination
        values = [kv.value for kv in page.kvs]
        for left_out in (b"", self._leave):  # etcd has no empty key
            if left_out in keys:
                at = keys.index(left_out)
                del keys[at], values[at]
        side.add(keys, values, is_last=not page.more)

    async def _settle(self, most: int) -> None:
        """Wait until at most so many txns are under way."""
        while len(self._writes) > most:
            done, self._writes = await asyncio.wait(self._writes, return_when=asyncio.FIRST_COMPLETED)
            errors = [error for write in done if (error := write.exception()) is not None]  # all are retrieved
            if errors:
                raise errors[0]
