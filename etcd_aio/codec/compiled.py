"""The compiled codec: functions written for each class when it is first met, as `dataclasses` does it.

Knows: which functions there are, and which of their failures mean bad input. Never knows: how to parse a field; see
`decoding` and `encoding`.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, TypeAlias

from etcd_aio.codec import reference
from etcd_aio.codec import wire as varints
from etcd_aio.codec.compiler import Function, function
from etcd_aio.codec.decoder import Decoder
from etcd_aio.codec.encoder import Encoder, Unusual, Writer
from etcd_aio.codec.targets import Decodable, message_class_of, shape_of
from etcd_aio.errors import MalformedReplyError
from etcd_aio.pb import Message

# --- out ---


class _Encoders(dict[type[Message], Function]):
    def __missing__(self, message_class: type[Message]) -> Function:
        found = self[message_class] = function(Encoder(message_class))
        return found


class _Writers(dict[type[Message], Callable[..., bytes]]):
    def __missing__(self, message_class: type[Message]) -> Callable[..., bytes]:
        found = self[message_class] = function(Writer(message_class))
        return found


_encoders: Final = _Encoders()
writers: Final[Mapping[type[Message], Callable[..., bytes]]] = _Writers()
"""For each message class a function that writes the message from its fields, without making it:

    writers[pb.PutRequest](key=b"k", value=b"v")

The fields are given by name, each left out if it is not set; inner messages are given as their bytes. They are trusted:
numbers are in range, and at most one member of a oneof is given. Whoever is not sure makes the message.
"""


def encode(message: Message) -> bytes:
    """The bytes of a message. Fields stand in the order of the .proto file, unknown ones behind them.

    Args:
        message: what to encode; it is not changed.

    Raises:
        InvalidRequestError: a field holds what its type cannot carry, more than one member of a oneof is set, or
            messages nest more than `fields.MAX_DEPTH` deep.
    """
    try:
        return _encoders[type(message)](message, 1)  # type: ignore[no-any-return] # functions made by exec have no types
    except (Unusual, UnicodeEncodeError, RecursionError):
        pass
    # Raised out here, so that the error carries no context. Most likely it will be refused; the reference knows why.
    return reference.encode(message)


# --- in ---


class _Decoders(dict[type[object], Function]):
    def __init__(self, *, in_steps: bool) -> None:
        super().__init__()
        self._in_steps = in_steps

    def __missing__(self, decodable: type[object]) -> Function:
        found = self[decodable] = function(Decoder(shape_of(decodable), self._in_steps))
        return found


Steps: TypeAlias = Generator[tuple[int, int] | None, tuple[bytes, int, int, bool] | None, Any]
"""What a decoder in steps yields, is sent and returns; see `decoding`."""

_decoders: Final = _Decoders(in_steps=False)
_stepwise_decoders: Final = _Decoders(in_steps=True)


def decode(decodable: type[Decodable], data: bytes) -> Decodable:
    """What `data` says.

    A field that comes more than once counts as it came last, a message too: protobuf would merge the two, but no server
    sends that.

    Args:
        decodable: the class of the message, or the result that stands for it. A result forgets what it does not know; a
            message keeps it. A `TxnResult` made here knows nothing of the request, so it has a `RangeResult` for a get,
            and of a txn within only the header that was sent.
        data: one whole message.

    Raises:
        MalformedReplyError: `data` is cut short, or does not follow protobuf's encoding of this class.
    """
    try:
        return _decoders[decodable](data, 0, len(data), 1)  # type: ignore[no-any-return] # functions made by exec have no types
    except FAILURES as failure:
        reason = reason_of(failure)
    # Raised out here, so that the error carries no context: a UnicodeDecodeError holds the text.
    raise refusal(decodable, reason)


def steps_of(decodable: type[Decodable]) -> Steps:
    """A decoder in steps that has begun, and waits for its first bytes; see `decoding`."""
    steps: Steps = _stepwise_decoders[decodable](b"", 0, 0, 1, False)
    next(steps)
    return steps


def refusal(decodable: type[Decodable], reason: str) -> MalformedReplyError:
    """The error of bytes that are no such message."""
    return MalformedReplyError(f"malformed {message_class_of(decodable).__name__}: {reason}")


FAILURES: Final = (varints.Refusal, IndexError, UnicodeDecodeError, RecursionError)
"""What decoders raise at bad input."""


def reason_of(failure: BaseException) -> str:
    """One of `FAILURES` in words, without anything of the input."""
    match failure:
        case varints.Refusal():
            return str(failure)
        case IndexError():
            return varints.CUT_SHORT
        case UnicodeDecodeError():
            return "text is not UTF-8"
        case _:
            return "it nests too deep to be decoded from here"
