"""services/registration.py, services/kept_entry.py, errors/naming.py: when it puts its entry, and what the answers
mean, in virtual time on a store of one key.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

import pytest

from etcd_aio import Header, InvalidRequestError, KeyValue, LeaseLostError, TxnResult
from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    EmptyKeyError,
    EtcdError,
    EtcdTimeoutError,
    LeaseExpiredError,
    LeaseNotFoundError,
    NoSpaceError,
    ServiceConflictError,
    UnavailableError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.time import VirtualTimeLoop
from etcd_aio.services import Registration
from etcd_aio.services.endpoint_json import encode_entry
from tests.support.until import until
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

KEY = b"svc/a:1"


class FakeLease:
    def __init__(self, store: "FakeStore", id: int) -> None:
        self.id, self._store = id, store
        self.error: LeaseLostError | None = None
        self.gone = asyncio.Event()

    @property
    def is_lost(self) -> bool:
        return self.error is not None

    async def __aenter__(self) -> Self:
        await asyncio.sleep(0.01)
        if self._store.grants:
            raise self._store.grants.pop(0)
        self._store.granted.append(self)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        if not self.gone.is_set():
            await self.revoke(timeout=2.0)
        if self.error is not None:
            raise self.error

    async def lost(self) -> LeaseLostError | None:
        await self.gone.wait()
        return self.error

    def lose(self) -> None:
        """The lease expires, and the server knows it."""
        self.error = LeaseLostError("lost in this test")
        self.gone.set()
        self._store.expire(self.id)

    async def revoke(self, *, timeout: float) -> None:
        self.gone.set()
        await asyncio.sleep(self._store.revoke_seconds)
        self._store.revoked.append(self.id)
        self._store.expire(self.id)


class FakeStore:
    """One key, as etcd would have it.

    Attributes:
        grants: errors of the next grants, in turn.
        puts: errors of the next txns, in turn; `after` says whether the txn is applied before.
    """

    backend = None

    def __init__(self) -> None:
        self.kv: KeyValue | None = None
        self.revision = 10
        self.grants: list[EtcdError] = []
        self.puts: list[EtcdError | None] = []
        self.is_applied_before_the_error = False
        self.granted: list[FakeLease] = []
        self.revoked: list[int] = []
        self.sent: list[Any] = []
        self.revoke_seconds = 0.01
        self.before: Callable[[], Awaitable[None]] | None = None
        self.blocks: list[object] = []
        self.end_with_client = self.blocks.append

    def lease(self, ttl: int, *, timeout: Any, on_lost: str) -> FakeLease:
        return FakeLease(self, 100 + len(self.granted))

    def expire(self, lease: int) -> None:
        if self.kv is not None and self.kv.lease == lease:
            self.kv, self.revision = None, self.revision + 1

    def set(self, value: bytes, lease: int = 0) -> None:
        self.revision += 1
        self.kv = KeyValue(KEY, value, self.revision, self.revision, 1, lease)

    async def do(self, txn: Any, *, timeout: Any, retry: str) -> TxnResult:
        assert retry == "always"
        self.sent.append(txn)
        await asyncio.sleep(0.01)
        if self.before is not None:
            await self.before()
        error = self.puts.pop(0) if self.puts else None
        if error is not None and not self.is_applied_before_the_error:
            raise error
        (condition,), (put,), (look,) = txn.when, txn.then, txn.otherwise
        if condition.operand == (0 if self.kv is None else self.kv.mod_revision):
            self.set(put.value, put.lease)
            result = TxnResult(True, Header(revision=self.revision), (None,), (put,))
        else:
            result = TxnResult(False, Header(revision=self.revision), (self.kv,), (look,))
        if error is not None:
            raise error
        return result


def register(store: FakeStore, **options: Any) -> Registration:
    return Registration(store, "svc", "a:1", **options)  # type: ignore[arg-type]


@pytest.fixture
async def store() -> AsyncIterator[FakeStore]:
    """The store; afterwards no task is left."""
    yield FakeStore()
    await turns(5)
    assert not {name for name in tasks() if "registration" in name}


def value(store: FakeStore) -> bytes:
    assert store.kv is not None
    return store.kv.value


async def test_the_entry_is_there_within_the_block(store: FakeStore) -> None:
    registration = register(store, metadata={"zone": "a"})
    assert not registration.is_registered
    async with registration:
        assert registration.is_registered
        assert (value(store), registration.revision) == (encode_entry("a:1", {"zone": "a"}), store.revision)
        assert registration.key == KEY
        await registration.wait_registered()
        assert repr(registration) == "<Registration 'svc/a:1' registered>"
    assert store.kv is None
    assert not registration.is_registered
    assert await registration.lost() is None
    with pytest.raises(ClientUsageError):
        await registration.wait_registered()
    with pytest.raises(ClientUsageError):
        await registration.__aenter__()


async def test_a_lost_lease_is_healed(store: FakeStore) -> None:
    async with register(store) as registration:
        await asyncio.sleep(5)
        losing = asyncio.create_task(registration.lost())
        await turns(3)
        store.granted[0].lose()
        assert not registration.is_registered
        assert isinstance(await losing, LeaseLostError)
        assert isinstance(registration.error, LeaseLostError)
        await registration.wait_registered()
        assert registration.error is None
        assert store.kv is not None
        assert store.kv.lease == store.granted[1].id
        assert len(store.granted) == 2


async def test_it_is_healed_for_ever(store: FakeStore, caplog: pytest.LogCaptureFixture) -> None:
    """By a wait that grows to 10 seconds; each kind of reason is logged once."""
    loop = asyncio.get_running_loop()
    async with register(store) as registration:
        await asyncio.sleep(5)
        store.grants = [UnavailableError("down") for _ in range(50)]
        began = loop.time()
        store.granted[0].lose()
        await registration.wait_registered()
        assert 45 * 8 < loop.time() - began < 50 * 12
    texts = [record.getMessage() for record in caplog.records]
    assert [text.rpartition(": ")[2] for text in texts] == ["lost in this test", "down"]


async def test_a_lease_that_is_lost_at_once_again_and_again_is_a_failure(store: FakeStore) -> None:
    loop = asyncio.get_running_loop()
    async with register(store) as registration:
        began = loop.time()
        for _ in range(6):
            store.granted[-1].lose()
            await registration.wait_registered()
        assert loop.time() - began > 10


@pytest.mark.parametrize("where", ["grants", "puts"])
async def test_an_error_on_entering_is_raised(store: FakeStore, where: str) -> None:
    getattr(store, where).append(NoSpaceError("full"))
    registration = register(store)
    with pytest.raises(NoSpaceError):
        await registration.__aenter__()
    assert store.kv is None
    assert len(store.revoked) == len(store.granted)
    assert repr(registration) == "<Registration 'svc/a:1' left>"


async def test_no_space_later_is_waited_for(store: FakeStore) -> None:
    async with register(store) as registration:
        await asyncio.sleep(5)
        store.puts = [NoSpaceError("full"), NoSpaceError("full")]
        store.granted[0].lose()
        await turns(3)
        assert not registration.is_registered
        await registration.wait_registered()
        assert store.revoked == [store.granted[1].id, store.granted[2].id]


# Whose entry it is.


async def test_the_entry_of_another_is_left_alone_until_it_is_gone(
    store: FakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.set(b"another", lease=7)
    async with register(store) as registration:
        assert not registration.is_registered
        await asyncio.sleep(600)
        assert value(store) == b"another"
        assert len(store.granted) > 20
        assert len(registration._leases) <= 1, "none is remembered that nothing was put with"
        assert isinstance(registration.error, ServiceConflictError)
        assert registration.error.lease == 7
        assert isinstance(await registration.lost(), ServiceConflictError)
        assert len(caplog.records) == 1
        store.expire(7)
        await registration.wait_registered()
        assert value(store) == encode_entry("a:1", None)
    assert "another" not in caplog.text.replace("another process", "")


async def test_the_entry_of_another_is_replaced_if_asked(store: FakeStore) -> None:
    store.set(b"another", lease=7)
    async with register(store, on_conflict="replace") as registration:
        assert registration.is_registered
        assert value(store) == encode_entry("a:1", None)


async def test_an_equal_entry_of_an_earlier_process_is_taken_over(store: FakeStore) -> None:
    store.set(encode_entry("a:1", None), lease=7)
    async with register(store) as registration:
        assert registration.is_registered
        assert store.kv is not None
        assert store.kv.lease == store.granted[0].id


async def test_an_earlier_copy_of_the_put_was_applied(store: FakeStore) -> None:
    """The answer says "not so": since the error handler has repeated the txn."""

    async def apply_first() -> None:
        store.before = None
        store.set(encode_entry("a:1", None), lease=store.granted[0].id)

    store.before = apply_first
    async with register(store) as registration:
        assert registration.is_registered
        assert store.kv is not None
        assert registration.revision == store.kv.mod_revision == store.revision
        assert len(store.sent) == 1


async def test_the_own_entry_under_an_earlier_lease_is_put_again(store: FakeStore) -> None:
    """A new leader gives every lease its full TTL: the old entry can outlive the loss of its lease here."""
    async with register(store, metadata=1) as registration:
        await asyncio.sleep(5)
        old = store.granted[0]
        old.error = LeaseLostError("no renewal was acknowledged")
        old.gone.set()
        await registration.update(metadata=2)  # not now
        await registration.wait_registered()
        assert value(store) == encode_entry("a:1", 2)
        store.expire(old.id)
        assert store.kv is not None


async def test_a_put_whose_answer_was_lost_is_found_out_by_the_next_one(store: FakeStore) -> None:
    async with register(store, metadata=1) as registration:
        await asyncio.sleep(5)
        store.puts.append(UnavailableError("lost"))
        store.is_applied_before_the_error = True
        with pytest.raises(UnavailableError):
            await registration.update(metadata=2)
        assert registration.is_registered
        await registration.update(metadata=3)
        assert value(store) == encode_entry("a:1", 3)
        assert store.kv is not None
        assert registration.revision == store.kv.mod_revision


# Updates.


async def test_updates_are_applied_in_order(store: FakeStore) -> None:
    async with register(store) as registration:
        await asyncio.gather(*(registration.update(metadata=number) for number in range(10)))
        assert value(store) == encode_entry("a:1", 9)
        assert registration.is_registered


async def test_an_update_while_the_entry_is_put_again_is_not_lost(store: FakeStore) -> None:
    """It returns at once, since the entry is not there; what is on its way has the value from before."""
    async with register(store, metadata=0) as registration:

        async def first() -> None:  # the txn that finds the key missing
            store.before = second

        async def second() -> None:
            store.before = None
            await registration.update(metadata=1)

        await asyncio.sleep(5)
        store.before = first
        store.granted[0].lose()
        await registration.lost()
        await registration.wait_registered()
        assert value(store) == encode_entry("a:1", 1)
        assert registration.revision == store.revision


async def test_an_update_of_an_entry_that_another_client_deleted_puts_it_again(store: FakeStore) -> None:
    async with register(store) as registration:
        store.kv = None
        await registration.update(metadata=1)
        assert value(store) == encode_entry("a:1", 1)


async def test_an_update_meets_the_entry_of_another(store: FakeStore) -> None:
    async with register(store) as registration:
        store.set(b"another", lease=7)
        with pytest.raises(ServiceConflictError):
            await registration.update(metadata=1)
        await turns(3)
        assert not registration.is_registered
        assert isinstance(registration.error, ServiceConflictError)
        store.expire(7)
        await registration.wait_registered()
        assert value(store) == encode_entry("a:1", 1)


async def test_an_update_finds_the_lease_gone(store: FakeStore) -> None:
    async with register(store) as registration:
        store.puts = [LeaseNotFoundError("gone")]
        await registration.update(metadata=1)
        await turns(3)
        assert not registration.is_registered
        await registration.wait_registered()
        assert value(store) == encode_entry("a:1", 1)


async def test_updates_are_for_the_block(store: FakeStore) -> None:
    registration = register(store)
    for call in (lambda: registration.update(metadata=1), registration.lost, registration.wait_registered):
        with pytest.raises(ClientUsageError):
            await call()
    async with registration:
        with pytest.raises(InvalidRequestError):
            await registration.update(metadata=float("nan"))
    with pytest.raises(ClientUsageError):
        await registration.update(metadata=1)


# The end.


async def test_leaving_while_it_is_not_registered(store: FakeStore) -> None:
    async with register(store) as registration:
        await asyncio.sleep(5)
        store.grants = [UnavailableError("down") for _ in range(50)]
        store.granted[0].lose()
        await asyncio.sleep(1)
        waiting = asyncio.create_task(registration.wait_registered())
        await turns(3)
    with pytest.raises(ClientUsageError):
        await waiting


@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.015, 0.025, 1.0])
async def test_cancelling_the_block_at_any_time_leaves_nothing(store: FakeStore, seconds: float) -> None:
    async def serve() -> None:
        async with register(store):
            await asyncio.sleep(100)

    serving = asyncio.create_task(serve())
    await asyncio.sleep(seconds)
    serving.cancel()
    await asyncio.wait([serving])
    assert serving.cancelled()
    await asyncio.sleep(2)
    assert store.kv is None
    assert len(store.revoked) == len(store.granted)


async def test_closing_the_client_ends_it(store: FakeStore) -> None:
    async with register(store) as registration:
        await asyncio.sleep(5)
        store.grants = [ClientClosedError()]
        store.granted[0].lose()
        await asyncio.sleep(1)
        with pytest.raises(ClientUsageError):
            await registration.wait_registered()
        assert await registration.lost() is None


@pytest.mark.parametrize("options", [{"ttl": 0}, {"on_conflict": "fight"}, {"name": ""}, {"metadata": float("nan")}])
async def test_wrong_arguments_are_refused(store: FakeStore, options: dict[str, Any]) -> None:
    with pytest.raises((InvalidRequestError, EmptyKeyError)):
        register(store, **options)
    assert not store.sent


async def test_the_error_is_there_as_soon_as_the_clock_says_that_the_lease_is_lost() -> None:
    """Before the registration has noticed; it never is None while the entry is not there."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    async with FakeEtcd() as fake, fake.client() as client, client.register("svc", "a:1", ttl=10) as registration:
        assert registration.error is None
        loop.block(60)
        assert not registration.is_registered
        assert isinstance(registration.error, LeaseExpiredError)
        await registration.wait_registered()
        assert registration.error is None


