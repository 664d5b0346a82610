"""Operations: immutable, discreet, and sure of whether they only read."""

from dataclasses import FrozenInstanceError

import pytest

from etcd_aio.kv import op
from etcd_aio.kv.operations import Op, PutOp, is_read_only, is_serializable

READS: list[Op] = [op.get("k"), op.range(prefix="p")]
WRITES: list[Op] = [op.put("k", "v"), op.delete("k")]
STALE: list[Op] = [op.get("k", serializable=True), op.range(prefix="p", serializable=True)]


@pytest.mark.parametrize("operation", [*READS, *WRITES, op.txn()])
def test_operations_are_frozen_slotted_values(operation: Op) -> None:
    field = next(iter(type(operation).__dataclass_fields__))
    with pytest.raises(FrozenInstanceError):
        setattr(operation, field, None)
    assert not hasattr(operation, "__dict__")
    assert len({operation, operation}) == 1


def test_no_repr_shows_a_value() -> None:
    put = op.put("k", "s3cret", lease=4)
    assert repr(put) == "PutOp(key=b'k', value=<6 bytes>, lease=0x4)"
    assert "s3cret" not in repr(op.txn(then=[op.txn(otherwise=[put])]))


@pytest.mark.parametrize("operation", READS)
def test_reads_only_read(operation: Op) -> None:
    assert is_read_only(operation)
    assert is_read_only(op.txn(then=[operation], otherwise=[op.txn(then=[operation])]))


@pytest.mark.parametrize("operation", WRITES)
def test_one_write_in_any_branch_at_any_depth_makes_a_txn_a_write(operation: Op) -> None:
    assert not is_read_only(operation)
    assert not is_read_only(op.txn(then=[*READS, operation]))
    assert not is_read_only(op.txn(otherwise=[operation]))
    assert not is_read_only(op.txn(then=[op.txn(otherwise=[op.txn(then=[operation])])]))


def test_a_txn_without_operations_only_reads() -> None:
    assert is_read_only(op.txn())


@pytest.mark.parametrize("operation", [*READS, *WRITES, op.txn()])
def test_one_operation_that_wants_the_newest_state_makes_a_txn_want_it(operation: Op) -> None:
    assert not is_serializable(operation)
    assert not is_serializable(op.txn(then=[*STALE, operation], otherwise=STALE))
    assert not is_serializable(op.txn(then=STALE, otherwise=[operation]))


def test_serializable_reads_make_a_serializable_txn() -> None:
    assert all(map(is_serializable, STALE))
    assert is_serializable(op.txn(then=STALE))
    assert is_serializable(op.txn(otherwise=STALE))


def test_a_nested_txn_is_never_serializable() -> None:
    assert not is_serializable(op.txn(then=[op.txn(then=STALE)]))


def test_the_defaults_of_a_put() -> None:
    assert PutOp(b"k", b"v") == op.put("k", "v")
