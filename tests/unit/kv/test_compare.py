"""kv/compare.py: conditions: Python comparisons make them, and those that cannot be sent are refused."""

import copy
from dataclasses import dataclass

import pytest

from etcd_aio.errors import EmptyKeyError, InvalidRequestError
from etcd_aio.kv.compare import Compare, CompareOperator, CompareTarget, Key
from etcd_aio.types.keys import KeyRange


@dataclass(frozen=True)
class Leased:
    id: int


K = KeyRange(b"k")


def test_each_operator_is_written_as_in_python() -> None:
    key = Key("k")
    assert (key.version == 1) == Compare(K, CompareTarget.VERSION, CompareOperator.EQUAL, 1)
    assert (key.version != 1) == Compare(K, CompareTarget.VERSION, CompareOperator.NOT_EQUAL, 1)
    assert (key.version < 1) == Compare(K, CompareTarget.VERSION, CompareOperator.LESS, 1)
    assert (key.version > 1) == Compare(K, CompareTarget.VERSION, CompareOperator.GREATER, 1)


def test_a_comparison_written_backwards_means_the_same() -> None:
    key = Key("k")
    # A type checker believes that int's own == answers; Python asks the other side, since int does not know it.
    assert (1 == key.version) == (key.version == 1)  # type: ignore[comparison-overlap]  # noqa: SIM300
    assert (1 != key.version) == (key.version != 1)  # type: ignore[comparison-overlap]  # noqa: SIM300
    assert (1 < key.version) == (key.version > 1)  # noqa: SIM300
    assert (1 > key.version) == (key.version < 1)  # noqa: SIM300


def test_each_property_of_a_key_can_be_compared() -> None:
    key = Key("k")
    equal = CompareOperator.EQUAL
    assert (key.version == 2) == Compare(K, CompareTarget.VERSION, equal, 2)
    assert (key.create_revision == 2) == Compare(K, CompareTarget.CREATE_REVISION, equal, 2)
    assert (key.mod_revision == 2) == Compare(K, CompareTarget.MOD_REVISION, equal, 2)
    assert (key.value == "v") == Compare(K, CompareTarget.VALUE, equal, b"v")
    assert (key.value == b"v") == Compare(K, CompareTarget.VALUE, equal, b"v")
    assert (key.lease == 2) == Compare(K, CompareTarget.LEASE, equal, 2)
    assert (key.lease == Leased(2)) == Compare(K, CompareTarget.LEASE, equal, 2)


def test_exists_and_missing_compare_a_number_that_a_missing_key_has_as_zero() -> None:
    assert Key("k").exists == (Key("k").version > 0)
    assert Key("k").missing == (Key("k").mod_revision == 0)


def test_a_key_takes_every_form_of_a_range() -> None:
    assert Key(prefix="p/").missing.keys == KeyRange.of(prefix="p/")
    assert Key("a", range_end="b").missing.keys == KeyRange.of("a", range_end="b")
    assert Key(from_key="a").missing.keys == KeyRange.of(from_key="a")
    assert Key(all_keys=True).missing.keys == KeyRange.of(all_keys=True)
    with pytest.raises(InvalidRequestError, match="got key and prefix="):
        Key("k", prefix="p")
    with pytest.raises(EmptyKeyError):
        Key("")


def test_a_condition_copies_its_operand() -> None:
    buffer = bytearray(b"before")
    compare = Key("k").value == buffer
    buffer[:] = b"after!"
    assert compare.operand == b"before"


def test_there_is_no_less_or_equal() -> None:
    version = Key("k").version
    with pytest.raises(TypeError, match=r"etcd has no <=, .* use `version < 4` instead of `version <= 3`"):
        version <= 1  # type: ignore[operator]  # noqa: B015
    with pytest.raises(TypeError, match=r"etcd has no >=, .* use `version > 2` instead of `version >= 3`"):
        version >= 1  # type: ignore[operator]  # noqa: B015


def test_a_condition_has_no_truth_value() -> None:
    first, second = Key("a").version == 1, Key("b").version == 1
    with pytest.raises(TypeError, match=r"when\(a, b, \.\.\.\)"):
        first and second  # noqa: B018
    with pytest.raises(TypeError, match="no truth value"):
        bool(first)
    with pytest.raises(TypeError, match="no truth value"):
        1 < Key("k").version < 5  # noqa: B015


@pytest.mark.parametrize("operand", [None, "1", 1.0, True, b"1", object()])
def test_numbers_are_compared_with_ints_only(operand: object) -> None:
    key = Key("k")
    for comparand in (key.version, key.create_revision, key.mod_revision):
        for compare in (comparand.__eq__, comparand.__ne__, comparand.__lt__, comparand.__gt__):
            with pytest.raises(TypeError, match=r"the operand of \w+ must be an int"):
                compare(operand)  # type: ignore[arg-type]


@pytest.mark.parametrize("operand", [None, 1, 1.0, ["v"], object()])
def test_values_are_compared_with_text_or_bytes_only(operand: object) -> None:
    with pytest.raises(TypeError, match="the operand of value must be str or bytes"):
        Key("k").value == operand  # noqa: B015


@pytest.mark.parametrize("operand", [None, "1", 1.0, True, object()])
def test_leases_are_compared_with_leases_only(operand: object) -> None:
    with pytest.raises(TypeError, match="the operand of lease must be a lease id"):
        Key("k").lease == operand  # noqa: B015


def test_numbers_have_64_bits() -> None:
    assert (Key("k").version == 2**63 - 1).operand == 2**63 - 1
    with pytest.raises(InvalidRequestError, match="the operand of version must be between"):
        Key("k").version == 2**63  # noqa: B015


def test_conditions_are_values() -> None:
    compare = Key("k").version == 1
    assert copy.copy(compare) == compare
    assert len({compare, Key("k").version == 1, Key("k").version == 2}) == 2


def test_a_property_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        {Key("k").version}


def test_no_repr_shows_a_value() -> None:
    assert repr(Key("k").value == "s3cret") == "<Compare KeyRange(b'k').value == <6 bytes>>"
    assert repr(Key(prefix="p").version > 3) == "<Compare KeyRange(b'p', b'q').version > 3>"
    assert repr(Key("k").version) == "<KeyRange(b'k').version>"
    assert repr(Key("k")) == "<Key of KeyRange(b'k')>"
