"""codec/incremental.py: any pieces give the same message, in bounded steps, and one error at the end."""

import tracemalloc
from typing import Any

import pytest

from etcd_aio import codec, pb
from etcd_aio.codec.decoder import ACCELERATED_ITEM, FREED, ITEM, STEP
from etcd_aio.codec.speedups import Accelerator
from etcd_aio.errors import MalformedReplyError
from etcd_aio.types import RangeChunk, RangeResult, TxnResult, WatchReply
from tests.support.codec_backends import codec_backend as codec_backend

pytestmark = pytest.mark.usefixtures("codec_backend")

HEADER = pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)


def big_range(kvs: int, value: int) -> pb.RangeResponse:
    history = {"create_revision": 1000, "mod_revision": 2000, "version": 1}
    found = [pb.KeyValue(key=b"%06d" % number, value=bytes(value), **history) for number in range(kvs)]
    return pb.RangeResponse(header=HEADER, kvs=found, count=kvs)


def steps_taken(collector: codec.IncrementalDecoder[Any]) -> int:
    """How many steps there are in what it was fed."""
    steps = 1
    while collector.work():
        steps += 1
    return steps


@pytest.mark.parametrize("decodable", [RangeResult, pb.RangeResponse])
@pytest.mark.parametrize("size", [1, 2, 3, 100, 16_384])
def test_pieces_of_any_size_give_the_same_message(decodable: Any, size: int) -> None:
    data = codec.encode(big_range(100, 200))
    collector = codec.IncrementalDecoder(decodable)
    for start in range(0, len(data), size):
        collector.feed(data[start : start + size])
        collector.work()
    assert collector.finish() == codec.decode(decodable, data)


def test_every_cut_in_two_gives_the_same_message() -> None:
    data = codec.encode(big_range(4, 300))
    expected = codec.decode(RangeResult, data)
    for cut in range(len(data) + 1):
        collector = codec.IncrementalDecoder(RangeResult)
        collector.feed(data[:cut])
        collector.work()
        collector.feed(data[cut:])
        assert collector.finish() == expected


def test_after_the_end_steps_do_all_of_the_work() -> None:
    data = codec.encode(big_range(4, 300))
    for cut in range(len(data) + 1):
        collector = codec.IncrementalDecoder(RangeResult)
        collector.feed(data[:cut])
        collector.work()
        collector.feed(data[cut:])
        collector.end()
        assert steps_taken(collector) == 1
        assert collector.finish() == codec.decode(RangeResult, data)
        assert collector.finish() is collector.finish()


def test_the_list_of_many_items_is_freed_in_steps() -> None:
    data = codec.encode(big_range(3 * FREED + 1, 0))
    collector = codec.IncrementalDecoder(RangeResult)
    collector.feed(data)
    while collector.work():
        pass
    collector.end()
    assert steps_taken(collector) == 1 + 1 + 3  # the rest of the bytes, the tuple, the list
    assert collector.finish() == codec.decode(RangeResult, data)


@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_a_watch_reply_knows_its_size(size: int) -> None:
    events = [pb.Event(kv=pb.KeyValue(key=b"k%d" % number, value=bytes(200))) for number in range(3000)]
    data = codec.encode(pb.WatchResponse(header=HEADER, watch_id=1, events=events))
    assert codec.decode(WatchReply, data).encoded_size == len(data)
    collector = codec.IncrementalDecoder(WatchReply)
    for start in range(0, len(data), size):
        collector.feed(data[start : start + size])
        collector.work()
    reply = collector.finish()
    assert reply.encoded_size == len(data)
    assert len(reply.events) == len(events)


def test_every_truncated_message_gets_the_error_of_decode() -> None:
    data = codec.encode(big_range(2, 300))
    for cut in range(1, len(data)):
        try:
            expected = str(codec.decode(RangeResult, data[:cut]))
        except MalformedReplyError as error:
            expected = error.message
        collector = codec.IncrementalDecoder(RangeResult)
        for start in range(0, cut, 50):
            collector.feed(data[start : min(start + 50, cut)])
            collector.work()
        try:
            found = str(collector.finish())
        except MalformedReplyError as error:
            found = error.message
        assert found == expected


def test_what_came_is_decoded_up_to_the_field_that_is_not_complete() -> None:
    data = codec.encode(big_range(100, 200))
    collector = codec.IncrementalDecoder(RangeResult)
    for start in range(0, len(data), 150):
        collector.feed(data[start : start + 150])
        while collector.work():
            pass
        assert sum(map(len, collector._pieces)) < 300, "a key-value takes less"


def test_no_bytes_are_the_empty_message() -> None:
    assert codec.IncrementalDecoder(RangeResult).finish() == codec.decode(RangeResult, b"")