async def test_a_look_for_a_loss_looks_at_the_clock_too() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    async with FakeEtcd() as fake, fake.client() as client, client.register("svc", "a:1", ttl=10) as registration:
        with pytest.raises(EtcdTimeoutError, match=r"^the registration 'svc/a:1' was not lost in time$"):
            await registration.lost(timeout=0)
        loop.block(60)
        assert isinstance(await registration.lost(timeout=0), LeaseExpiredError)
        await registration.wait_registered()
        losing = asyncio.create_task(registration.lost(timeout=30))
        await turns()
        loop.block(60)
        assert isinstance(await losing, LeaseExpiredError)


async def test_an_entry_that_moves_in_the_turn_of_a_deadline_has_moved(store: FakeStore) -> None:
    loop = asyncio.get_running_loop()
    async with register(store) as registration:
        [lease] = store.granted
        at = loop.time() + 0.5
        losing = asyncio.create_task(registration.lost(timeout=0.5))
        await turns()
        loop.call_at(at, move, registration, None)
        loop.call_at(at, setattr, lease, "error", LeaseLostError("lost in this test"))
        await losing
        coming = asyncio.create_task(registration.wait_registered(timeout=0.5))
        await turns()
        lease.error = None
        loop.call_at(at + 0.5, move, registration, lease)
        await coming


