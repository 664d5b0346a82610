"""codec/wire.py: the wire format: every number has its bytes, and invalid data is refused."""

import pytest

from etcd_aio.codec.wire import (
    VARINT_BYTES,
    WireFormatError,
    long_signed,
    long_unsigned,
    read_packed,
    read_tag,
    read_varint,
    skip_unknown,
)

NUMBERS = [
    (0, b"\x00"),
    (1, b"\x01"),
    (127, b"\x7f"),
    (128, b"\x80\x01"),
    (300, b"\xac\x02"),
    ((1 << 14) - 1, b"\xff\x7f"),
    (1 << 14, b"\x80\x80\x01"),
    ((1 << 63) - 1, b"\xff" * 8 + b"\x7f"),
    ((1 << 64) - 1, b"\xff" * 9 + b"\x01"),
]


@pytest.mark.parametrize(("number", "data"), NUMBERS)
def test_numbers_survive_writing_and_reading(number: int, data: bytes) -> None:
    assert VARINT_BYTES[number] == data
    assert read_varint(b"x" + data + b"x", 1) == (number, 1 + len(data))
    assert long_unsigned((data + b"xxxxxxxxxx")[:10]) == (number, len(data))
    signed = number if number < 1 << 63 else number - (1 << 64)
    assert long_signed((data + b"xxxxxxxxxx")[:10]) == (signed, len(data))
    assert VARINT_BYTES[signed] == data


def test_only_small_numbers_are_cached() -> None:
    for number in (-1, (1 << 14) - 1, 1 << 14, 1 << 40):
        assert VARINT_BYTES[number]
    assert (1 << 14) - 1 in VARINT_BYTES
    assert not {-1, 1 << 14, 1 << 40} & set(VARINT_BYTES)


@pytest.mark.parametrize("data", [b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02", b"\x80" * 10])
def test_more_than_64_bits_are_refused(data: bytes) -> None:
    with pytest.raises(WireFormatError, match="more than 64 bits"):
        read_varint(data, 0)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 9])
def test_reading_past_the_end_is_an_error(data: bytes) -> None:
    with pytest.raises(IndexError):
        read_varint(data, 0)
    with pytest.raises(IndexError):
        long_unsigned(data)


def test_packed_numbers_are_read_signed_and_unsigned() -> None:
    data = b"x\x01\xac\x02" + b"\xff" * 9 + b"\x01" + b"\x80\x01"
    assert read_packed(data, 1, 14, signed=True) == [1, 300, -1]
    assert read_packed(data, 1, 14, signed=False) == [1, 300, (1 << 64) - 1]
    with pytest.raises(WireFormatError, match="cut short"):
        read_packed(data, 1, 15, signed=True)


def test_a_tag_ends_where_its_field_begins() -> None:
    assert read_tag(b"\x0a", 0) == (10, 0)
    assert read_tag(b"x\x82\x04", 1) == (514, 2)
    for too_long in (b"\x8a\x00", b"\x82\x84\x00"):
        with pytest.raises(WireFormatError, match="longer than it needs"):
            read_tag(too_long, 0)


@pytest.mark.parametrize(
    ("data", "size"),
    [(b"\xf8\x07\x80\x01", 4), (b"\xf9\x0712345678", 10), (b"\xfa\x07\x02ab", 5), (b"\xfd\x071234", 6)],
)
def test_unknown_fields_are_skipped_and_never_beyond_the_end(data: bytes, size: int) -> None:
    assert skip_unknown(b"x" + data + b"xxx", 1, 1 + size, (1, 2)) == 1 + size
    with pytest.raises(WireFormatError, match="cut short"):
        skip_unknown(b"x" + data + b"xxx", 1, size, (1, 2))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x00\x00", "a field number is out of range"),
        (b"\x80\x80\x80\x80\x10\x00", "a field number is out of range"),
        (b"\x0d1234", "field 1 has wire type 5"),
        (b"\x1b", "field 3 has wire type 3"),
        (b"\x1c", "field 3 has wire type 4"),
        (b"\x1e", "field 3 has wire type 6"),
        (b"\x1f", "field 3 has wire type 7"),
    ],
)
def test_invalid_fields_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(WireFormatError, match=f"^{reason}$"):
        skip_unknown(data, 0, len(data), (1, 2))
