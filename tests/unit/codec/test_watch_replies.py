"""Watch replies that are still arriving: whose they are, and decoding them without events that their watch drops."""

import pytest

from etcd_aio import codec, pb
from etcd_aio.codec.watch_replies import WatchReplyDecoder, leading_watch_id, without_events
from etcd_aio.errors import MalformedReplyError
from etcd_aio.transport.interface import BEGINNING
from etcd_aio.types import WatchReply
from tests.support.codec_backends import codec_backend as codec_backend

pytestmark = pytest.mark.usefixtures("codec_backend")

HEADER = pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)
LONGEST = 2**63 - 1
HEADERS = [None, pb.ResponseHeader(), pb.ResponseHeader(2 * LONGEST, 2 * LONGEST, LONGEST, 2 * LONGEST)]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("watch_id", [0, 1, 1 << 32, LONGEST])
def test_the_watch_id_is_found_and_never_guessed(header: pb.ResponseHeader | None, watch_id: int) -> None:
    events = [pb.Event(kv=pb.KeyValue(key=b"k" * 100, value=b"v" * 100))]
    message = codec.encode(pb.WatchResponse(header=header, watch_id=watch_id, events=events))
    assert leading_watch_id(message[:BEGINNING]) == watch_id
    whole = len(codec.encode(pb.WatchResponse(header=header, watch_id=watch_id)))
    for size in range(whole):
        assert leading_watch_id(message[:size]) is None


def test_other_messages_have_no_watch_id() -> None:
    for raw in (b"", b"\x0a", b"\x0a\xff", b"\x10" + b"\xff" * 20):
        assert leading_watch_id(raw) is None


@pytest.mark.parametrize("events", [1, 3])
def test_a_watch_reply_is_cut_before_its_events(events: int) -> None:
    reply = pb.WatchResponse(
        header=HEADER, watch_id=300, created=True, canceled=True, compact_revision=1 << 40, cancel_reason="Z" * 200
    )
    head = codec.encode(reply)
    reply.fragment = True
    cut = codec.encode(reply)
    reply.events = [pb.Event(kv=pb.KeyValue(key=b"k" * 90, value=bytes(200)))] * events
    message = codec.encode(reply)
    assert without_events(message) == cut != head
    for size in range(len(cut) + 1):
        assert without_events(message[:size]) is None


@pytest.mark.parametrize("message", [b"", b"\x0a", b"\x0a\xff", b"\x10" + b"\xff" * 20, b"\x0d\0\0\0\0\x5a\0"])
def test_what_is_no_watch_reply_is_not_cut(message: bytes) -> None:
    assert without_events(message) is None


def watch_reply(watch_id: int, events: int = 2000) -> bytes:
    changes = [pb.Event(kv=pb.KeyValue(key=b"%06d" % number, value=bytes(300))) for number in range(events)]
    return codec.encode(pb.WatchResponse(header=HEADER, watch_id=watch_id, fragment=True, events=changes))


def read(decoder: WatchReplyDecoder, message: bytes, size: int) -> WatchReply:
    for start in range(0, len(message), size):
        decoder.feed(message[start : start + size])
        decoder.work()
    return decoder.finish()


@pytest.mark.parametrize("size", [7, 100, 16_384, 1 << 20])
def test_only_the_events_of_a_watch_that_drops_them_are_left_out(size: int) -> None:
    dropping = {7}
    for watch_id in (0, 7, 300):
        message = watch_reply(watch_id)
        found = read(WatchReplyDecoder(dropping.__contains__), message, size)
        whole = codec.decode(WatchReply, message)
        assert (found.header, found.watch_id, found.fragment) == (whole.header, watch_id, True)
        assert found.events == (() if watch_id in dropping else whole.events)


@pytest.mark.parametrize("fed", [1, 10, 100, 100_000, 500_000, 600_000])
def test_a_watch_may_drop_its_events_while_they_arrive(fed: int) -> None:
    dropping = set[int]()
    message = watch_reply(7)
    decoder = WatchReplyDecoder(dropping.__contains__)
    decoder.feed(message[:fed])
    decoder.work()
    dropping.add(7)
    decoder.feed(message[fed:])
    assert decoder.finish() == WatchReply(codec.decode(WatchReply, message).header, 7, fragment=True, encoded_size=17)
    decoder.feed(b"more that is dropped")


def test_what_was_dropped_is_not_kept_nor_read() -> None:
    decoder = WatchReplyDecoder({7}.__contains__)
    decoder.feed(watch_reply(7)[:1000])
    decoder.work()
    for _ in range(10):
        decoder.feed(bytes(1 << 20))
        assert not decoder.work()
    assert not decoder._pieces
    assert decoder.finish().events == ()


@pytest.mark.parametrize("message", [b"\x0a\xff", b"\x10" + b"\xff" * 20, b"\x0d\0\0"])
def test_a_malformed_message_is_refused_although_events_would_be_dropped(message: bytes) -> None:
    with pytest.raises(MalformedReplyError):
        read(WatchReplyDecoder(lambda watch_id: True), message, 1)