def move(registration: Registration, lease: Any) -> None:
    registration._lease = lease
    registration._moved.wake()


async def test_leaving_waits_for_the_drain_behind_the_end_of_the_entry() -> None:
    loop = asyncio.get_running_loop()
    async with FakeEtcd() as fake, fake.client() as client:
        registration = client.register("svc", "a:1", drain=5)
        await registration.__aenter__()
        leaving = asyncio.create_task(registration.__aexit__(None, None, None))
        await until(lambda: not fake.keys("svc"))
        gone = loop.time()
        await asyncio.sleep(4)
        assert not leaving.done()
        await leaving
        assert 4.9 <= loop.time() - gone <= 5.1
        await registration.aclose()
        assert loop.time() - gone <= 5.1


async def test_a_cancelled_block_waits_for_the_drain_too_until_it_is_cancelled_again() -> None:
    loop = asyncio.get_running_loop()
    async with FakeEtcd() as fake, fake.client() as client:

        async def serve() -> None:
            async with client.register("svc", "a:1", drain=5):
                await asyncio.Event().wait()

        for cut in False, True:
            serving = asyncio.create_task(serve())
            await until(lambda: bool(fake.keys("svc")))
            serving.cancel()
            await until(lambda: not fake.keys("svc"))
            gone = loop.time()
            await asyncio.sleep(1)
            assert not serving.done()
            if cut:
                serving.cancel()
            await asyncio.wait([serving])
            assert serving.cancelled()
            assert (loop.time() - gone < 2) is cut


@pytest.mark.parametrize("drain", [-1, float("inf")])
def test_a_drain_is_a_number_of_seconds(drain: float) -> None:
    with pytest.raises(InvalidRequestError):
        Registration(FakeStore(), "svc", "a:1", drain=drain)  # type: ignore[arg-type]
