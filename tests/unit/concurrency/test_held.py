"""concurrency/held.py: what counts as a loss, when the block is told, and what it does to the task; in virtual time."""

# ruff: noqa: PT012 - the block is what is tested

import asyncio
from types import TracebackType
from typing import Any, Self

import pytest

from etcd_aio.concurrency.held import WATCH_AFTER, Held
from etcd_aio.concurrency.options import HoldOptions, Subject
from etcd_aio.errors import (
    EtcdTimeoutError,
    LeaseExpiredError,
    LeaseLostError,
    LockLostError,
    LockTimeoutError,
    PermissionDeniedError,
    UnavailableError,
)
from etcd_aio.lease import OnDoubt, OnLoss
from etcd_aio.types import Event, EventType, KeyValue
from tests.support.virtual_time import VirtualTimeLoop, tasks, timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

SUBJECT = Subject("lock 'a'", LockLostError, LockTimeoutError)
KEY = b"a/1"


def deletion(revision: int) -> Event:
    return Event(EventType.DELETE, KeyValue(KEY, b"", 0, revision, 0, 0), None)


class FakeLoan:
    """A lease that is renewed when a test says so."""

    id = 1
    ttl = 10
    is_orphan = False
    was_idle = False
    renewal_error = UnavailableError("no member is reached")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.callback: OnLoss | None = None
        self.doubted: OnDoubt | None = None
        self.renew()

    def on_doubt(self, callback: OnDoubt | None) -> None:
        self.doubted = callback

    def renew(self) -> None:
        self.deadline = self.loop.time() + self.ttl

    @property
    def remaining(self) -> float:
        return max(0.0, self.deadline - self.loop.time())

    @property
    def is_lost(self) -> bool:
        return self.remaining == 0

    def on_loss(self, callback: OnLoss | None) -> None:
        self.callback = callback


class FakeStore:
    """One key, and its watch: both as the test says."""

    def __init__(self) -> None:
        self.kv: KeyValue | None = KeyValue(KEY, b"", 7, 7, 1, 1)
        self.deleted = asyncio.Event()
        self.errors: list[Exception] = []
        self.late: list[Event] = []  # what a member that is behind tells first
        self.watches = 0

    def watch(self, key: bytes, **options: Any) -> "FakeStore":
        assert key == KEY
        self.watches += 1
        return self

    async def __aenter__(self) -> Self:
        if self.errors:
            raise self.errors.pop(0)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    async def __anext__(self) -> Event:
        if self.late:
            return self.late.pop(0)
        await self.deleted.wait()
        return deletion(revision=8)

    async def get(self, key: bytes, **options: Any) -> KeyValue | None:
        return self.kv


class Block:
    """A block as a lock makes it: `async with Block(...) as held:`."""

    def __init__(self, loan: FakeLoan, store: FakeStore, *, margin: float = 1.0, cancels: bool = True) -> None:
        self.loan, self.store, self.margin, self.cancels = loan, store, margin, cancels

    async def __aenter__(self) -> Held[LockLostError]:
        store: Any = self.store
        loan: Any = self.loan
        source: Any = None
        options = HoldOptions(store, source, b"a", 10, self.margin, self.cancels, SUBJECT)
        self.held = Held(options, loan, KEY, 7)
        return self.held

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.held.stop()
        self.held.leave_with(exc)


@pytest.fixture
async def loan() -> FakeLoan:
    return FakeLoan()


@pytest.fixture
async def store() -> FakeStore:
    return FakeStore()


def now() -> float:
    return asyncio.get_running_loop().time()


def requests() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


async def nothing_is_left() -> None:
    await turns()
    assert requests() == 0
    assert tasks() == set()
    assert timers() == 0


async def test_it_is_lost_a_margin_before_the_deadline(loan: FakeLoan, store: FakeStore) -> None:
    began = now()
    with pytest.raises(LockLostError, match=r"lock 'a' is lost: no renewal of its lease 0x1") as raised:
        async with Block(loan, store, margin=2.0):
            await asyncio.sleep(60)
    assert raised.value.__cause__ is loan.renewal_error
    assert now() - began == pytest.approx(8.0)
    await nothing_is_left()


