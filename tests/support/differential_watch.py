"""Watches of a fake and a real etcd side by side: what each watcher gets is compared, however it is batched.

Before what would be a race on a real server (a cancellation, a compaction, the end) the test waits until the real one
has sent as much as the fake.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from etcd_aio import methods, pb
from etcd_aio.aio import start_task
from etcd_aio.codec import decode, encode
from etcd_aio.transport import Connection, Stream
from tests.support.differential import Pair, Step, resolve
from tests.support.drawn_requests import KEYS
from tests.support.transport import soon

_PATIENCE = 10.0  # seconds; a real server sends within one


class Side:
    """One stream of watches, and what came on it.

    Attributes:
        logs: for each watcher the events and the control messages, in order.
        got: set with every message.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.logs: dict[int, list[Any]] = defaultdict(list)
        self.got = asyncio.Event()
        self._reader = start_task(self._read(), name="reader of watches")

    async def send(self, request: pb.WatchRequest) -> None:
        await self._stream.send(encode(request))

    async def close(self) -> None:
        self._stream.cancel()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        while (payload := await self._stream.receive()) is not None:
            reply = decode(pb.WatchResponse, payload)
            self.got.set()
            log = self.logs[reply.watch_id]
            log += [event.to_dict() for event in reply.events]
            if reply.created or reply.canceled:
                header = reply.header or pb.ResponseHeader()
                log.append(
                    (
                        *(reply.created, reply.canceled, reply.compact_revision, reply.cancel_reason),
                        header.revision if reply.created or reply.compact_revision else 0,
                    )
                )


async def play_watches(pair: Pair, steps: Sequence[Step]) -> None:
    """Send the requests to both, those of watches on a stream, and compare what comes on it."""
    fake, real = [Side(await _opened(side)) for side in pair.sides]
    done: list[Step] = []
    try:
        for step in steps:
            done.append(step)
            request = resolve(step.request, pair.now, pair.compacted)
            if isinstance(request, pb.WatchRequest):
                if request.cancel_request is not None:
                    await _settled(pair, fake, real, done)
                await fake.send(request)
                await real.send(request)
                await _settled(pair, fake, real, done)  # a creation, which other calls could overtake
            else:
                if isinstance(request, pb.CompactionRequest):
                    await _all_watchers_get_something(pair, fake, real, done)
                await pair.compare(Step(step.method, request), done)
        await _all_watchers_get_something(pair, fake, real, done)
    finally:
        await fake.close()
        await real.close()
        await pair.begin_anew()


async def _opened(side: Connection) -> Stream:
    return await side.open_stream(methods.WATCH.path, (("client-api-version", "3.7"),), soon())


async def _all_watchers_get_something(pair: Pair, fake: Side, real: Side, history: Sequence[Step]) -> None:
    """Write to all keys: a watcher that has got that is synced, and has got nothing more than it should have."""
    puts = [pb.RequestOp(request_put=pb.PutRequest(key=key, value=b"all")) for key in KEYS]
    await pair.compare(Step(methods.TXN, pb.TxnRequest(success=puts)), history)
    delete = pb.DeleteRangeRequest(key=b"\x00", range_end=b"\x00")
    await pair.compare(Step(methods.DELETE_RANGE, delete), history)
    await _settled(pair, fake, real, history)


async def _settled(pair: Pair, fake: Side, real: Side, history: Sequence[Step]) -> None:
    """Wait until the fake has nothing more to send, and the real server has sent the same."""
    await pair.fake_is_idle()
    try:
        async with asyncio.timeout(_PATIENCE):
            while any(len(real.logs[one]) < len(log) for one, log in tuple(fake.logs.items())):
                real.got.clear()
                await real.got.wait()
    except TimeoutError:
        pass
    for one in {*fake.logs, *real.logs}:
        if fake.logs[one] != real.logs[one]:
            lines = "\n  ".join(map(repr, history))
            raise AssertionError(
                f"\n  {lines}\nat revision {pair.now}, compacted {pair.compacted}, watcher {one}\n"
                f"fake: {fake.logs[one]}\nreal: {real.logs[one]}"
            )
