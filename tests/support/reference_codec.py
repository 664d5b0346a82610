"""The reference codec: betterproto2's own, made strict. The compiled codec is tested against it.

betterproto2 0.10 accepts a message that ends in the middle, puts numbers where text belongs, keeps two members of a
oneof, and writes integers that are too large as bytes that no one can read. `check_bytes` and `check_message` find
these mistakes first. They follow https://protobuf.dev/programming-guides/encoding/.
"""

from typing import TypeVar

import betterproto2 as bp

from etcd_aio.codec.fields import INTEGERS, Field, fields_of
from etcd_aio.codec.wire import FIXED_32, FIXED_64, LENGTH, MAX_DEPTH, MAX_FIELD_NUMBER, VARINT
from etcd_aio.errors import InvalidRequestError, MalformedReplyError
from etcd_aio.pb import Message

M = TypeVar("M", bound=Message)


def encode(message: Message) -> bytes:
    """The bytes of a message. Fields are in the order of the .proto file, unknown ones last.

    Args:
        message: what to encode; it is not changed.

    Raises:
        InvalidRequestError: a field holds what its type cannot carry, more than one member of a oneof is set, or
            messages nest more than `fields.MAX_DEPTH` deep.
    """
    try:
        check_message(message)
        return bytes(message)
    except RecursionError:
        pass
    # Raised here, so that the error does not hold a thousand frames of recursion.
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
    # Raised here, so that the error has no context: a UnicodeDecodeError contains the text.
    raise MalformedReplyError(f"malformed {message_class.__name__}: {reason}")


# --- bytes that come in ---


def check_bytes(message_class: type[Message], data: bytes) -> None:
    """Make sure that `data` has the structure of a `message_class`. Text is not looked at.

    Raises:
        MalformedReplyError: it does not, and why.
    """
    try:
        _check_span(message_class, data, 0, len(data), 1)
    except _Malformed as error:
        reason = str(error)
    else:
        return
    raise MalformedReplyError(f"malformed {message_class.__name__}: {reason}")


class _Malformed(Exception):  # noqa: N818 - never leaves this file
    """Why the bytes are refused."""


def _check_span(message_class: type[Message], data: bytes, position: int, end: int, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _Malformed(f"messages nest more than {MAX_DEPTH} deep")
    fields = fields_of(message_class)
    oneofs: dict[str, int] = {}
    while position < end:
        start = position
        key, position = _read_varint(data, position, end)
        number, wire_type = key >> 3, key & 7
        if position - start > 1 and not data[position - 1]:
            # Legal, but no one writes it, and a reader may take every field for what its first bytes say.
            raise _Malformed("a field number is written longer than it needs")
        if not 1 <= number <= MAX_FIELD_NUMBER:
            raise _Malformed("a field number is out of range")
        start, position = _skip_value(data, position, end, number, wire_type)
        field = fields.get(number)
        if field is None:
            continue
        if not field.allows(wire_type):
            raise _Malformed(f"field {number} has wire type {wire_type}")
        if field.oneof is not None and oneofs.setdefault(field.oneof, number) != number:
            # protobuf lets the last one count; no server sends that, and betterproto2 would keep both.
            raise _Malformed(f"oneof {field.oneof} has two members")
        if field.message_class is not None:
            _check_span(field.message_class, data, start, position, depth + 1)
        elif wire_type == LENGTH and field.is_integer:
            while start < position:
                _, start = _read_varint(data, start, position)


def _skip_value(data: bytes, position: int, end: int, number: int, wire_type: int) -> tuple[int, int]:
    """Where a field's content begins and where it ends."""
    if wire_type == VARINT:
        start = position
        _, stop = _read_varint(data, position, end)
    elif wire_type == LENGTH:
        length, start = _read_varint(data, position, end)
        stop = start + length
    elif wire_type in (FIXED_64, FIXED_32):
        start, stop = position, position + (8 if wire_type == FIXED_64 else 4)
    else:  # groups, which proto3 does not have, and two numbers without meaning
        raise _Malformed(f"field {number} has wire type {wire_type}")
    if stop > end:
        raise _Malformed(f"field {number} is cut short")
    return start, stop


def _read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, position
        shift += 7
        if shift == 70:
            break
    else:
        raise _Malformed("a varint is cut short")
    raise _Malformed("a varint has more than 64 bits")


# --- messages that go out ---


def check_message(message: Message) -> None:
    """Make sure that `message` can be written, so that a reader gets the same values.

    Raises:
        InvalidRequestError: it cannot, and which field is to blame. The field's value is not shown.
    """
    _check_fields(message, 1)


def _check_fields(message: Message, depth: int) -> None:
    owner = type(message).__name__
    if depth > MAX_DEPTH:
        raise InvalidRequestError(f"{owner}: messages nest more than {MAX_DEPTH} deep")
    oneofs: dict[str, str] = {}
    for field in fields_of(type(message)).values():
        value: object = getattr(message, field.name)
        if field.repeated:
            if not isinstance(value, list):
                raise InvalidRequestError(f"{owner}.{field.name} must be a list, not {type(value).__name__}")
            for item in value:
                _check_item(owner, field, item, depth)
        elif value is not None or not field.may_be_none:
            if field.oneof is not None and oneofs.setdefault(field.oneof, field.name) != field.name:
                raise InvalidRequestError(f"{owner}: both {oneofs[field.oneof]} and {field.name} are set")
            _check_item(owner, field, value, depth)


def _check_item(owner: str, field: Field, value: object, depth: int) -> None:
    wrong = f"{owner}.{field.name} cannot be of type {type(value).__name__}"
    if field.message_class is not None:
        if not isinstance(value, field.message_class):
            raise InvalidRequestError(wrong)
        _check_fields(value, depth + 1)
    elif field.proto_type == bp.TYPE_BYTES:
        if not isinstance(value, bytes):
            raise InvalidRequestError(wrong)
    elif field.proto_type == bp.TYPE_STRING:
        if not isinstance(value, str):
            raise InvalidRequestError(wrong)
        if not _is_unicode(value):
            raise InvalidRequestError(f"{owner}.{field.name} holds lone surrogates, which UTF-8 cannot express")
    elif not isinstance(value, int):
        raise InvalidRequestError(wrong)
    else:
        low, high = INTEGERS[field.proto_type]
        if not low <= value <= high:
            raise InvalidRequestError(f"{owner}.{field.name} is out of range: {field.proto_type} is {low} to {high}")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
