"""recipes/kubernetes.py: what an answer means after one was lost, by each first change of the key."""

import asyncio
from dataclasses import dataclass
from typing import Any, Self

import pytest

from etcd_aio import Event, EventType, Header, InvalidRequestError, KeyValue, RangeResult, TxnResult, op
from etcd_aio.errors import (
    CompactedError,
    ConnectionLostError,
    EmptyKeyError,
    EtcdError,
    EtcdTimeoutError,
    FutureRevisionError,
)
from etcd_aio.kv import Txn
from etcd_aio.recipes import Kubernetes, ListPage
from tests.support.backends import StandInBackend

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

EXPECTED = 5


def put(value: str, revision: int, lease: int = 0) -> Event:
    return Event(EventType.PUT, KeyValue(b"k", value.encode(), 3, revision, 2, lease))


def delete(revision: int) -> Event:
    return Event(EventType.DELETE, KeyValue(b"k", mod_revision=revision))


def lost() -> ConnectionLostError:
    error = ConnectionLostError("the answer is lost")
    error.maybe_applied = True
    return error


@dataclass
class FakeWatch:
    event: Event | Exception | None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None: ...

    async def __anext__(self) -> Event:
        if self.event is None:
            await asyncio.sleep(1e6)
        if isinstance(self.event, Exception):
            raise self.event
        assert self.event is not None
        return self.event


class FakeStore:
    """`answers` are those of `do`; `before` is that of the read at the expected revision; `event` follows it."""

    def __init__(self, *answers: Any, before: Any = None, event: Event | Exception | None = None) -> None:
        self.answers = list(answers)
        self.before = before or KeyValue(b"k", b"", 3, EXPECTED, 1)
        self.event = event
        self.sent: list[tuple[Any, Any, Any]] = []
        self.watched: list[int] = []
        self.backend = StandInBackend()

    async def do(self, operation: Any, *, timeout: Any = None, retry: Any = None) -> Any:
        self.sent.append((operation, timeout, retry))
        await asyncio.sleep(1)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def txn(self) -> Txn:
        return Txn(self.do)

    async def get(self, key: bytes, *, revision: int, keys_only: bool, timeout: float) -> KeyValue | None:
        assert revision == EXPECTED
        if isinstance(self.before, Exception):
            raise self.before
        return None if self.before == "missing" else self.before

    def watch(self, key: bytes, *, start_revision: int, timeout: float) -> FakeWatch:
        self.watched.append(start_revision)
        return FakeWatch(self.event)


def failed(found: KeyValue | None = None) -> TxnResult:
    return TxnResult(False, Header(revision=9), (found,), (op.get("k"),))


def made() -> TxnResult:
    return TxnResult(True, Header(revision=6), (), ())


def kubernetes(store: FakeStore, timeout: float | None = 5.0) -> Kubernetes:
    return Kubernetes(store, timeout=timeout)  # type: ignore[arg-type]


async def test_nothing_is_added_while_answers_come() -> None:
    store = FakeStore(made(), failed(KeyValue(b"k", b"v", 3, 9, 2)))
    result = await kubernetes(store).optimistic_put("k", "v", EXPECTED)
    assert (bool(result), result.revision, result.kv) == (True, 6, None)
    result = await kubernetes(store).optimistic_put("k", "v", EXPECTED)
    assert (bool(result), result.revision) == (False, 9)
    assert result.kv is not None  # though its value is the own one: this put was answered, and it was not made
    assert [retry for _, _, retry in store.sent] == ["safe", "safe"]
    assert not store.watched


@pytest.mark.parametrize(
    ("event", "succeeded"),
    [
        (put("v", 7, lease=4), True),
        (put("other", 7, lease=4), False),
        (put("v", 7, lease=1), False),
        (delete(7), False),
    ],
)
async def test_the_verdict_on_a_put_whose_answer_was_lost(event: Event, succeeded: bool) -> None:
    store = FakeStore(lost(), failed(KeyValue(b"k", b"later", 3, 9, 3)), event=event)
    result = await kubernetes(store).optimistic_put("k", "v", EXPECTED, lease=4)
    assert result.succeeded is succeeded
    assert result.revision == (7 if succeeded else 9)
    assert (result.kv is None) is succeeded
    assert store.watched == [EXPECTED + 1]
    assert [retry for _, _, retry in store.sent] == ["safe", "always"]
    assert store.sent[1][1] == 4  # seconds: what the first attempt has left


