"""Large replies: decoded a step at a time, so that the loop is free in between.

Knows: what is large, and how to give way. Never knows: where a reply came from.
"""

import asyncio
from typing import Final

from etcd_aio import codec
from etcd_aio.methods import Reply

LARGE: Final = 1 << 14
"""Bytes; what is smaller is decoded at once: some 1000 small key-values, a millisecond."""


async def decode_large(reply: type[Reply], raw: bytes) -> Reply:
    """What `codec.decode` does, letting others run: 50 MB take a fifth of a second.

    Raises:
        MalformedReplyError: as `codec.decode`.
    """
    collector = codec.Collector(reply)
    collector.feed(raw)
    return await finished(collector)


async def finished(collector: "codec.Collector[Reply]") -> Reply:
    """The message of a collector that was fed all of it.

    Raises:
        MalformedReplyError: as `codec.decode`.
    """
    while collector.work():  # noqa: ASYNC110 - it works and does not wait
        await asyncio.sleep(0)
    return collector.finish()
