"""The compiled codec: its functions are generated for each class at first use, as `dataclasses` does it."""

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from etcd_aio.codec.codegen import Function, GeneratedFunction, function_of
from etcd_aio.codec.decoder import Decoder
from etcd_aio.codec.encoder import Encoder, Writer
from etcd_aio.codec.targets import Decodable, message_class_of, target_of
from etcd_aio.codec.wire import CUT_SHORT, WireFormatError
from etcd_aio.errors import InvalidRequestError, MalformedReplyError
from etcd_aio.pb import Message

_C = TypeVar("_C")


class _Functions(dict[_C, Function]):
    """The function of each class, generated at first use."""

    def __init__(self, generator: Callable[[_C], GeneratedFunction]) -> None:
        super().__init__()
        self._generator = generator

    def __missing__(self, key: _C) -> Function:
        function = self[key] = function_of(self._generator(key))
        return function


# --- encoding ---


_encoders: Final = _Functions(Encoder)
writers: Final[Mapping[type[Message], Callable[..., bytes]]] = _Functions(Writer)
"""For each message class a function that encodes the message from its fields, without creating it:

    writers[pb.PutRequest](key=b"k", value=b"v")

Fields are passed by name, unset ones left out, and inner messages as their bytes. Nothing is checked: numbers must be
in range, and at most one member of a oneof passed. `encode` checks.
"""


def encode(message: Message) -> bytes:
    """The bytes of a message. Fields are in the order of the .proto file, unknown ones last.

    Args:
        message: the message to encode; it is not changed.

    Raises:
        InvalidRequestError: a field has the wrong type or is out of range, more than one
            member of a oneof is set, or messages nest more than `fields.MAX_DEPTH` deep.
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

_decoders: Final = _Functions[type[object]](lambda decodable: Decoder(target_of(decodable)))
_stepwise_decoders: Final = _Functions[type[object]](lambda decodable: Decoder(target_of(decodable), in_steps=True))


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
