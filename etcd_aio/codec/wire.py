"""Protobuf's wire format: wire types, varints, tags and skipped fields, shared by the generated functions.

Malformed data raises `WireFormatError`; reading past the end of the data raises IndexError. The functions do not check
where the message ends: a number that crosses its end leaves the position behind the end, which the decoder notices.
"""

import functools
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Final

MAX_DEPTH: Final = 100
"""How deep messages may nest; the outermost is 1. Protobuf's own default in C++, Java and Python."""

MAX_FIELD_NUMBER: Final = (1 << 29) - 1

VARINT: Final = 0
FIXED_64: Final = 1
LENGTH: Final = 2
FIXED_32: Final = 5

CUT_SHORT: Final = "a field is cut short"

_CACHED_BELOW: Final = 1 << 14  # smaller numbers are cached, at about 100 bytes each
_REVISION_BITS: Final = (
    50  # larger numbers are ids of leases, which are few, and are sent again with each of their keys
)
_MOST_CACHED: Final = _CACHED_BELOW + 1024
LONGEST: Final = 10
"""Bytes of the longest varint."""


class WireFormatError(Exception):
    """The bytes are not valid protobuf. Never leaves the codec."""


# --- reading ---


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift == 7 * LONGEST:
            raise WireFormatError("a varint has more than 64 bits")
    if number >> 64:
        raise WireFormatError("a varint has more than 64 bits")
    return number, at


# Long numbers are the ids of clusters, members and leases, which repeat, so they are cached. The key includes the bytes
# after the number; usually these are the next field's tag, and so repeat too.


@functools.lru_cache(maxsize=512)
def long_unsigned(ten_bytes: bytes) -> tuple[int, int]:
    """The number at the beginning of some bytes, and its size."""
    return read_varint(ten_bytes, 0)


@functools.lru_cache(maxsize=512)
def long_signed(ten_bytes: bytes) -> tuple[int, int]:
    """`long_unsigned` for numbers that may be negative."""
    number, size = read_varint(ten_bytes, 0)
    return number - (1 << 64) if number >> 63 else number, size


def read_length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """End and start of the content whose length is at a position. The end is behind `end` if the data is incomplete."""
    try:
        length, start = read_varint(data, at)
    except IndexError:
        return end + 1, at
    return start + length, start


def behind_field(data: bytes, at: int, end: int) -> int:
    """The position after the field at a position; it is behind `end` if the field is incomplete.

    The field itself is not checked.
    """
    try:
        tag, at = read_tag(data, at)
        wire_type = tag & 7
        if wire_type == VARINT:
            return read_varint(data, at + 1)[1]
        if wire_type == LENGTH:
            return sum(read_varint(data, at + 1))
    except IndexError:
        return end + 1
    return at + {FIXED_64: 9, FIXED_32: 5}.get(wire_type, 1)


def read_packed(data: bytes, at: int, end: int, *, signed: bool) -> list[int]:
    """The numbers of a packed field."""
    numbers = []
    while at < end:
        number, at = read_varint(data, at)
        numbers.append(number - (1 << 64) if signed and number >> 63 else number)
    if at > end:
        raise WireFormatError(CUT_SHORT)
    return numbers


def read_tag(data: bytes, at: int) -> tuple[int, int]:
    """A tag (field number and wire type), and the position of its last byte."""
    tag, behind = read_varint(data, at)
    if behind - at > 1 and not data[behind - 1]:
        # Legal, but no encoder writes it, and decoders here compare the first bytes of a tag.
        raise WireFormatError("a field number is written longer than it needs")
    return tag, behind - 1


def skip_unknown(data: bytes, at: int, end: int, known: Collection[int]) -> int:
    """The position after an unknown field.

    Args:
        data: the data.
        at: where the field begins.
        end: where its message ends.
        known: numbers of the known fields; a known field here has the wrong wire type.
    """
    tag, _ = read_tag(data, at)
    number, wire_type = tag >> 3, tag & 7
    if not 1 <= number <= MAX_FIELD_NUMBER:
        raise WireFormatError("a field number is out of range")
    # The other wire types are groups, which proto3 does not have, and two undefined ones.
    if number in known or wire_type not in {VARINT, FIXED_64, LENGTH, FIXED_32}:
        raise WireFormatError(f"field {number} has wire type {wire_type}")
    behind = behind_field(data, at, end)
    if behind > end:
        raise WireFormatError(CUT_SHORT)
    return behind


def enum_reader(number: int, members: Mapping[int, Enum]) -> Callable[[int], Enum]:
    """Make the function that converts the value of an enum's field into the member that results have.

    Args:
        number: of the field.
        members: by the values on the wire. Other values are refused.
    """

    def member_of(value: int) -> Enum:
        try:
            return members[value]
        except KeyError:
            pass
        raise WireFormatError(f"field {number} has an unknown value")

    return member_of


# --- writing ---


class _Varints(dict[int, bytes]):
    """The bytes of every 64-bit number; negative ones in two's complement, as protobuf writes them."""

    def __missing__(self, number: int) -> bytes:
        written = _write(number if number >= 0 else number + (1 << 64))
        is_lease_id = number >> _REVISION_BITS > 0 and len(self) < _MOST_CACHED
        if is_lease_id or 0 <= number < _CACHED_BELOW:
            self[number] = written
        return written


def _write(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(0x80 | number & 0x7F)
        number >>= 7
    out.append(number)
    return bytes(out)


VARINT_BYTES: Final = _Varints()
"""The bytes of a number: `VARINT_BYTES[number]`. Small ones are cached, and so are ids of leases."""
