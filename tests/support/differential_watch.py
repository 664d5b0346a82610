"""Watches of a fake and a real etcd side by side: what each watcher gets is compared, however it is batched.

Before what would be a race on a real server (a cancellation, a compaction, a look at the progress, the end) the test
waits until the real one has sent as much as the fake. Other calls go on while watchers catch up.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from etcd_aio import methods, pb
from etcd_aio.base.aio import start_task
from etcd_aio.codec import decode, encode
from etcd_aio.transport import Connection, Stream
from tests.support.differential import Difference, Pair, Step
from tests.support.drawn_requests import KEYS
from tests.support.transport import soon
from tests.support.until import PATIENCE


class Side:
    """One stream of watches, and what came on it.

    Attributes:
        logs: for each watcher the events, the control messages and the reports of progress, in order.
        created: how many creations were answered.
        got: set with every message.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.logs: dict[int, list[Any]] = defaultdict(list)
        self.created = 0
        self.got = asyncio.Event()
        self._last: dict[int, int] = defaultdict(int)  # the revision of the last event of each watcher
        self._is_fragmented: dict[int, bool] = defaultdict(bool)
        self._reader = start_task(self._read(), name="reader of watches")

    async def send(self, request: pb.Message) -> None:
        await self._stream.send(encode(request))

    async def close(self) -> None:
        self._stream.cancel()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        while isinstance(payload := await self._stream.receive(), bytes):
            self._take(decode(pb.WatchResponse, payload))
            self.got.set()

    def _take(self, reply: pb.WatchResponse) -> None:
        log, revision = self.logs[reply.watch_id], (reply.header or pb.ResponseHeader()).revision
        revisions = [event.kv.mod_revision for event in reply.events if event.kv is not None]
        if revisions:
            is_split = revisions[0] == self._last[reply.watch_id] and not self._is_fragmented[reply.watch_id]
            log += [encode(event) for event in reply.events] + ["a revision in two deliveries"] * is_split
            self._last[reply.watch_id] = revisions[-1]
            self._is_fragmented[reply.watch_id] = reply.fragment
            log += ["to be continued"] * reply.fragment
        if reply.created or reply.canceled:
            self.created += reply.created
            self._last[reply.watch_id] = 0
            log.append(
                (
                    *(reply.created, reply.canceled, reply.compact_revision, reply.cancel_reason),
                    revision if reply.created or reply.compact_revision else 0,
                )
            )
        elif not revisions:
            log.append(("progress", revision))


async def play_watches(pair: Pair, steps: Sequence[Step]) -> None:
    """Send the requests to both, those of watches on a stream, and compare what comes on it."""
    fake, real = [Side(await _opened(side)) for side in pair.sides]
    done: list[Step] = []
    try:
        for step in steps:
            done.append(step)
            request = pair.resolved(step.request)
            if isinstance(request, pb.WatchRequest):
                if request.create_request is None:
                    await _all_are_synced(pair, fake, real, done)
                await fake.send(request)
                await real.send(request)
                pair.tally[step.method.name, "OK"] += 1
                if request.create_request is not None:
                    await _answered(pair, fake, real, done)  # other calls could overtake it
                else:
                    await _settled(pair, fake, real, done)
            else:
                if isinstance(request, pb.CompactionRequest):
                    await _all_are_synced(pair, fake, real, done)
                await pair.compare(Step(step.method, request), done)
        await _all_are_synced(pair, fake, real, done)
    finally:
        await fake.close()
        await real.close()
    await pair.begin_anew()


async def _opened(side: Connection) -> Stream:
    return await side.open_stream(methods.WATCH.path, (("client-api-version", "3.7"),), soon())


async def _all_are_synced(pair: Pair, fake: Side, real: Side, history: Sequence[Step]) -> None:
    """Write to all keys: a watcher that has got that is synced, and has got nothing more than it should have."""
    puts = [pb.RequestOp(request_put=pb.PutRequest(key=key, value=b"all")) for key in KEYS]
    await pair.compare(Step(methods.TXN, pb.TxnRequest(success=puts)), history)
    delete = pb.DeleteRangeRequest(key=b"\x00", range_end=b"\x00")
    await pair.compare(Step(methods.DELETE_RANGE, delete), history)
    await _settled(pair, fake, real, history)


async def _answered(pair: Pair, fake: Side, real: Side, history: Sequence[Step]) -> None:
    """Wait until both have answered all creations."""
    creations = sum(
        isinstance(step.request, pb.WatchRequest) and step.request.create_request is not None for step in history
    )
    try:
        async with asyncio.timeout(PATIENCE):
            for side in (fake, real):
                while side.created < creations:
                    side.got.clear()
                    await side.got.wait()
    except TimeoutError:
        await _settled(pair, fake, real, history)


async def _settled(pair: Pair, fake: Side, real: Side, history: Sequence[Step]) -> None:
    """Wait until the fake has nothing more to send, and the real server has sent the same."""
    await pair.fake_is_idle()
    try:
        async with asyncio.timeout(PATIENCE):
            while any(len(real.logs[one]) < len(log) for one, log in tuple(fake.logs.items())):
                real.got.clear()
                await real.got.wait()
    except TimeoutError:
        pass
    for one in {*fake.logs, *real.logs}:
        if fake.logs[one] != real.logs[one]:
            lines = "\n  ".join(map(repr, history))
            raise Difference(
                f"etcd {pair.version}:\n  {lines}\n"
                f"at revision {pair.now}, compacted {pair.compacted}, watcher {one}\n"
                f"fake: {fake.logs[one]}\nreal: {real.logs[one]}"
            )
