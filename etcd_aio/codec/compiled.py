"""The compiled codec: a function for each class, from the generated modules, or generated at first use.

What most programs need is in `generated/`. For any other class the function is generated at its first use, as
`dataclasses` does it; only that, and messages as objects, need betterproto2.
"""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from etcd_aio.codec.decodable import Decodable, Function
from etcd_aio.codec.speedups import ACCELERATOR
from etcd_aio.codec.wire import CUT_SHORT, WireFormatError
from etcd_aio.errors import InvalidRequestError, MalformedReplyError
from etcd_aio.types import Header

if TYPE_CHECKING:
    from etcd_aio.pb import Message, ResponseHeader

if ACCELERATOR is None:
    from etcd_aio.codec.generated import decoders
else:
    from etcd_aio.codec.generated import accelerated_decoders as decoders  # type: ignore[no-redef] # they have the same names

_C = TypeVar("_C")


class _Functions(dict[_C, Function]):
    """The function of each class, made at first use."""

    def __init__(self, make: Callable[[_C], Function], ready: Mapping[_C, Function] | None = None) -> None:
        super().__init__(ready or {})
        self._make = make

    def __missing__(self, key: _C) -> Function:
        function = self[key] = self._make(key)
        return function


# --- encoding ---


def _encoder(message_class: "type[Message]") -> Function:
    from etcd_aio.codec.codegen import function_of
    from etcd_aio.codec.encoder import Encoder

    return function_of(Encoder(message_class))


def _writer(message_class: "type[Message]") -> Function:
    from etcd_aio.codec.codegen import function_of
    from etcd_aio.codec.encoder import Writer

    return function_of(Writer(message_class))


_encoders: Final = _Functions(_encoder)
writers: "Final[Mapping[type[Message], Callable[..., bytes]]]" = _Functions(_writer)
"""For each message class a function that encodes the message from its fields, without creating it:

    writers[pb.PutRequest](key=b"k", value=b"v")

Fields are passed by name, unset ones left out, and inner messages as their bytes. Nothing is checked: numbers must be
in range, and at most one member of a oneof passed. `encode` checks.
"""


def encode(message: "Message") -> bytes:
    """The bytes of a message. Fields are in the order of the .proto file, unknown ones last.

    Args:
        message: the message to encode; it is not changed.

    Raises:
        InvalidRequestError: a field has the wrong type or is out of range, more than one
            member of a oneof is set, or messages nest more than `MAX_DEPTH` deep.
    """
    try:
        return _encoders[type(message)](message, 1)  # type: ignore[no-any-return] # functions made by exec have no types
    except UnicodeEncodeError:
        reason = "text contains lone surrogates, which UTF-8 cannot encode"
    except RecursionError:
        reason = "it nests too deep to be encoded from here"
    # Raised here, so that the error has no context: a UnicodeEncodeError contains the text.
    raise InvalidRequestError(f"{type(message).__name__}: {reason}")


# --- decoding ---


Steps: TypeAlias = Generator[tuple[int, int] | None, tuple[bytes, int, int, bool] | None, Any]
"""A stepwise decoder: what it yields, receives and returns. See `decoder`."""


def _decoder(decodable: type[object], *, in_steps: bool = False) -> Function:
    from etcd_aio.codec.codegen import function_of
    from etcd_aio.codec.decoder import Decoder
    from etcd_aio.codec.targets import target_of

    return function_of(Decoder(target_of(decodable), in_steps))


_decoders: Final = _Functions[type[object]](_decoder, decoders.DECODERS)
_stepwise_decoders: Final = _Functions[type[object]](partial(_decoder, in_steps=True), decoders.STEPWISE_DECODERS)


def decode(decodable: type[Decodable], data: bytes) -> Decodable:
    """Decode a message.

    Of a field that occurs more than once the last one counts, for messages too: protobuf would merge them, but no
    server sends that.

    Args:
        decodable: the class of the message, or the result class that stands for it. A result drops unknown fields; a
            message keeps them. A `TxnResult` is decoded without its request: it has a `RangeResult` for a get, and of
            an inner transaction only the header that was sent.
        data: one complete message.

    Raises:
        MalformedReplyError: `data` is cut short, or does not follow protobuf's encoding of this class.
    """
    try:
        return _decoders[decodable](data, 0, len(data), 1)  # type: ignore[no-any-return] # functions made by exec have no types
    except DECODE_FAILURES as failure:
        reason = reason_of(failure)
    # Raised here, so that the error has no context: a UnicodeDecodeError contains the text.
    raise malformed(decodable, reason)


def steps_of(decodable: type[Decodable]) -> Steps:
    """A stepwise decoder that was started and waits for its first bytes; see `decoder`."""
    steps: Steps = _stepwise_decoders[decodable](b"", 0, 0, 1, False)
    next(steps)
    return steps


def malformed(decodable: type[Decodable], reason: str) -> MalformedReplyError:
    """The error for bytes that are not a valid message of this class."""
    from etcd_aio.codec.targets import message_class_of

    return MalformedReplyError(f"malformed {message_class_of(decodable).__name__}: {reason}")


DECODE_FAILURES: Final = (WireFormatError, IndexError, UnicodeDecodeError, RecursionError)
"""Exceptions that decoders raise for invalid input."""


def reason_of(failure: BaseException) -> str:
    """The text for one of `DECODE_FAILURES`, without any part of the input."""
    match failure:
        case WireFormatError():
            return str(failure)
        case IndexError():
            return CUT_SHORT
        case UnicodeDecodeError():
            return "text is not UTF-8"
        case _:
            return "it nests too deep to be decoded from here"


def header_of(message: "ResponseHeader | None") -> Header:
    """The header of a reply that was decoded into its message."""
    if message is None:
        return Header()
    return Header(message.cluster_id, message.member_id, message.revision, message.raft_term)