async def test_renewals_keep_it(loan: FakeLoan, store: FakeStore) -> None:
    async with Block(loan, store) as held:
        for _ in range(20):
            await asyncio.sleep(5)
            assert held.remaining == pytest.approx(4.0)
            loan.renew()
        assert not held.is_lost
    assert held.remaining == 0
    assert held.is_over
    await nothing_is_left()


async def test_a_lost_lease_is_the_cause(loan: FakeLoan, store: FakeStore) -> None:
    error = LeaseLostError("the lease is gone")
    with pytest.raises(LockLostError, match="the lease is gone") as caught:
        async with Block(loan, store):
            assert loan.callback is not None
            asyncio.get_running_loop().call_later(0.1, loan.callback, error)
            await asyncio.sleep(60)
    assert caught.value.__cause__ is error
    assert loan.callback is None
    await nothing_is_left()


async def test_the_key_is_not_watched_in_a_short_block(loan: FakeLoan, store: FakeStore) -> None:
    async with Block(loan, store):
        await asyncio.sleep(WATCH_AFTER * 0.9)
    assert store.watches == 0
    await nothing_is_left()


async def test_a_deleted_key_is_a_loss(loan: FakeLoan, store: FakeStore) -> None:
    began = now()
    asyncio.get_running_loop().call_later(2.0, store.deleted.set)
    with pytest.raises(LockLostError, match="its key is gone: it was deleted, or its lease 0x1 was revoked"):
        async with Block(loan, store):
            await asyncio.sleep(60)
    assert now() - began == pytest.approx(2.0)
    await nothing_is_left()


async def test_the_deletion_of_an_earlier_key_of_that_name_is_no_loss(loan: FakeLoan, store: FakeStore) -> None:
    """The member that serves the watch is behind: it tells of the last acquisition with the same lease."""
    store.late = [deletion(revision=5), deletion(revision=6)]
    async with Block(loan, store):
        await asyncio.sleep(WATCH_AFTER * 4)
    assert (store.watches, store.late) == (1, [])
    await nothing_is_left()


@pytest.mark.parametrize("kv", [None, KeyValue(KEY, b"", 9, 9, 1, 1)], ids=["gone", "created again"])
async def test_a_key_that_is_gone_before_the_watch_is_a_loss(
    loan: FakeLoan, store: FakeStore, kv: KeyValue | None
) -> None:
    store.kv = kv
    began = now()
    with pytest.raises(LockLostError):
        async with Block(loan, store):
            await asyncio.sleep(60)
    assert now() - began == pytest.approx(WATCH_AFTER)
    await nothing_is_left()


async def test_a_watch_that_fails_begins_anew(loan: FakeLoan, store: FakeStore) -> None:
    store.errors = [UnavailableError("a"), UnavailableError("b")]
    asyncio.get_running_loop().call_later(4.0, store.deleted.set)
    with pytest.raises(LockLostError):
        async with Block(loan, store):
            await asyncio.sleep(60)
    assert store.watches == 3
    await nothing_is_left()


async def test_without_the_permission_to_watch_the_lease_decides(loan: FakeLoan, store: FakeStore) -> None:
    store.errors = [PermissionDeniedError() for _ in range(100)]
    began = now()
    with pytest.raises(LockLostError):
        async with Block(loan, store):
            await asyncio.sleep(60)
    assert 2 <= store.watches <= 6, "it asks seldom"
    assert now() - began == pytest.approx(9.0)
    await nothing_is_left()


async def test_a_permission_that_comes_back_is_noticed(loan: FakeLoan, store: FakeStore) -> None:
    store.errors = [PermissionDeniedError() for _ in range(3)]
    store.deleted.set()
    with pytest.raises(LockLostError, match="it was deleted"):
        async with Block(loan, store):
            while True:
                loan.renew()
                await asyncio.sleep(1)
    await nothing_is_left()


