"""Chunks: the request for what is left, and the keys of a reply."""

import pytest

from etcd_aio import codec, pb
from etcd_aio.error_handler import StreamedReply
from etcd_aio.kv import op
from etcd_aio.kv.chunks import Chunks
from etcd_aio.methods import RANGE_STREAM
from etcd_aio.types import Header, KeyValue, RangeChunk, RangeResult

pytestmark = pytest.mark.anyio

REST = op.range("k", range_end="l", revision=7, keys_only=True)


class FakeInvoker:
    """Remembers what it was asked, and gives the replies that it was made with."""

    def __init__(self, *replies: RangeChunk | None) -> None:
        self.replies = list(replies)
        self.asked: list[dict[str, object]] = []
        self.readings: list[object] = []

    async def read(self, reading: StreamedReply[object, object], rest: bytes, **options: object) -> RangeChunk | None:  # type: ignore[type-var]
        self.readings.append(reading)
        self.asked.append({"rest": codec.decode(pb.RangeRequest, rest), **options})
        return self.replies.pop(0)


async def test_keys_come_by_range_stream() -> None:
    kv = KeyValue(b"k")
    invoker = FakeInvoker(RangeChunk(RangeResult(Header(), (kv,))), RangeChunk(), None)
    chunks = Chunks(invoker)  # type: ignore[arg-type]
    assert [await chunks.read(REST, 2.0, "never") for _ in range(3)] == [(kv,), (), None]
    assert len(set(map(id, invoker.readings))) == 1
    request = pb.RangeRequest(key=b"k", range_end=b"l", revision=7, keys_only=True)
    assert invoker.asked == [{"rest": request, "timeout": 2.0, "retry": "never", "needs_leader": True}] * 3


async def test_a_serializable_rest_needs_no_leader() -> None:
    invoker = FakeInvoker(None)
    await Chunks(invoker).read(op.range("k", serializable=True), None, None)  # type: ignore[arg-type]
    assert invoker.asked[0]["needs_leader"] is False


async def test_cancel_ends_the_reading() -> None:
    invoker = FakeInvoker(None)
    chunks = Chunks(invoker)  # type: ignore[arg-type]
    await chunks.read(REST, None, None)
    chunks.cancel()
    (reading,) = invoker.readings
    assert isinstance(reading, StreamedReply)
    assert reading.method is RANGE_STREAM
    assert reading.is_cancelled
