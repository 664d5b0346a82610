"""codec/watch_replies.py: whose they are while they arrive, and decoding without dropped events."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import codec, pb
from etcd_aio.codec.incremental import PIECE
from etcd_aio.codec.watch_replies import WatchReplyDecoder, leading_watch_id, without_events
from etcd_aio.errors import MalformedReplyError
from etcd_aio.transport.interface import BEGINNING
from etcd_aio.types import WatchReply
from tests.support.codec_backends import codec_backend as codec_backend

pytestmark = pytest.mark.usefixtures("codec_backend")

HEADER = pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)
LONGEST = 2**63 - 1
HEADERS = [None, pb.ResponseHeader(), pb.ResponseHeader(2 * LONGEST, 2 * LONGEST, LONGEST, 2 * LONGEST)]


def decoder_of(
    drops_events: Callable[[int], bool] = lambda watch_id: False,
    has_fragments: Callable[[int], bool] = lambda watch_id: False,
) -> WatchReplyDecoder:
    """The decoder of a message whose watch is live, and did not request fragments."""
    return WatchReplyDecoder(drops_events, has_fragments)


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
        found = read(decoder_of(dropping.__contains__), message, size)
        whole = codec.decode(WatchReply, message)
        assert (found.header, found.watch_id, found.fragment) == (whole.header, watch_id, True)
        assert found.events == (() if watch_id in dropping else whole.events)


@pytest.mark.parametrize("fed", [1, 10, 100, 100_000, 500_000, 600_000])
def test_a_watch_may_drop_its_events_while_they_arrive(fed: int) -> None:
    dropping = set[int]()
    message = watch_reply(7)
    decoder = decoder_of(dropping.__contains__)
    decoder.feed(message[:fed])
    decoder.work()
    dropping.add(7)
    decoder.feed(message[fed:])
    assert decoder.finish() == WatchReply(codec.decode(WatchReply, message).header, 7, fragment=True, encoded_size=17)
    decoder.feed(b"more that is dropped")


def test_what_was_dropped_is_not_kept_nor_read() -> None:
    decoder = decoder_of({7}.__contains__)
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
        read(decoder_of(lambda watch_id: True), message, 1)


# --- parts ---


def large_reply(sizes: list[int], **fields: object) -> bytes:
    """A reply to watch 7, whose events have values of these sizes."""
    changes = [
        pb.Event(kv=pb.KeyValue(key=b"%d" % number, value=bytes(size), mod_revision=number + 1))
        for number, size in enumerate(sizes)
    ]
    reply = pb.WatchResponse(header=HEADER, watch_id=7, events=changes)
    for name, content in fields.items():
        setattr(reply, name, content)
    return codec.encode(reply)


def in_parts(message: bytes, cuts: list[int]) -> list[WatchReply]:
    """The parts of a message that arrives in such pieces, and the rest of it."""
    decoder = decoder_of()
    found: list[WatchReply] = []

    def take() -> None:
        has_part = decoder.has_part
        part = decoder.take_part()
        assert (part is not None) is has_part
        if part is not None:
            found.append(part)
            assert not decoder.has_part

    at = 0
    for cut in cuts:
        decoder.feed(message[at : at + cut])
        at += cut
        while decoder.work():
            take()
        take()
    decoder.feed(message[at:])
    return [*found, decoder.finish()]


@given(
    st.lists(st.sampled_from([0, 5, 300, 100_000, 200_000]), min_size=1, max_size=12),
    st.lists(st.integers(0, 300_000), max_size=12),
    st.booleans(),
)
def test_the_parts_of_a_message_are_fragments_with_all_its_events(
    sizes: list[int], cuts: list[int], is_fragment: bool
) -> None:
    message = large_reply(sizes, fragment=is_fragment)
    whole = codec.decode(WatchReply, message)
    *parts, rest = in_parts(message, cuts)
    assert tuple(event for part in (*parts, rest) for event in part.events) == whole.events
    assert all(part.events for part in (*parts, rest)), "a reply without events would say that there are no more"
    assert all(part.fragment for part in parts)
    assert rest.fragment is is_fragment
    assert all((part.header, part.watch_id) == (whole.header, 7) for part in (*parts, rest))
    sizes_read = sum(part.encoded_size for part in (*parts, rest))
    assert whole.encoded_size <= sizes_read <= whole.encoded_size + 40 * len(parts)


def test_a_large_message_has_parts_of_some_size() -> None:
    message = large_reply([1000] * 2000)
    parts = in_parts(message, [10_000] * (len(message) // 10_000))
    assert len(parts) >= 4
    assert all(part.encoded_size >= PIECE // 2 for part in parts[:-1])


@pytest.mark.parametrize("more", [b"", b"\x62\x03new", b"\x38\x01"], ids=["nothing", "unknown", "known"])
def test_a_message_is_not_divided_behind_its_last_event(more: bytes) -> None:
    """The rest would have no events, and mean that all events up to the store's revision were sent."""
    decoder = decoder_of()
    decoder.feed(large_reply([1000] * 500))
    while decoder.work():
        pass
    decoder.feed(more)
    assert not decoder.has_part
    assert decoder.take_part() is None
    assert len(decoder.finish().events) == 500


@pytest.mark.parametrize("fields", [{"created": True}, {"canceled": True}, {"compact_revision": 3}, {"watch_id": 0}])
def test_a_message_that_says_more_than_whose_events_it_has_comes_whole(fields: dict[str, object]) -> None:
    message = large_reply([1000] * 500, **fields)
    (found,) = in_parts(message, [100_000] * 4)
    assert found == codec.decode(WatchReply, message)


@pytest.mark.parametrize("before", [b"\xa2\x06\x03new", b"\x82\x01\x02\x5a\x5a"])
def test_a_message_with_an_unknown_field_of_a_high_number_before_its_events_comes_whole(before: bytes) -> None:
    message = large_reply([1000] * 500)
    at = message.index(b"\x5a")
    (found,) = in_parts(message[:at] + before + message[at:], [100_000] * 4)
    assert len(found.events) == 500


def test_an_event_that_is_malformed_is_refused_after_the_parts_before_it() -> None:
    decoder = decoder_of()
    decoder.feed(large_reply([1000] * 500))
    while decoder.work():
        pass
    decoder.feed(b"\x5a\x02\x12\x05")
    part = decoder.take_part()
    assert part is not None
    assert len(part.events) == 500
    with pytest.raises(MalformedReplyError):
        decoder.finish()
    assert not decoder.has_part


@pytest.mark.parametrize("fragment", [True, False])
def test_the_fragments_of_a_server_have_no_parts(fragment: bool) -> None:
    decoder = decoder_of(has_fragments={7}.__contains__)
    decoder.feed(large_reply([1000] * 500, fragment=fragment)[:-1])
    while decoder.work():
        assert not decoder.has_part
    assert not decoder.has_part
    assert decoder.take_part() is None


def test_a_message_that_has_ended_has_no_more_parts() -> None:
    decoder = decoder_of()
    decoder.feed(large_reply([1000] * 300) + large_reply([1000] * 300))
    while decoder.work():
        pass
    decoder.feed(b"\x5a")
    assert decoder.has_part
    decoder.end()
    assert not decoder.has_part


def test_events_that_are_dropped_have_no_parts() -> None:
    dropping = set[int]()
    decoder = decoder_of(dropping.__contains__)
    message = large_reply([1000] * 1000)
    decoder.feed(message[:500_000])
    while decoder.work():
        pass
    assert decoder.has_part
    dropping.add(7)
    decoder.work()
    assert not decoder.has_part
    decoder.feed(message[500_000:])
    assert decoder.finish().events == ()
