"""Varints: numbers as protobuf writes them, and what else compiled decoders share.

Knows: protobuf's encoding of one field. Never knows: any message. What it refuses it says by `Refusal`; reading behind
the end of the data raises IndexError.

Nothing here looks at where the message ends that is being read. A number that reaches out of its message leaves the
position behind the end, and there its reader finds it.
"""

import functools
from collections.abc import Collection
from typing import Final

from etcd_aio.codec.fields import FIXED_32, FIXED_64, LENGTH, MAX_FIELD_NUMBER, VARINT

CUT_SHORT: Final = "a field is cut short"

_REMEMBERED: Final = 1 << 14  # every length and number below that; each takes some 100 bytes once it was met
LONGEST: Final = 10
"""Bytes of the longest number."""


class Refusal(Exception):  # noqa: N818 - never leaves the codec
    """Why bytes are refused."""


# --- in ---


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the position behind it."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift == 7 * LONGEST:
            raise Refusal("a varint has more than 64 bits")
    if number >> 64:
        raise Refusal("a varint has more than 64 bits")
    return number, at


# Long numbers are the ids of clusters, members and leases, and the same ones come again and again. The bytes behind
# the number are part of the question; mostly they are the next field's tag, and so the same too.


@functools.lru_cache(maxsize=512)
def long_unsigned(ten_bytes: bytes) -> tuple[int, int]:
    """The number that some bytes begin with, and its size."""
    return read_varint(ten_bytes, 0)


@functools.lru_cache(maxsize=512)
def long_signed(ten_bytes: bytes) -> tuple[int, int]:
    """`long_unsigned` for numbers that may be negative."""
    number, size = read_varint(ten_bytes, 0)
    return number - (1 << 64) if number >> 63 else number, size


def read_length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Where the content of a field of variable length stops, whose length is at a position, and where it starts.

    It stops behind `end` if it is not there whole.
    """
    try:
        length, start = read_varint(data, at)
    except IndexError:
        return end + 1, at
    return start + length, start


def behind_field(data: bytes, at: int, end: int) -> int:
    """The position behind the field at a position, which is behind `end` if the field is not there whole.

    What is wrong with the field is for its reader to say.
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
    """The numbers that a packed field holds."""
    numbers = []
    while at < end:
        number, at = read_varint(data, at)
        numbers.append(number - (1 << 64) if signed and number >> 63 else number)
    if at > end:
        raise Refusal(CUT_SHORT)
    return numbers


def read_tag(data: bytes, at: int) -> tuple[int, int]:
    """A field's number and wire type as they stand together on the wire, and the position of their last byte."""
    tag, behind = read_varint(data, at)
    if behind - at > 1 and not data[behind - 1]:
        # Legal, but no one writes it, and a reader may take every field for what its first bytes say.
        raise Refusal("a field number is written longer than it needs")
    return tag, behind - 1


def skip_unknown(data: bytes, at: int, end: int, known: Collection[int]) -> int:
    """The position behind a field that the message class does not know.

    Args:
        data: what is read.
        at: where the field begins.
        end: where its message ends.
        known: the fields that the class does know. Whoever finds one here has found it in a wrong wire type.
    """
    tag, at = read_tag(data, at)
    number, wire_type = tag >> 3, tag & 7
    if not 1 <= number <= MAX_FIELD_NUMBER:
        raise Refusal("a field number is out of range")
    if number in known:
        raise Refusal(f"field {number} has wire type {wire_type}")
    at += 1
    if wire_type == VARINT:
        _, at = read_varint(data, at)
    elif wire_type == LENGTH:
        length, at = read_varint(data, at)
        at += length
    elif wire_type == FIXED_64:
        at += 8
    elif wire_type == FIXED_32:
        at += 4
    else:  # groups, which proto3 does not have, and two numbers without meaning
        raise Refusal(f"field {number} has wire type {wire_type}")
    if at > end:
        raise Refusal(CUT_SHORT)
    return at


# --- out ---


class _Varints(dict[int, bytes]):
    """The bytes of every number that fits 64 bits; negative ones are written as etcd's are, in two's complement."""

    def __missing__(self, number: int) -> bytes:
        written = _write(number if number >= 0 else number + (1 << 64))
        if 0 <= number < _REMEMBERED:
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
"""The bytes of a number: `VARINT_BYTES[number]`. The small ones are remembered."""
