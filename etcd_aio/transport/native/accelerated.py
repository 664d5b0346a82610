"""Chooses, at import, what does the usual path of unary calls: the compiled accelerator, or Python alone.

The accelerator starts calls and reads the frames of their answers as `http2` would, and stops before any that is not
usual; see `base/accelerator.py`.
"""

from types import ModuleType
from typing import Any, Final, cast

from etcd_aio.base.accelerator import UnusableError, load_if_usable
from etcd_aio.http2 import (
    RETURN_AFTER,
    STREAM_WINDOW,
    CallsAccelerator,
    HeaderBlock,
    Http2Connection,
    RequestHeaders,
)
from etcd_aio.transport.native.calls import Role, UnaryCall

_SETTINGS: Final = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_REQUEST: Final = RequestHeaders(((":method", "POST"),))
_MESSAGE: Final = b"\0\0\0\0\1r"
# Two answers: the headers (":status: 200"), a message, and the trailers ("grpc-status: 0", without indexing).
_TRAILERS: Final = b"\x00\x0bgrpc-status\x010"
_TYPE: Final = b"\x88\x00\x0ccontent-type\x10application/grpc"


class _Future:
    """As much of a future as a call needs."""

    def __init__(self) -> None:
        self.results: list[bytes] = []

    def done(self) -> bool:
        return bool(self.results)

    def set_result(self, result: bytes) -> None:
        self.results.append(result)


def check(module: ModuleType) -> CallsAccelerator:
    """Have a module take part in an exchange, and compare what is seen of it with what Python alone does.

    Raises:
        UnusableError: anything differs.
        AttributeError, TypeError, ValueError: a function or a class is another one.
    """
    roles = (Role.HEADERS, Role.TRAILERS)
    module.set_classes(UnaryCall, RequestHeaders, HeaderBlock, *roles, STREAM_WINDOW, RETURN_AFTER)
    found = cast("CallsAccelerator", module)
    if _exchange(found) != _exchange(None):
        raise UnusableError("it does not fit: an exchange differs")
    return found


def _exchange(accelerator: CallsAccelerator | None) -> list[Any]:
    """Everything that is seen of some calls on one connection: the first makes the headers known.

    Of the last one, the message comes in two pieces.
    """
    http2: Http2Connection[UnaryCall] = Http2Connection(
        0.0,
        on_settings=lambda: None,
        on_goaway=lambda reason: None,
        on_over=lambda error: None,
        accelerator=accelerator,
    )
    http2.receive_data(_SETTINGS, 0.0)
    seen: list[Any] = [http2.outgoing.data_to_send()]
    calls = [UnaryCall(_REQUEST, None, cast("Any", _Future()), 1.0, 100) for _ in range(4)]
    for number, call in enumerate(calls):
        cut = 5 if number == len(calls) - 1 else len(_MESSAGE)
        http2.outgoing.open(call, _MESSAGE, end=True)
        seen.append(http2.outgoing.data_to_send())
        http2.receive_data(
            _frame(1, 4, call.stream_id, _TYPE)
            + b"".join(_frame(0, 0, call.stream_id, piece) for piece in (_MESSAGE[:cut], _MESSAGE[cut:]) if piece)
            + _frame(1, 5, call.stream_id, _TRAILERS),
            0.0,
        )
        seen += [
            (call.stream_id, call.is_open, call.is_sent_whole, call.has_headers, call.unsent),
            (call.send_window, call.receive_window, call.to_return),
            (cast("Any", call.future).results, dict(http2.outgoing.streams), http2.outgoing.data_to_send()),
        ]
    return seen


def _frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    return bytes((0, 0, len(payload), kind, flags, 0, 0, 0, stream_id)) + payload


_CHOSEN: Final = load_if_usable("transport.native", check)
ACCELERATOR: Final = _CHOSEN[0]
"""The accelerator; None means Python only."""
BACKEND: Final = _CHOSEN[1]
"""`accelerated`, or `pure Python` with the reason."""
