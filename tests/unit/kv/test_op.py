"""kv/op.py: operations as users spell them: arguments are copied, and invalid combinations are refused."""

import pytest

from etcd_aio.errors import EmptyKeyError, InvalidRequestError, LeaseProvidedError, ValueProvidedError
from etcd_aio.kv import op
from etcd_aio.kv.compare import Key
from etcd_aio.kv.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.types.enums import SortBy, SortOrder
from etcd_aio.types.keys import KeyRange


class Leased:
    id = 9


def test_put_makes_its_operation() -> None:
    assert op.put("k", "v") == PutOp(b"k", b"v", 0, False, False, False)
    assert op.put(b"k", b"", lease=7, prev_kv=True) == PutOp(b"k", b"", 7, True, False, False)
    assert op.put("k", "v", lease=Leased()).lease == 9
    assert op.put("k", lease=7, ignore_value=True) == PutOp(b"k", b"", 7, False, True, False)
    assert op.put("k", "v", ignore_lease=True) == PutOp(b"k", b"v", 0, False, False, True)


def test_put_copies_its_arguments() -> None:
    key, value = bytearray(b"k1"), bytearray(b"v1")
    put = op.put(key, value)
    key[:], value[:] = b"k2", b"v2"
    assert (put.key, put.value) == (b"k1", b"v1")


@pytest.mark.parametrize("value", ["v", "", b""])
def test_put_refuses_a_value_with_ignore_value(value: str | bytes) -> None:
    with pytest.raises(ValueProvidedError, match="leave value out"):
        op.put("k", value, ignore_value=True)  # type: ignore[call-overload]


@pytest.mark.parametrize("lease", [7, 0])
def test_put_refuses_a_lease_with_ignore_lease(lease: int) -> None:
    with pytest.raises(LeaseProvidedError, match="leave lease= out"):
        op.put("k", "v", lease=lease, ignore_lease=True)


def test_put_needs_a_value() -> None:
    with pytest.raises(InvalidRequestError, match="value is missing"):
        op.put("k")  # type: ignore[call-overload]


def test_put_checks_its_arguments() -> None:
    with pytest.raises(EmptyKeyError):
        op.put("", "v")
    with pytest.raises(TypeError, match="value must be str or bytes"):
        op.put("k", 5)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="lease must be"):
        op.put("k", "v", lease="7")  # type: ignore[call-overload]


def test_get_makes_its_operation() -> None:
    assert op.get("k") == GetOp(b"k", 0, False, False)
    assert op.get("k", revision=3, serializable=True, keys_only=True) == GetOp(b"k", 3, True, True)
    with pytest.raises(EmptyKeyError):
        op.get(b"")
    with pytest.raises(InvalidRequestError, match="revision must not be negative, got -1"):
        op.get("k", revision=-1)


def test_range_makes_its_operation() -> None:
    assert op.range(prefix="p") == RangeOp(KeyRange(b"p", b"q"))
    assert op.range(
        "a",
        range_end="b",
        limit=1,
        revision=2,
        sort_by="mod_revision",
        sort_order="descend",
        serializable=True,
        keys_only=True,
        count_only=True,
        min_mod_revision=3,
        max_mod_revision=4,
        min_create_revision=5,
        max_create_revision=6,
    ) == RangeOp(
        keys=KeyRange(b"a", b"b"),
        limit=1,
        revision=2,
        sort_by=SortBy.MOD_REVISION,
        sort_order=SortOrder.DESCEND,
        serializable=True,
        keys_only=True,
        count_only=True,
        min_mod_revision=3,
        max_mod_revision=4,
        min_create_revision=5,
        max_create_revision=6,
    )


@pytest.mark.parametrize(
    "option",
    [
        "limit",
        "revision",
        "min_mod_revision",
        "max_mod_revision",
        "min_create_revision",
        "max_create_revision",
    ],
)
def test_range_refuses_bad_numbers_by_name(option: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{option} must not be negative, got -1"):
        op.range("k", **{option: -1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"{option} must be an int, got str"):
        op.range("k", **{option: "1"})  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["mod_revision", "create_revision"])
def test_range_refuses_crossed_bounds(what: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"min_{what} must not exceed max_{what}, got 5 and 4"):
        op.range("k", **{f"min_{what}": 5, f"max_{what}": 4})  # type: ignore[arg-type]
    op.range("k", **{f"min_{what}": 5, f"max_{what}": 5})  # type: ignore[arg-type]
    op.range("k", **{f"min_{what}": 5, f"max_{what}": 0})  # type: ignore[arg-type]


def test_range_refuses_unknown_words() -> None:
    with pytest.raises(InvalidRequestError, match="sort_by must be one of 'key', 'version'"):
        op.range("k", sort_by="size")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="sort_order must be one of"):
        op.range("k", sort_order="up")  # type: ignore[arg-type]


def test_delete_makes_its_operation() -> None:
    assert op.delete("k") == DeleteOp(KeyRange(b"k"))
    assert op.delete(prefix="p", prev_kv=True) == DeleteOp(KeyRange(b"p", b"q"), True)
    assert op.delete(all_keys=True) == DeleteOp(KeyRange(b"\0", b"\0"))
    with pytest.raises(InvalidRequestError, match="got none"):
        op.delete()


def test_delete_of_all_keys_needs_all_keys() -> None:
    with pytest.raises(InvalidRequestError, match="write all_keys=True"):
        op.delete(prefix="")
    with pytest.raises(InvalidRequestError, match="write all_keys=True"):
        op.delete(from_key=b"\0")


def test_txn_copies_its_lists() -> None:
    when, then, otherwise = [Key("k").missing], [op.put("k", "v")], [op.get("k")]
    txn = op.txn(when=when, then=then, otherwise=otherwise)
    expected = TxnOp((Key("k").missing,), (op.put("k", "v"),), (op.get("k"),))
    assert txn == expected
    when.clear()
    then.clear()
    otherwise.clear()
    assert txn == expected


def test_txn_takes_iterators() -> None:
    keys = ("a", "b")
    txn = op.txn(then=(op.get(key) for key in keys))
    assert txn.then == (op.get("a"), op.get("b"))
    assert op.txn() == TxnOp()


def test_txn_refuses_items_of_another_kind() -> None:
    with pytest.raises(TypeError, match=r'when takes comparisons such as Key\("k"\).version == 1, got bool'):
        op.txn(when=[True])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r'then takes operations such as op.put\("k", "v"\), got str'):
        op.txn(then=["k"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"otherwise takes operations .*, got Compare"):
        op.txn(otherwise=[Key("k").missing])  # type: ignore[list-item]


@pytest.mark.parametrize("operation", [op.put("k", "v"), op.get("k"), op.range("k"), op.delete("k"), op.txn()])
def test_txn_refuses_a_single_item_instead_of_a_list(operation: Op) -> None:
    with pytest.raises(TypeError, match=r"write then=\[\.\.\.\]"):
        op.txn(then=operation)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"write when=\[\.\.\.\]"):
        op.txn(when=Key("k").missing)  # type: ignore[arg-type]
