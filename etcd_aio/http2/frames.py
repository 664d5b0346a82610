"""The frames of HTTP/2: RFC 9113's numbers, and the bytes of the frames that a client sends.

`connection.py` reads the frames that it receives.
"""

from enum import IntEnum
from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_SIZE: Final = 9
FRAME_HEADER: Final = Struct(">HBBBL")  # length in 16 + 8 bits, type, flags, stream id
DEFAULT_MAX_FRAME_SIZE: Final = 16_384
DEFAULT_WINDOW: Final = 65_535
MAX_WINDOW: Final = 2**31 - 1
MAX_STREAM_ID: Final = 2**31 - 1

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
HAS_PRIORITY: Final = 0x20


class ErrorCode(IntEnum):
    """The reason for the end of a stream or a connection (RFC 9113, section 7)."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Setting(IntEnum):
    """A setting (RFC 9113, section 6.5.2)."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


_SETTING: Final = Struct(">HL")
_U32: Final = Struct(">L")
_GOAWAY: Final = Struct(">LL")


def error_name(code: int) -> str:
    """The name of an error code; a code that RFC 9113 does not define keeps its number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"code {code}"


def frame_header(length: int, kind: int, flags: int, stream_id: int) -> bytes:
    """The nine bytes before every payload."""
    return FRAME_HEADER.pack(length >> 8, length & 0xFF, kind, flags, stream_id)


def settings(values: dict[Setting, int]) -> bytes:
    """A SETTINGS frame."""
    payload = b"".join(_SETTING.pack(name, value) for name, value in values.items())
    return frame_header(len(payload), SETTINGS, 0, 0) + payload


SETTINGS_ACK: Final = frame_header(0, SETTINGS, ACK, 0)


def window_update(stream_id: int, increment: int) -> bytes:
    """A WINDOW_UPDATE frame; stream 0 is the connection."""
    return frame_header(4, WINDOW_UPDATE, 0, stream_id) + _U32.pack(increment)


def rst_stream(stream_id: int, code: int) -> bytes:
    """An RST_STREAM frame."""
    return frame_header(4, RST_STREAM, 0, stream_id) + _U32.pack(code)


def ping(payload: bytes, *, ack: bool = False) -> bytes:
    """A PING frame with its eight bytes."""
    return frame_header(8, PING, ACK if ack else 0, 0) + payload


def goaway(code: int, debug: bytes = b"") -> bytes:
    """A GOAWAY frame. The last stream is 0, since a client processes no streams of the server."""
    return frame_header(8 + len(debug), GOAWAY, 0, 0) + _GOAWAY.pack(0, code) + debug


def headers(stream_id: int, block: bytes, max_frame_size: int) -> bytes:
    """HEADERS and, where the block is larger than a frame may be, the CONTINUATIONs that belong to it."""
    if len(block) <= max_frame_size:
        return frame_header(len(block), HEADERS, END_HEADERS, stream_id) + block
    parts = [frame_header(max_frame_size, HEADERS, 0, stream_id), block[:max_frame_size]]
    for start in range(max_frame_size, len(block), max_frame_size):
        piece = block[start : start + max_frame_size]
        last = start + max_frame_size >= len(block)
        parts += (frame_header(len(piece), CONTINUATION, END_HEADERS if last else 0, stream_id), piece)
    return b"".join(parts)


def parse_settings(payload: bytes) -> list[tuple[int, int]]:
    """The pairs of a SETTINGS payload, whose length is a multiple of six."""
    return list(_SETTING.iter_unpack(payload))


def parse_u32(payload: bytes) -> int:
    """The number in a WINDOW_UPDATE or RST_STREAM."""
    return int(_U32.unpack(payload)[0])


def parse_goaway(payload: bytes) -> tuple[int, int, bytes]:
    """Last stream id, error code, debug data."""
    last, code = _GOAWAY.unpack_from(payload)
    return last & MAX_STREAM_ID, code, payload[8:]


def without_padding(payload: bytes, flags: int) -> bytes | None:
    """The header block of a HEADERS frame with padding or priority; None if the frame is too short for its flags."""
    start = 0
    end = len(payload)
    if flags & PADDED:
        if not payload:
            return None
        end -= payload[0]
        start = 1
    if flags & HAS_PRIORITY:
        start += 5
    return payload[start:end] if start <= end else None
