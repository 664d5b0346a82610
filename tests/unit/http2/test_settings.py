"""http2/settings.py: which of the peer's values count, and which end the connection."""

import pytest

from etcd_aio.http2 import ErrorCode, RemoteProtocolError, frames
from etcd_aio.http2.frames import Setting
from etcd_aio.http2.settings import PeerSettings
from tests.support.http2 import setting


def test_before_the_peer_says_anything_rfc_9113s_defaults_hold() -> None:
    peer = PeerSettings()
    assert (peer.initial_window, peer.max_frame_size, peer.table_size) == (65_535, 16_384, 4096)
    assert peer.max_streams == frames.MAX_STREAM_ID


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        (Setting.ENABLE_PUSH, 1, ErrorCode.PROTOCOL_ERROR),
        (Setting.ENABLE_PUSH, 2, ErrorCode.PROTOCOL_ERROR),
        (Setting.INITIAL_WINDOW_SIZE, 2**31, ErrorCode.FLOW_CONTROL_ERROR),
        (Setting.MAX_FRAME_SIZE, 16_383, ErrorCode.PROTOCOL_ERROR),
        (Setting.MAX_FRAME_SIZE, 2**24, ErrorCode.PROTOCOL_ERROR),
    ],
)
def test_a_value_out_of_bounds_is_refused(name: int, value: int, code: ErrorCode) -> None:
    with pytest.raises(RemoteProtocolError) as raised:
        PeerSettings().apply(setting(name, value))
    assert raised.value.code is code


@pytest.mark.parametrize(
    ("name", "value", "attribute"),
    [
        (Setting.INITIAL_WINDOW_SIZE, 0, "initial_window"),
        (Setting.INITIAL_WINDOW_SIZE, 2**31 - 1, "initial_window"),
        (Setting.MAX_FRAME_SIZE, 16_384, "max_frame_size"),
        (Setting.MAX_FRAME_SIZE, 2**24 - 1, "max_frame_size"),
        (Setting.MAX_CONCURRENT_STREAMS, 0, "max_streams"),
        (Setting.MAX_CONCURRENT_STREAMS, 2**32 - 1, "max_streams"),
        (Setting.HEADER_TABLE_SIZE, 0, "table_size"),
    ],
)
def test_values_at_the_bounds_are_taken(name: int, value: int, attribute: str) -> None:
    peer = PeerSettings()
    peer.apply(setting(name, value))
    assert getattr(peer, attribute) == value


def test_the_last_word_counts_and_unknown_ones_do_not() -> None:
    peer = PeerSettings()
    peer.apply(setting(4, 1) + setting(0x99, 7) + setting(Setting.ENABLE_PUSH, 0) + setting(4, 2))
    assert peer.initial_window == 2
