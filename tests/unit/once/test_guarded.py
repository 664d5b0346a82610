"""once/guarded.py: the txns of a slot, and what their answers mean for the write in them."""

import pytest

from etcd_aio import Header, Key, KeyRange, PutResult, TxnResult, op
from etcd_aio.errors import InvalidRequestError, TooManyOpsError
from etcd_aio.once.guarded import (
    IdKey,
    WriteAnswer,
    check_write,
    create_slot,
    operations_of,
    parse_id_value,
    settle_slot,
    unwrap,
    write_through,
)
from etcd_aio.once.slot import Slot
from etcd_aio.once.write_verdicts import Branch
from etcd_aio.types import OpResult

HEADER = Header(1, 2, 9, 3)
PUT = PutResult(Header(revision=9))
OWN = KeyRange.of(prefix="own/")
ID = IdKey(b"own/ids/a", b"beef", 8)


@pytest.fixture
def slot() -> Slot:
    slot = Slot(b"own/7/0", 7)
    slot.number, slot.revision = 3, 5
    return slot


def test_every_txn_depends_on_the_slot(slot: Slot) -> None:
    unchanged = Key("own/7/0").mod_revision == 5
    look = op.get("own/7/0")
    assert create_slot(slot) == op.txn(
        when=[Key("own/7/0").missing], then=[op.put("own/7/0", "0:-", lease=7)], otherwise=[look]
    )
    assert settle_slot(slot) == op.txn(when=[unchanged], then=[op.delete("own/7/0")], otherwise=[look])
    write = op.txn(then=[op.put("k", "v")])
    mark = op.put("own/7/0", "3:T", lease=7)
    assert write_through(slot, write, None) == op.txn(when=[unchanged], then=[op.put("k", "v"), mark], otherwise=[look])


def test_conditions_are_in_a_txn_of_their_own(slot: Slot) -> None:
    write = op.txn(when=[Key("k").exists], then=[op.delete("k")], otherwise=[op.put("k", "v")])
    sent = write_through(slot, write, None)
    assert sent.then == (
        op.txn(
            when=[Key("k").exists],
            then=[op.delete("k"), op.put("own/7/0", "3:T", lease=7)],
            otherwise=[op.put("k", "v"), op.put("own/7/0", "3:F", lease=7)],
        ),
    )


def test_an_id_is_one_more_condition_and_one_more_put(slot: Slot) -> None:
    sent = write_through(slot, op.txn(then=[op.put("k", "v")]), ID)
    (within,) = sent.then
    assert within == op.txn(
        when=[Key("own/ids/a").missing],
        then=[op.put("k", "v"), op.put("own/ids/a", "beef:T", lease=8), op.put("own/7/0", "3:T", lease=7)],
        otherwise=[op.put("own/7/0", "3:I", lease=7)],
    )
    write = op.txn(when=[Key("k").exists], otherwise=[op.put("k", "v")])
    (within,) = write_through(slot, write, ID).then
    assert isinstance(within, op.TxnOp)
    (inner,) = within.then
    assert isinstance(inner, op.TxnOp)
    assert inner.then == (op.put("own/ids/a", "beef:T", lease=8), op.put("own/7/0", "3:T", lease=7))
    assert inner.otherwise[1:] == (op.put("own/ids/a", "beef:F", lease=8), op.put("own/7/0", "3:F", lease=7))


def answer(*responses: OpResult, succeeded: bool = True) -> TxnResult:
    return TxnResult(succeeded, HEADER, responses)


def test_the_results_of_the_write_are_in_the_answer() -> None:
    flat = op.txn(then=[op.get("k"), op.put("k", "v")])
    assert unwrap(flat, False, answer(None, PUT, PUT)) == WriteAnswer(Branch.THEN, HEADER, (None, PUT))
    assert unwrap(flat, True, answer(answer(None, PUT, PUT, PUT))) == WriteAnswer(Branch.THEN, HEADER, (None, PUT))
    assert unwrap(flat, True, answer(answer(PUT, succeeded=False))) == WriteAnswer(Branch.DUPLICATE, HEADER)
    nested = op.txn(when=[Key("k").exists], then=[op.get("k")], otherwise=[op.put("k", "v")])
    assert unwrap(nested, False, answer(answer(None, PUT))) == WriteAnswer(Branch.THEN, HEADER, (None,))
    assert unwrap(nested, False, answer(answer(PUT, PUT, succeeded=False))) == WriteAnswer(
        Branch.OTHERWISE, HEADER, (PUT,)
    )
    failed = answer(answer(answer(PUT, PUT, PUT, succeeded=False)))
    assert unwrap(nested, True, failed) == WriteAnswer(Branch.OTHERWISE, HEADER, (PUT,))
    assert operations_of(nested, Branch.OTHERWISE) == nested.otherwise
    assert operations_of(nested, Branch.THEN) == nested.then
    assert operations_of(nested, Branch.DUPLICATE) == ()


def test_the_value_of_an_id() -> None:
    assert parse_id_value(b"beef:T") == (b"beef", Branch.THEN)
    assert parse_id_value(b"beef:F") == (b"beef", Branch.OTHERWISE)
    for value in (b"beef", b"beef:", b"beef:I", b""):
        assert parse_id_value(value) is None


@pytest.mark.parametrize(
    "operation",
    [
        op.put("own/x", "v"),
        op.delete("own/x"),
        op.delete(prefix="own/x"),
        op.delete(prefix="o"),
        op.delete(from_key="a"),
        op.delete("own", range_end="own/\0"),
        op.txn(then=[op.txn(otherwise=[op.put("own/x", "v")])]),
    ],
)
def test_a_write_must_not_touch_the_keys_of_slots(operation: op.Op) -> None:
    for write in (op.txn(then=[operation]), op.txn(otherwise=[operation])):
        with pytest.raises(InvalidRequestError, match="must not change the keys"):
            check_write(write, OWN, has_id=False)


def test_a_write_may_touch_what_is_beside_them_and_read_them() -> None:
    near: list[op.Op] = [
        op.put("own", "v"),
        op.delete("own0"),
        op.delete("a", range_end="own/"),
        op.delete(from_key="own0"),
    ]
    check_write(op.txn(then=[*near, op.range(prefix="own/"), op.get("own/x")]), OWN, has_id=False)


def test_too_many_operations_are_refused() -> None:
    puts = [op.put(f"k{number}", "v") for number in range(128)]
    for when, has_id, most in (((), False, 127), ((Key("k").exists,), False, 126), ((), True, 125)):
        check_write(op.txn(when=when, then=puts[:most]), OWN, has_id=has_id)
        with pytest.raises(TooManyOpsError, match=f"at most {most} operations, got {most + 1}"):
            check_write(op.txn(when=when, then=puts[: most + 1]), OWN, has_id=has_id)
