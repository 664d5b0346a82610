"""The reference codec: betterproto2's own, made strict.

Knows: betterproto2, and which of its failures mean bad input. Never knows: how to parse a field; see `strictness`.
"""

from typing import TypeVar

from etcd_aio.codec.strictness import check_bytes, check_message
from etcd_aio.errors import InvalidRequestError, MalformedReplyError
from etcd_aio.pb import Message

M = TypeVar("M", bound=Message)


def encode(message: Message) -> bytes:
    """The bytes of a message. Fields stand in the order of the .proto file, unknown ones behind them.

    Args:
        message: what to encode; it is not changed.

    Raises:
        InvalidRequestError: a field holds what its type cannot carry, more than one member of a oneof is set, or
            messages nest more than `strictness.MAX_DEPTH` deep.
    """
    try:
        check_message(message)
        return bytes(message)
    except RecursionError:
        pass
    # Raised out here, so that a thousand frames of recursion do not hang on to the error.
    raise InvalidRequestError(f"{type(message).__name__} nests too deep to be encoded from here")


def decode(message_class: type[M], data: bytes) -> M:
    """The message that `data` is.

    A field that comes more than once counts as it came last, a message too: protobuf would merge the two, but no server
    sends that.

    Args:
        message_class: the class of the message.
        data: one whole message.

    Raises:
        MalformedReplyError: `data` is cut short, or does not follow protobuf's encoding of this class.
    """
    try:
        check_bytes(message_class, data)
        return message_class.parse(data)
    except UnicodeDecodeError:
        reason = "text is not UTF-8"
    except RecursionError:
        reason = "it nests too deep to be decoded from here"
    # Raised out here, so that the error carries no context: a UnicodeDecodeError holds the text.
    raise MalformedReplyError(f"malformed {message_class.__name__}: {reason}")
