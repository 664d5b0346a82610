"""http2/stream.py: Http2Stream: what one begins as."""

from etcd_aio.http2 import Http2Stream, RequestHeaders
from tests.support.http2 import SlowSink


def test_a_new_stream_is_open_and_nothing_of_it_is_out() -> None:
    stream = Http2Stream(RequestHeaders(()))
    assert (stream.stream_id, stream.is_open, stream.is_sent_whole, stream.has_begun) == (0, True, False, False)
    assert not stream.unsent


def test_received_bytes_are_returned_at_once_unless_the_reader_sets_the_pace() -> None:
    assert Http2Stream.auto_return
    assert not SlowSink.auto_return


def test_a_stream_has_no_room_for_what_it_does_not_need() -> None:
    assert not hasattr(Http2Stream(RequestHeaders(())), "__dict__")
