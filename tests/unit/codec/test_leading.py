"""Leading: the watch that a message is for, from its first bytes."""

import pytest

from etcd_aio import codec, pb
from etcd_aio.codec.leading import leading_watch_id
from etcd_aio.transport.interface import BEGINNING

LONGEST = 2**63 - 1
HEADERS = [None, pb.ResponseHeader(), pb.ResponseHeader(2 * LONGEST, 2 * LONGEST, LONGEST, 2 * LONGEST)]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("watch_id", [0, 1, 1 << 32, LONGEST])
def test_the_id_is_found_and_never_guessed(header: pb.ResponseHeader | None, watch_id: int) -> None:
    events = [pb.Event(kv=pb.KeyValue(key=b"k" * 100, value=b"v" * 100))]
    message = codec.encode(pb.WatchResponse(header=header, watch_id=watch_id, events=events))
    assert leading_watch_id(message[:BEGINNING]) == watch_id
    whole = len(codec.encode(pb.WatchResponse(header=header, watch_id=watch_id)))
    for size in range(whole):
        assert leading_watch_id(message[:size]) is None


def test_what_is_no_such_message_has_none() -> None:
    for raw in (b"", b"\x0a", b"\x0a\xff", b"\x10" + b"\xff" * 20):
        assert leading_watch_id(raw) is None