@pytest.mark.parametrize(("event", "succeeded"), [(delete(7), True), (put("v", 7), False)])
async def test_the_verdict_on_a_delete_whose_answer_was_lost(event: Event, succeeded: bool) -> None:
    store = FakeStore(lost(), failed(), event=event)
    assert (await kubernetes(store).optimistic_delete("k", EXPECTED)).succeeded is succeeded


async def test_the_second_copy_may_be_the_one_that_is_applied() -> None:
    store = FakeStore(lost(), made())
    assert await kubernetes(store).optimistic_put("k", "v", EXPECTED)
    assert not store.watched


@pytest.mark.parametrize(
    "before", ["missing", KeyValue(b"k", b"", 3, EXPECTED - 1, 1), FutureRevisionError()], ids=["no", "older", "future"]
)
async def test_a_revision_that_was_never_the_keys_waits_for_no_change(before: Any) -> None:
    store = FakeStore(lost(), failed(), before=before)
    assert not await kubernetes(store, timeout=None).optimistic_put("k", "v", EXPECTED)
    assert not store.watched


@pytest.mark.parametrize("where", ["before", "event"])
async def test_a_history_that_is_compacted_leaves_the_outcome_open(where: str) -> None:
    store = FakeStore(lost(), failed(), **{where: CompactedError()})
    with pytest.raises(ConnectionLostError) as caught:
        await kubernetes(store).optimistic_put("k", "v", EXPECTED)
    assert caught.value.maybe_applied
    assert isinstance(caught.value.__cause__, CompactedError)


async def test_a_second_attempt_that_is_refused_says_nothing_of_the_first() -> None:
    refused = EtcdError("refused")
    with pytest.raises(EtcdError) as caught:
        await kubernetes(FakeStore(lost(), refused)).optimistic_put("k", "v", EXPECTED)
    assert caught.value is refused
    assert refused.maybe_applied


async def test_a_put_of_a_new_key_is_sent_once() -> None:
    store = FakeStore(lost())
    with pytest.raises(ConnectionLostError):
        await kubernetes(store).optimistic_put("k", "v", 0)
    assert len(store.sent) == 1


async def test_an_error_that_says_not_applied_is_raised_as_it_is() -> None:
    store = FakeStore(EtcdError("no"))
    with pytest.raises(EtcdError) as caught:
        await kubernetes(store).optimistic_put("k", "v", EXPECTED)
    assert not caught.value.maybe_applied


@pytest.mark.parametrize("timeout", [1, 1.5])
async def test_the_deadline_ends_it(timeout: float) -> None:
    """At the first attempt, or while the history is read."""
    store = FakeStore(lost(), failed())
    with pytest.raises(EtcdError) as caught:
        await kubernetes(store).optimistic_put("k", "v", EXPECTED, timeout=timeout)
    assert caught.value.maybe_applied
    assert isinstance(caught.value, EtcdTimeoutError if timeout > 1 else ConnectionLostError)


async def test_a_page_has_the_key_of_the_next_one_and_its_revision() -> None:
    kvs = (KeyValue(b"p/a"), KeyValue(b"p/b"))
    store = FakeStore(RangeResult(Header(revision=9), kvs, more=True, count=5))
    page = await kubernetes(store).list("p/", limit=2)
    assert (page.count, page.revision, page.next_key) == (5, 9, b"p/b\0")
    store.answers.append(RangeResult(Header(revision=12), kvs, count=2))
    page = await kubernetes(store).list("p/", revision=page.revision, continue_key=page.next_key)
    assert page == ListPage(kvs, 2, 9, None)
    assert store.sent[1][0].keys.key == b"p/b\0"
    assert "p/a" not in repr(page)


@pytest.mark.parametrize("continue_key", ["", "o", "q", "p0"])
async def test_a_page_begins_within_the_prefix(continue_key: str) -> None:
    with pytest.raises((InvalidRequestError, EmptyKeyError)):
        await kubernetes(FakeStore()).list("p/", continue_key=continue_key)


async def test_arguments_are_checked_before_anything_is_sent() -> None:
    store = FakeStore()
    for wrong in (-1, 2**63):
        with pytest.raises(InvalidRequestError):
            await kubernetes(store).optimistic_put("k", "v", wrong)
    with pytest.raises(EmptyKeyError):
        await kubernetes(store).optimistic_delete("", 1)
    with pytest.raises(TypeError):
        await kubernetes(store).optimistic_delete("k", 1, get_on_failure="no")  # type: ignore[arg-type]
    assert not store.sent
