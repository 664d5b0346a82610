"""concurrency/line.py, concurrency/options.py: what an error says of survived trouble."""

from asyncio import Task
from collections.abc import Coroutine
from typing import Any

import pytest

from etcd_aio import Header, KeyValue, PutResult, RangeResult, TxnResult, op
from etcd_aio.base.aio import start_background_task
from etcd_aio.concurrency.line import Line
from etcd_aio.concurrency.options import HoldOptions
from etcd_aio.concurrency.place import lock_keys
from etcd_aio.errors import CompactedError, LeaseLostError, LockLostError, LockTimeoutError, UnavailableError
from etcd_aio.lease import OnLoss

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class FakeLoan:
    """A lease that lives."""

    id = 1
    is_orphan = is_lost = was_idle = False
    renewal_error = None

    def __init__(self) -> None:
        self.is_revoked = False

    def on_loss(self, callback: OnLoss | None) -> None:
        """It is never lost."""

    async def revoke(self) -> bool:
        self.is_revoked = True
        return True

    def give_back(self) -> None:
        """It is lent once."""


class LostLoan(FakeLoan):
    """A lease that was lost between its grant and the turn in which its borrower goes on."""

    is_lost = True

    def on_loss(self, callback: OnLoss | None) -> None:
        if callback is not None:
            callback(LeaseLostError("it has expired"))


class FakeSource:
    """Lends one lease."""

    def __init__(self, loan: FakeLoan | None = None) -> None:
        self.loan = FakeLoan() if loan is None else loan

    async def borrow(self, ttl: int, key_prefix: bytes, *, waits: bool) -> FakeLoan:
        return self.loan

    def run(self, work: Coroutine[object, object, object], name: str) -> Task[object]:
        return start_background_task(work, name=name)


class SilentStore:
    """Answers nothing: each call fails, and may have been applied."""

    backend = None  # as a store has one

    async def do(self, *args: object, **options: object) -> None:
        error = UnavailableError("no answer")
        error.maybe_applied = True
        raise error


class CompactedStore:
    """Has another contender's key, and compacts what the watch of it needs."""

    backend = None  # as a store has one

    def __init__(self) -> None:
        self.watches = 0

    async def do(self, asked: op.TxnOp | op.RangeOp, **options: object) -> TxnResult | RangeResult:
        header = Header(revision=9)
        other = KeyValue(b"a/2", b"", 5, 5, 1, 2)
        if isinstance(asked, op.RangeOp):
            return RangeResult(header, (KeyValue(b"a/1", b"", 9, 9, 1, 1), other), more=False, count=2)
        txn = asked
        responses = (PutResult(header), RangeResult(header, (other,), more=False, count=1))
        return TxnResult(True, header, responses[: len(txn.then)], txn.then)

    def watch(self, key: bytes, **options: object) -> None:
        self.watches += 1
        raise CompactedError


def new_line(store: Any, source: Any) -> Line[LockLostError]:
    """A line with as much of a store and a source as it needs."""
    options = HoldOptions.checked(
        store, source, "a", 10, None, "cancel", kind="lock", lost=LockLostError, late=LockTimeoutError
    )
    return Line(options, lock_keys(b"a"))


async def test_a_lease_that_is_lost_when_it_is_lent_ends_the_wait_before_it_begins() -> None:
    """The task that waits runs, so it is not cancelled; and nothing else would wake it."""
    store, source = CompactedStore(), FakeSource(LostLoan())
    with pytest.raises(LockLostError, match="it has expired"):
        await new_line(store, source).stand(60.0)
    assert store.watches == 0
    assert source.loan.is_revoked


async def test_a_compaction_does_not_end_the_wait() -> None:
    store = CompactedStore()
    line = new_line(store, FakeSource())
    with pytest.raises(LockTimeoutError, match="b'a/2' is still before this one"):
        await line.stand(3.0)
    assert store.watches > 1


async def test_a_timeout_has_the_trouble_as_its_cause_and_the_lease_in_doubt_is_revoked() -> None:
    source = FakeSource()
    line = new_line(SilentStore(), source)
    with pytest.raises(LockTimeoutError, match="etcd has not answered in time") as caught:
        await line.stand(3.0)
    assert isinstance(caught.value.__cause__, UnavailableError)
    assert source.loan.is_revoked
