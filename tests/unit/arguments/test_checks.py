"""arguments/checks.py: checks of arguments: keys, values, text, leases, whole numbers, flags, seconds."""

from dataclasses import dataclass
from typing import Any

import pytest

from etcd_aio.arguments import (
    KeyLike,
    ValueLike,
    check_text,
    encode_key,
    finite_seconds,
    flag,
    is_encodable,
    lease_id,
    one_of,
    to_bytes,
    whole_number,
)
from etcd_aio.errors import EmptyKeyError, InvalidRequestError
from etcd_aio.types import KeyRange


@dataclass(frozen=True)
class Leased:
    id: object


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        ("k", b"k"),
        ("ü/☃", "ü/☃".encode()),
        (b"\xff\x00", b"\xff\x00"),
        (bytearray(b"k"), b"k"),
        (memoryview(b"k"), b"k"),
    ],
)
def test_encode_key_takes_text_and_bytes(key: KeyLike, encoded: bytes) -> None:
    assert encode_key(key) == encoded
    assert type(encode_key(key)) is bytes


def test_encoding_copies_buffers() -> None:
    buffer = bytearray(b"before")
    encoded = to_bytes(buffer, "value")
    buffer[:] = b"after!"
    assert encoded == b"before"


@pytest.mark.parametrize("key", ["", b"", bytearray()])
def test_the_empty_key_is_refused(key: KeyLike) -> None:
    with pytest.raises(EmptyKeyError, match="from_key is empty"):
        encode_key(key, "from_key")


@pytest.mark.parametrize("key", [None, 5, 1.5, ["k"], object(), True])
def test_a_key_of_another_type_is_a_type_error(key: object) -> None:
    with pytest.raises(TypeError, match=f"key must be str or bytes, got {type(key).__name__}"):
        encode_key(key)  # type: ignore[arg-type]


def test_the_error_for_surrogates_does_not_hold_the_text() -> None:
    with pytest.raises(InvalidRequestError, match="value has a lone surrogate at position 6") as caught:
        to_bytes("s3cret\udc80", "value")
    assert caught.value.__context__ is None
    assert "s3cret" not in repr(caught.value)


@pytest.mark.parametrize("value", ["no", 0, 1, None, ""])
def test_a_flag_is_a_real_bool(value: bool) -> None:
    with pytest.raises(TypeError, match="physical must be True or False"):
        flag(value, "physical")
    with pytest.raises(TypeError, match="all_keys must be True or False"):
        KeyRange.of(all_keys=value)


@pytest.mark.parametrize("value", [True, False])
def test_a_flag_passes_through(value: bool) -> None:
    assert flag(value, "physical") is value


@pytest.mark.parametrize("value", ["v", b"v", bytearray(b"v"), memoryview(b"v")])
def test_values_are_text_or_bytes(value: ValueLike) -> None:
    assert to_bytes(value, "value") == b"v"


def test_a_value_may_be_empty() -> None:
    assert to_bytes("", "value") == b""


def test_a_value_of_another_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="value must be str or bytes, got int"):
        to_bytes(3, "value")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 7, -7, 2**63 - 1, -(2**63)])
def test_a_lease_is_its_id_or_an_object_that_has_one(number: int) -> None:
    assert lease_id(number) == number
    assert lease_id(Leased(number)) == number  # type: ignore[arg-type]


@pytest.mark.parametrize("lease", [True, 1.0, "7", None, object(), Leased("7"), Leased(True), Leased(None)])
def test_other_types_are_no_lease(lease: object) -> None:
    with pytest.raises(TypeError, match=f"lease must be a lease id or an object with .id, got {type(lease).__name__}"):
        lease_id(lease)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_a_lease_id_has_64_bits(number: int) -> None:
    with pytest.raises(InvalidRequestError, match="lease must be between"):
        lease_id(number)


@pytest.mark.parametrize("number", [0, 1, 2**63 - 1])
def test_whole_numbers(number: int) -> None:
    assert whole_number(number, "limit") == number


@pytest.mark.parametrize("number", [-1, 2**63])
def test_whole_numbers_out_of_bounds(number: int) -> None:
    with pytest.raises(InvalidRequestError, match=r"^limit must"):
        whole_number(number, "limit")


def test_whole_numbers_below_their_minimum() -> None:
    with pytest.raises(InvalidRequestError, match=r"^page_size must be between 1 and"):
        whole_number(0, "page_size", minimum=1)


@pytest.mark.parametrize("number", [True, 1.0, "1", None])
def test_whole_numbers_of_another_type(number: object) -> None:
    with pytest.raises(TypeError, match=f"limit must be an int, got {type(number).__name__}"):
        whole_number(number, "limit")  # type: ignore[arg-type]


def test_text_is_a_str_that_utf8_can_encode() -> None:
    assert check_text("grüß", "name") == "grüß"
    assert is_encodable("grüß")
    assert not is_encodable("a\ud800")
    with pytest.raises(InvalidRequestError, match="name has a lone surrogate, which is not text") as caught:
        check_text("s3cret\ud800", "name")
    assert caught.value.__context__ is None
    assert "s3cret" not in repr(caught.value)
    with pytest.raises(TypeError, match="name must be a str, got bytes"):
        check_text(b"name", "name")  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0, 0.5, 7])
def test_seconds(seconds: float) -> None:
    checked = finite_seconds(seconds, "delay")
    assert (checked, type(checked)) == (seconds, float)


@pytest.mark.parametrize("seconds", [-1, -0.5, float("inf"), float("nan")])
def test_seconds_that_are_none_are_refused(seconds: float) -> None:
    with pytest.raises(InvalidRequestError, match="delay must be a number of seconds"):
        finite_seconds(seconds, "delay")


@pytest.mark.parametrize("seconds", [True, "1", None])
def test_seconds_of_another_type_are_refused(seconds: Any) -> None:
    with pytest.raises(TypeError, match="delay must be a number of seconds"):
        finite_seconds(seconds, "delay")


def test_a_word_that_is_none_of_them_is_refused_with_all_of_them() -> None:
    assert one_of(("a", "b"), "b", "letter") == "b"
    with pytest.raises(InvalidRequestError, match=r"letter must be one of 'a', 'b'; got 'c'"):
        one_of(("a", "b"), "c", "letter")
    with pytest.raises(ValueError, match=r"letter must be one of 'a'; got \['a'\]"):
        one_of(("a",), ["a"], "letter", error=ValueError)
    assert one_of(("a",), len, "letter", or_function=True) is len
    with pytest.raises(InvalidRequestError, match=r"letter must be one of 'a', or a function; got 1"):
        one_of(("a",), 1, "letter", or_function=True)