@pytest.mark.parametrize("lease", [0, 2])
async def test_a_put_without_its_lease_is_a_loss(loan: FakeLoan, store: FakeStore, lease: int) -> None:
    store.late = [
        Event(EventType.PUT, KeyValue(KEY, b"", 7, 8, 2, 1)),  # a value that a leader has proclaimed
        Event(EventType.PUT, KeyValue(KEY, b"", 7, 9, 3, lease)),
    ]
    with pytest.raises(LockLostError, match="it was put by another client"):
        async with Block(loan, store) as held:
            assert [condition.operand for condition in held.conditions()] == [7, 1]
            await asyncio.sleep(60)
    assert store.late == []
    await nothing_is_left()


async def test_is_lost_looks_at_the_clock_when_the_loop_was_blocked(loan: FakeLoan, store: FakeStore) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    with pytest.raises(LockLostError):
        async with Block(loan, store) as held:
            loop.block(8.9)
            assert not held.is_lost
            loop.block(0.2)
            assert held.is_lost
            loan.renew()
            assert held.is_lost, "once lost, it stays lost, whatever lies unread in the socket"
            assert held.remaining == 0
    await nothing_is_left()


async def test_a_look_for_a_loss_looks_at_the_clock_too(loan: FakeLoan, store: FakeStore) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    with pytest.raises(LockLostError):
        async with Block(loan, store) as held:
            loop.block(8.9)
            with pytest.raises(EtcdTimeoutError, match=r"^lock 'a' was not lost in time$"):
                await held.lost(0)
            loop.block(0.2)
            assert isinstance(await held.lost(0), LockLostError)
            await asyncio.sleep(60)
    await nothing_is_left()


async def test_leaving_after_a_blocked_loop_raises(loan: FakeLoan, store: FakeStore) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    with pytest.raises(LockLostError) as caught:
        async with Block(loan, store):
            loop.block(30)
    assert isinstance(caught.value.__cause__, LeaseExpiredError)
    await nothing_is_left()


async def test_a_lease_that_is_nearly_over_is_late_at_once(loan: FakeLoan, store: FakeStore) -> None:
    loan.deadline = now() + 0.5
    with pytest.raises(LockLostError):
        async with Block(loan, store) as held:
            assert held.is_late
            assert held.is_lost
    await nothing_is_left()


async def test_with_signal_the_task_is_left_alone(loan: FakeLoan, store: FakeStore) -> None:
    with pytest.raises(LockLostError):
        async with Block(loan, store, cancels=False) as held:
            error = await held.lost()
            assert error is not None
            assert held.is_lost
            await asyncio.sleep(60)
    await nothing_is_left()


async def test_an_exception_of_the_block_goes_on_with_a_note(loan: FakeLoan, store: FakeStore) -> None:
    with pytest.raises(LookupError) as caught:
        async with Block(loan, store, cancels=False):
            await asyncio.sleep(60)
            raise LookupError
    assert "is lost" in caught.value.__notes__[0]
    await nothing_is_left()


async def test_another_cancellation_at_the_same_time_goes_on(loan: FakeLoan, store: FakeStore) -> None:
    async def work() -> None:
        async with Block(loan, store):
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(9.0, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task
    await nothing_is_left()


async def test_nested_blocks_and_timeouts_each_take_back_their_own(loan: FakeLoan, store: FakeStore) -> None:
    with pytest.raises(LockLostError):
        async with asyncio.timeout(100), Block(loan, store, margin=1.0):
            with pytest.raises(LockLostError):
                async with Block(loan, store, margin=3.0):
                    await asyncio.sleep(60)
            await asyncio.sleep(60)
    with pytest.raises(TimeoutError):
        loan.renew()
        async with asyncio.timeout(1), Block(loan, store):
            await asyncio.sleep(60)
    await nothing_is_left()


async def test_lost_ends_when_the_block_is_left(loan: FakeLoan, store: FakeStore) -> None:
    async with Block(loan, store) as held:
        waiting = asyncio.create_task(held.lost())
        await turns()
    assert await waiting is None
