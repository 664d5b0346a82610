"""kv/update.py: what it sends, and what it makes of conflicts, in virtual time and on a store of one key."""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from etcd_aio.base.call_options import RetryMode, Timeout
from etcd_aio.errors import ConnectionLostError, EmptyKeyError, EtcdTimeoutError
from etcd_aio.kv.op import GetOp, PutOp, TxnOp
from etcd_aio.kv.update import Update
from etcd_aio.types import Header, KeyValue, Operation, TxnResult

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class OneKey:
    """A store of one key; `rivals` other writers each change it before a txn is applied."""

    def __init__(self, value: bytes | None = None, lease: int = 0, rivals: int = 0) -> None:
        self.revision = 10
        self.kv = None if value is None else KeyValue(b"k", value, 4, 7, 3, lease)
        self.rivals = rivals
        self.failures: list[Exception] = []
        self.sent: list[tuple[Operation[Any], Timeout, RetryMode | None]] = []

    async def do(self, operation: Operation[Any], *, timeout: Timeout, retry: RetryMode | None) -> Any:
        self.sent.append((operation, timeout, retry))
        await asyncio.sleep(0.001)
        if isinstance(operation, GetOp):
            return self.kv
        assert isinstance(operation, TxnOp)
        if self.failures:
            raise self.failures.pop()
        if self.rivals:
            self.rivals -= 1
            self.put(PutOp(b"k", b"%d" % (100 + self.rivals)))
        [compare], [put] = operation.when, operation.then
        assert isinstance(put, PutOp)
        if compare.operand != (0 if self.kv is None else self.kv.mod_revision):
            return TxnResult(False, Header(revision=self.revision))
        self.put(put)
        return TxnResult(True, Header(revision=self.revision))

    def put(self, put: PutOp) -> None:
        self.revision += 1
        old = self.kv
        if old is None:
            self.kv = KeyValue(b"k", put.value, self.revision, self.revision, 1, put.lease)
        else:
            lease = old.lease if put.ignore_lease else put.lease
            self.kv = KeyValue(b"k", put.value, old.create_revision, self.revision, old.version + 1, lease)

    @property
    def txns(self) -> int:
        return sum(isinstance(operation, TxnOp) for operation, _, _ in self.sent)


def increased(value: bytes | None) -> str:
    return str(int(value or 0) + 1)


async def updated(store: OneKey, function: Callable[[bytes | None], Any] = increased, **options: Any) -> KeyValue:
    deadline = asyncio.get_running_loop().time() + options.pop("timeout", 5.0)
    options.setdefault("lease", None)
    return await Update(store, "k", function, **options).run(deadline, asyncio.get_running_loop().time)


@pytest.mark.parametrize("value", [None, b"7"])
@pytest.mark.parametrize("rivals", [0, 1, 5])
async def test_it_returns_the_key_as_it_is_in_the_store(value: bytes | None, rivals: int) -> None:
    store = OneKey(value, rivals=rivals)
    found = await updated(store)
    assert found == store.kv
    assert store.txns == rivals + 1
    assert found.value == (b"101" if rivals else b"8" if value else b"1")


async def test_a_txn_is_never_repeated_by_itself() -> None:
    store = OneKey(b"7", rivals=2)
    await updated(store)
    assert {retry for operation, _, retry in store.sent if isinstance(operation, TxnOp)} == {"safe"}


async def test_it_keeps_the_lease_of_the_key_unless_it_is_given_another() -> None:
    store = OneKey(b"7", lease=5)
    assert (await updated(store)).lease == 5
    assert (await updated(store, lease=6)).lease == 6
    assert store.kv is not None
    assert store.kv.lease == 6
    assert (await updated(OneKey(), lease=6)).lease == 6


async def test_one_deadline_bounds_all_attempts() -> None:
    store = OneKey(b"7", rivals=10**9)
    with pytest.raises(
        EtcdTimeoutError, match=r"^update 'k': another writer was faster in each of \d+ attempts"
    ) as caught:
        await updated(store, timeout=1.0)
    assert not caught.value.maybe_applied
    assert store.txns > 10
    left = [timeout for _, timeout, _ in store.sent if isinstance(timeout, float)]
    assert len(left) == len(store.sent)
    assert left == sorted(left, reverse=True)
    assert 0 <= left[-1] < left[0] <= 1.0  # the last one may begin as the time ends


async def test_without_a_deadline_its_calls_have_none() -> None:
    store = OneKey(b"7")
    await updated(store, timeout=inf)
    assert [timeout for _, timeout, _ in store.sent] == [inf, inf]


async def test_what_the_function_raises_is_raised_and_nothing_is_put() -> None:
    store = OneKey(b"seven")
    with pytest.raises(ValueError, match="seven"):
        await updated(store)
    with pytest.raises(TypeError, match="returned None"):
        await updated(store, lambda value: None)
    with pytest.raises(TypeError, match="value must be"):
        await updated(store, lambda value: 8)
    assert store.txns == 0


async def test_an_ambiguous_attempt_is_raised() -> None:
    store = OneKey(b"7")
    error = ConnectionLostError()
    error.maybe_applied = True
    store.failures.append(error)
    with pytest.raises(ConnectionLostError) as caught:
        await updated(store)
    assert caught.value is error


async def test_arguments_are_checked_before_anything_is_sent() -> None:
    store = OneKey()
    with pytest.raises(EmptyKeyError):
        Update(store, "", increased, None)
    with pytest.raises(TypeError, match="takes a function"):
        Update(store, "k", "8", None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="lease must be"):
        Update(store, "k", increased, "7")  # type: ignore[arg-type]
    assert not store.sent
