"""http2/frames.py: our bytes, as an independent parser reads them."""

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from etcd_aio.http2 import ErrorCode, error_name, frames


def read(data: bytes) -> list[Frame]:
    found = []
    view = memoryview(data)
    while view:
        one, length = Frame.parse_frame_header(view[:9])
        one.parse_body(view[9 : 9 + length])
        found.append(one)
        view = view[9 + length :]
    return found


def test_settings() -> None:
    (one,) = read(frames.settings({frames.Setting.ENABLE_PUSH: 0, frames.Setting.INITIAL_WINDOW_SIZE: 2**31 - 1}))
    assert isinstance(one, SettingsFrame)
    assert one.settings == {SettingsFrame.ENABLE_PUSH: 0, SettingsFrame.INITIAL_WINDOW_SIZE: 2**31 - 1}
    (ack,) = read(frames.SETTINGS_ACK)
    assert isinstance(ack, SettingsFrame)
    assert "ACK" in ack.flags


def test_window_update_reset_and_goaway() -> None:
    update, reset, goaway = read(
        frames.window_update(5, 2**31 - 1) + frames.rst_stream(7, 8) + frames.goaway(1, b"why")
    )
    assert isinstance(update, WindowUpdateFrame)
    assert (update.stream_id, update.window_increment) == (5, 2**31 - 1)
    assert isinstance(reset, RstStreamFrame)
    assert (reset.stream_id, reset.error_code) == (7, 8)
    assert isinstance(goaway, GoAwayFrame)
    assert (goaway.last_stream_id, goaway.error_code, goaway.additional_data) == (0, 1, b"why")


@pytest.mark.parametrize("ack", [False, True])
def test_ping(ack: bool) -> None:
    (one,) = read(frames.ping(b"12345678", ack=ack))
    assert isinstance(one, PingFrame)
    assert (one.opaque_data, "ACK" in one.flags) == (b"12345678", ack)


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 200, 201, 350])
def test_a_block_takes_as_many_frames_as_it_needs(size: int) -> None:
    block = bytes(range(256))[:size] * 2
    found = read(frames.headers(3, block, 100))
    assert isinstance(found[0], HeadersFrame)
    assert all(isinstance(one, ContinuationFrame) for one in found[1:])
    assert b"".join(getattr(one, "data") for one in found) == block  # noqa: B009
    assert [("END_HEADERS" in one.flags) for one in found] == [False] * (len(found) - 1) + [True]
    assert all(one.stream_id == 3 and "END_STREAM" not in one.flags for one in found)
    assert len(found) == max(1, -(-len(block) // 100))


@pytest.mark.parametrize(
    ("payload", "flags", "block"),
    [
        (b"block", 0, b"block"),
        (b"\x00block", frames.PADDED, b"block"),
        (b"\x03block123", frames.PADDED, b"block"),
        (b"\x05block", frames.PADDED, b""),
        (b"\x06block", frames.PADDED, None),
        (b"", frames.PADDED, None),
        (b"12345block", frames.HAS_PRIORITY, b"block"),
        (b"1234", frames.HAS_PRIORITY, None),
        (b"\x0212345block12", frames.PADDED | frames.HAS_PRIORITY, b"block"),
        (b"\x0112345", frames.PADDED | frames.HAS_PRIORITY, None),
    ],
)
def test_padding_and_priority_are_taken_off(payload: bytes, flags: int, block: bytes | None) -> None:
    assert frames.without_padding(payload, flags) == block


def test_goaway_is_read_without_the_reserved_bit() -> None:
    assert frames.parse_goaway(b"\xff\xff\xff\xff\0\0\0\x0bdebug") == (2**31 - 1, 11, b"debug")


def test_a_code_has_its_name_or_its_number() -> None:
    assert error_name(ErrorCode.REFUSED_STREAM) == "REFUSED_STREAM"
    assert error_name(14) == "code 14"
