"""Pieces: where a message of many frames goes while it comes.

Knows: collectors, and turns of the loop. Never knows: frames, or what a message means.
"""

import asyncio
from typing import Protocol

from etcd_aio.transport.interface import Collector


class Pieces(Protocol):
    """What a message of many pieces is written to."""

    def write(self, piece: bytes, /) -> object:
        """Add a piece."""

    def getvalue(self) -> bytes:
        """The message."""
        ...


class Collected:
    """A message that goes to a collector instead of being put together; nothing is left of it here.

    The collector works in turns of the loop of its own, so that others get theirs, and for as long as the call is under
    way: the rest is its owner's to do.
    """

    __slots__ = ("_collector", "_future", "_is_due")

    def __init__(self, collector: Collector, future: "asyncio.Future[bytes]") -> None:
        self._collector = collector
        self._future = future
        self._is_due = False

    def write(self, piece: bytes, /) -> None:
        """See `Pieces.write`."""
        self._collector.feed(piece)
        self._schedule()

    def getvalue(self) -> bytes:
        """See `Pieces.getvalue`."""
        return b""

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        self._is_due = False
        if not self._future.done() and self._collector.work():
            self._schedule()