def test_a_message_is_decoded_while_it_arrives() -> None:
    data = codec.encode(big_range(1_000, 100))
    collector = codec.IncrementalDecoder(RangeResult)
    tracemalloc.start()
    try:
        collector.feed(data[:-1])
        before, _ = tracemalloc.get_traced_memory()
        steps_taken(collector)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before > 50_000, "the key-values are there before the end, and their bytes are gone"
    collector.feed(data[-1:])
    assert len(collector.finish()) == 1_000


@pytest.mark.parametrize("decodable", [RangeResult, pb.RangeResponse])
@pytest.mark.parametrize(("kvs", "value"), [(20_000, 0), (5_000, 100), (300, 10_000)])
def test_a_step_is_bounded_in_bytes_and_in_items(
    codec_backend: Accelerator | None, decodable: Any, kvs: int, value: int
) -> None:
    data = codec.encode(big_range(kvs, value))
    collector = codec.IncrementalDecoder(decodable)
    collector.feed(data)
    is_accelerated = decodable is RangeResult and codec_backend is not None
    most = STEP // ((ACCELERATED_ITEM if is_accelerated else ITEM) + 20)
    assert steps_taken(collector) >= max(len(data) // (STEP + value + 50), kvs // most)
    assert collector.finish() == codec.decode(decodable, data)


def test_a_small_message_takes_one_step() -> None:
    collector = codec.IncrementalDecoder(RangeResult)
    collector.feed(codec.encode(big_range(10, 100)))
    assert steps_taken(collector) == 1


@pytest.mark.parametrize("size", [16_384, 1 << 24])
def test_ranges_in_a_txn_are_decoded_in_steps_too(size: int) -> None:
    one = pb.ResponseOp(response_range=big_range(40_000, 0))
    many = [pb.ResponseOp(response_range=big_range(50, 0)) for _ in range(200)]
    for responses in ([one], many):
        data = codec.encode(pb.TxnResponse(header=HEADER, succeeded=True, responses=responses))
        collector = codec.IncrementalDecoder(TxnResult)
        for start in range(0, len(data), size):
            collector.feed(data[start : start + size])
        assert steps_taken(collector) >= 4
        assert collector.finish() == codec.decode(TxnResult, data)


def test_unknown_fields_are_read_in_steps_too() -> None:
    collector = codec.IncrementalDecoder(RangeResult)
    collector.feed(b"\xfa\x07\x00" * 10_000)
    assert steps_taken(collector) >= 4


def test_an_error_is_raised_at_the_end_and_later_pieces_are_dropped() -> None:
    collector = codec.IncrementalDecoder(RangeResult)
    collector.feed(codec.encode(big_range(5_000, 100)) + b"\x00\x00")
    steps_taken(collector)
    tracemalloc.start()
    try:
        for _ in range(100):
            collector.feed(bytes(16_384))
            assert not collector.work()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 50_000
    with pytest.raises(
        MalformedReplyError, match=r"^malformed RangeResponse: a field number is out of range"
    ) as caught:
        collector.finish()
    assert caught.value.__context__ is None


def test_a_large_message_that_is_cut_short_is_refused() -> None:
    within = codec.encode(pb.TxnResponse(responses=[pb.ResponseOp(response_range=big_range(20_000, 0))]))
    collector = codec.IncrementalDecoder(TxnResult)
    collector.feed(within[:-1])
    with pytest.raises(MalformedReplyError, match="cut short"):
        collector.finish()


@pytest.mark.parametrize("missing", [1, 10, 100, 1_000])
def test_a_message_whose_inner_message_reaches_out_of_it_is_refused(missing: int) -> None:
    inner = codec.encode(big_range(5, 100))
    size = len(inner) + missing
    data = bytes((10, size & 0x7F | 0x80, size >> 7)) + inner
    for decode in (codec.decode, whole_in_steps):
        with pytest.raises(MalformedReplyError, match="cut short"):
            decode(RangeChunk, data)


def whole_in_steps(decodable: Any, data: bytes) -> Any:
    collector = codec.IncrementalDecoder(decodable)
    collector.feed(data)
    return collector.finish()


def test_a_value_of_many_pieces_is_joined_once() -> None:
    data = codec.encode(big_range(1, 8_000_000))
    collector = codec.IncrementalDecoder(RangeResult)
    for start in range(0, len(data), 16_384):
        piece = data[start : start + 16_384]
        tracemalloc.start()
        collector.feed(piece)
        collector.work()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        if start + 16_384 < len(data) - 16_384:
            assert peak < 400_000, "what is not whole is not touched"
    assert collector.finish() == codec.decode(RangeResult, data)
