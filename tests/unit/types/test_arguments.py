"""Arguments: values, leases, whole numbers."""

from dataclasses import dataclass

import pytest

from etcd_aio.errors import InvalidRequestError
from etcd_aio.types.arguments import ValueLike, encode_value, lease_id, whole_number


@dataclass(frozen=True)
class Leased:
    id: object


@pytest.mark.parametrize("value", ["v", b"v", bytearray(b"v"), memoryview(b"v")])
def test_values_are_text_or_bytes(value: ValueLike) -> None:
    assert encode_value(value) == b"v"


def test_a_value_may_be_empty() -> None:
    assert encode_value("") == b""


def test_a_value_of_another_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="value must be str or bytes, got int"):
        encode_value(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 7, -7, 2**63 - 1, -(2**63)])
def test_a_lease_is_its_id_or_an_object_that_has_one(number: int) -> None:
    assert lease_id(number) == number
    assert lease_id(Leased(number)) == number  # type: ignore[arg-type]


@pytest.mark.parametrize("lease", [True, 1.0, "7", None, object(), Leased("7"), Leased(True), Leased(None)])
def test_anything_else_is_no_lease(lease: object) -> None:
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
