from collections.abc import Iterable
from typing import Any

from etcd_aio.http2 import HeaderBlock, RequestHeaders
from etcd_aio.transport.native.calls import Role, UnaryCall

def set_classes(
    unary_call: type[UnaryCall],
    request_headers: type[RequestHeaders],
    header_block: type[HeaderBlock],
    headers: Role,
    trailers: Role,
    stream_window: int,
    return_after: int,
    /,
) -> None: ...
def start(
    queue: Iterable[Any],
    streams: dict[int, Any],
    most: int,
    next_id: int,
    generation: int,
    stream_window: int,
    send_window: int,
    largest_frame: int,
    /,
) -> tuple[bytes, int, int]: ...
def advance(
    data: bytes, at: int, streams: dict[int, Any], known: dict[bytes, Any], room: int, /
) -> tuple[int, int, int]: ...
