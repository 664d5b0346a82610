"""The wire format of protobuf: the fields of a message by their numbers. Pure."""

from struct import Struct
from typing import Final, TypeAlias

_DOUBLE: Final = Struct("<d")

Found: TypeAlias = int | float | bytes
"""A number, one of eight or four bytes, or the bytes of text, of a message, or of anything else with a length."""


class MalformedMessageError(ValueError):
    """Bytes are no message of protobuf, or another one. Not seen by users."""


def fields_of(data: bytes) -> dict[int, list[Found]]:
    """Parse a message: its fields by their numbers, in order.

    Raises:
        MalformedMessageError: the bytes are no message.
    """
    found: dict[int, list[Found]] = {}
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        content: Found
        if wire == 0:
            content, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            content = data[at : at + size]
            at += size
        elif wire == 1:
            (content,) = _DOUBLE.unpack(data[at : at + 8].ljust(8, b"\0"))
            at += 8
        elif wire == 5:
            content = data[at : at + 4]
            at += 4
        else:
            raise MalformedMessageError(f"there is no wire type {wire}")
        if at > end or not number:
            raise MalformedMessageError("it is cut short, or has a field without a number")
        found.setdefault(number, []).append(content)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 64 bits, and the position behind it."""
    number = shift = 0
    for byte in data[at : at + 10]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number & 2**64 - 1, at + shift // 7
    raise MalformedMessageError("a number is cut short")


def signed(number: int) -> int:
    """A number as a signed one of 64 bits."""
    return number - 2**64 if number >= 2**63 else number
