"""views/ordered.py: no read is older than what was seen before it began, and only reads are sent a second time."""

import asyncio
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from etcd_aio import (
    DeleteResult,
    Header,
    InvalidRequestError,
    Key,
    KeyValue,
    PutResult,
    RangeResult,
    TxnResult,
    op,
)
from etcd_aio.base.call_options import UNSET
from etcd_aio.base.key_space import KeySpace
from etcd_aio.errors import FutureRevisionError, StoreRolledBackError
from etcd_aio.store import Ordered
from etcd_aio.views import OrderedView
from tests.support.backends import shared

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

BEHIND, NEWEST = 7, 8  # members


class FakeStore:
    """A store at `revision`, whose serializable reads are answered by a member at `old`.

    Attributes:
        sent: every operation with its timeout.
    """

    def __init__(self, revision: int = 20, old: int = 10) -> None:
        self.revision, self.old = revision, old
        self.sent: list[tuple[Any, Any]] = []
        self.before: Callable[[], None] = lambda: None
        self.shared = shared()
        self.key_space = KeySpace(self)
        self.leases = None

    def chunks(self) -> None:
        return None

    async def do(self, operation: Any, *, timeout: Any = UNSET, retry: Any = None) -> Any:
        self.sent.append((operation, timeout))
        self.before()
        revision = self.old if operation.serializable else self.revision
        header = Header(member_id=BEHIND if operation.serializable else NEWEST, revision=revision)
        await asyncio.sleep(1)
        match operation:
            case op.PutOp():
                return PutResult(header)
            case op.DeleteOp():
                return DeleteResult(header)
            case op.RangeOp():
                if operation.revision > revision:
                    raise FutureRevisionError
                return RangeResult(header, (KeyValue(operation.keys.key, b"%d" % revision),), count=1)
            case op.TxnOp():
                found = tuple(KeyValue(b"k", b"%d" % revision) for _ in operation.then)
                return TxnResult(True, header, found, operation.then)
        raise TypeError("no operation")


def view(store: FakeStore, seen: int = 0) -> Ordered:
    made = Ordered(OrderedView(store))  # type: ignore[arg-type]
    made.revision = seen
    return made


async def test_an_answer_below_the_mark_is_repeated_once_and_linearizably() -> None:
    store = FakeStore()
    ordered = view(store, seen=15)
    kv = await ordered.get("k", serializable=True)
    assert kv is not None
    assert kv.value == b"20"
    assert [operation.serializable for operation, _ in store.sent] == [True, False]
    assert ordered.revision == 20
    assert (ordered.statistics().repeated, dict(ordered.statistics().behind)) == (1, {BEHIND: 1})


async def test_an_answer_at_the_mark_is_not_repeated() -> None:
    store = FakeStore()
    ordered = view(store, seen=10)
    assert (await ordered.range(prefix="k", serializable=True)).revision == 10
    assert len(store.sent) == 1
    assert ordered.statistics().repeated == 0


@pytest.mark.parametrize(
    "operation",
    [op.put("k", "v"), op.delete("k"), op.get("k"), op.range("k"), op.txn(then=[op.get("k")])],
    ids=lambda operation: type(operation).__name__,
)
async def test_every_answer_raises_the_mark(operation: Any) -> None:
    ordered = view(FakeStore(revision=20))
    await ordered.do(operation)
    assert ordered.revision == 20


async def test_a_writing_txn_is_never_repeated() -> None:
    """etcd-io/etcd#22086: neither for its revision, nor for the serializable reads in it."""
    store = FakeStore(revision=5)
    ordered = view(store, seen=15)
    txn = ordered.txn().when(Key("k").exists).then(op.put("k", "v")).otherwise(op.get("k", serializable=True))
    await txn.commit()
    await ordered.put("k", "v")
    await ordered.delete("k")
    assert len(store.sent) == 3


async def test_a_txn_of_serializable_reads_is_a_serializable_read() -> None:
    store = FakeStore()
    look, other = op.get("k", serializable=True), op.range("k", serializable=True)
    result = await view(store, seen=15).do(op.txn(then=[look, other], otherwise=[look]))
    assert [operation.serializable for operation, _ in store.sent] == [True, False]
    assert not any(inner.serializable for inner in (*store.sent[1][0].then, *store.sent[1][0].otherwise))
    found = result[look]
    assert found is not None
    assert found.value == b"20"


async def test_a_member_that_has_not_reached_a_pinned_revision() -> None:
    store = FakeStore()
    ordered = view(store)
    kv = await ordered.get("k", revision=12, serializable=True)
    assert kv is not None
    assert len(store.sent) == 2
    assert ordered.statistics().repeated == 1
    with pytest.raises(FutureRevisionError):
        await ordered.get("k", revision=21, serializable=True)
    with pytest.raises(FutureRevisionError):
        await ordered.get("k", revision=21)
    assert len(store.sent) == 5


async def test_the_second_call_has_the_time_that_is_left() -> None:
    store = FakeStore()
    ordered = view(store, seen=15)
    await ordered.get("k", serializable=True, timeout=3)
    await ordered.get("k", serializable=True)
    await ordered.get("k", serializable=True, timeout=None)
    assert [timeout for _, timeout in store.sent] == [3, 2, UNSET, 4, None, inf]


async def test_the_mark_of_a_read_is_the_one_at_its_beginning() -> None:
    store = FakeStore()
    ordered = view(store, seen=10)

    def see() -> None:
        ordered.revision = 15

    store.before = see
    assert (await ordered.range("k", serializable=True)).revision == 10
    assert ordered.revision == 15


async def test_a_store_that_went_back_is_told() -> None:
    with pytest.raises(StoreRolledBackError) as caught:
        await view(FakeStore(revision=20), seen=30).get("k", serializable=True)
    assert (caught.value.revision, caught.value.seen) == (20, 30)


async def test_the_mark_is_never_lowered_and_is_checked() -> None:
    ordered = view(FakeStore(), seen=30)
    ordered.revision = 20
    assert ordered.revision == 30
    with pytest.raises(InvalidRequestError):
        ordered.revision = -1


async def test_the_pages_of_a_scan_are_guarded() -> None:
    store = FakeStore()
    scan = view(store, seen=15).scan(prefix="k", serializable=True)
    assert [kv.value async for kv in scan] == [b"20"]
    assert scan.revision == 20
