"""KV: each call sends one message by its own method, with its options, and returns its result."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest

from etcd_aio import codec, methods, pb
from etcd_aio.call_options import UNSET
from etcd_aio.errors import EmptyKeyError, InvalidRequestError, LeaseProvidedError, NoSpaceError, ValueProvidedError
from etcd_aio.kv import op
from etcd_aio.kv.calls import KV
from etcd_aio.kv.compare import Key
from etcd_aio.types import CompactResult, DeleteResult, Header, KeyValue, PutResult, RangeResult, TxnResult

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

HEADER = Header(1, 2, 7, 3)
WIRE_HEADER = pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)
FOUND = KeyValue(b"k", b"v", 4, 6, 2, 9)
WIRE_FOUND = pb.KeyValue(key=b"k", value=b"v", create_revision=4, mod_revision=6, version=2, lease=9)


@dataclass
class Call:
    method: methods.Method[Any, Any]
    request: pb.Message
    options: dict[str, object]


class FakeInvoker:
    """Answers every call with what the codec makes of the next reply, or raises it."""

    def __init__(self, *answers: pb.Message | Exception) -> None:
        self.answers = list(answers)
        self.calls: list[Call] = []

    async def unary(self, method: methods.Method[Any, Any], request: pb.Message | bytes, **options: object) -> Any:
        if isinstance(request, bytes):
            request = codec.decode(cast("type[pb.Message]", method.request), request)
        assert isinstance(request, method.request)
        self.calls.append(Call(method, request, options))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert type(answer) is codec.message_class_of(method.reply)
        return codec.decode(method.reply, codec.encode(answer))


def client(*answers: pb.Message | Exception) -> tuple[KV, FakeInvoker]:
    invoker = FakeInvoker(*answers)
    return KV(cast("Invoker", invoker)), invoker


RANGE_REPLY = pb.RangeResponse(header=WIRE_HEADER, kvs=[WIRE_FOUND], more=True, count=3)


@pytest.mark.anyio
async def test_get() -> None:
    kv, invoker = client(RANGE_REPLY, pb.RangeResponse(header=WIRE_HEADER))
    assert await kv.get("k", revision=5, keys_only=True) == FOUND
    assert await kv.get("absent") is None
    [first, _] = invoker.calls
    assert first.method is methods.RANGE
    assert first.request == pb.RangeRequest(key=b"k", revision=5, keys_only=True)


@pytest.mark.anyio
async def test_range() -> None:
    kv, invoker = client(RANGE_REPLY)
    found = await kv.range(
        "a",
        range_end="b",
        limit=1,
        revision=2,
        sort_by="version",
        sort_order="descend",
        keys_only=True,
        count_only=True,
        min_mod_revision=3,
        max_mod_revision=4,
        min_create_revision=5,
        max_create_revision=6,
    )
    assert found == RangeResult(HEADER, (FOUND,), more=True, count=3)
    [call] = invoker.calls
    assert call.method is methods.RANGE
    assert call.request == pb.RangeRequest(
        key=b"a",
        range_end=b"b",
        limit=1,
        revision=2,
        sort_target=pb.RangeRequestSortTarget.VERSION,
        sort_order=pb.RangeRequestSortOrder.DESCEND,
        keys_only=True,
        count_only=True,
        min_mod_revision=3,
        max_mod_revision=4,
        min_create_revision=5,
        max_create_revision=6,
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("forms", "key", "range_end"),
    [
        ({"prefix": "p"}, b"p", b"q"),
        ({"from_key": "p"}, b"p", b"\0"),
        ({"all_keys": True}, b"\0", b"\0"),
        ({"key": "p"}, b"p", b""),
    ],
)
async def test_every_call_that_takes_ranges_takes_all_forms(
    forms: dict[str, Any], key: bytes, range_end: bytes
) -> None:
    kv, invoker = client(RANGE_REPLY, pb.DeleteRangeResponse(header=WIRE_HEADER), RANGE_REPLY)
    await kv.range(**forms)
    await kv.delete(**forms)
    await anext(kv.scan(**forms))
    for call in invoker.calls:
        assert isinstance(call.request, pb.RangeRequest | pb.DeleteRangeRequest)
        assert (call.request.key, call.request.range_end) == (key, range_end)


@pytest.mark.anyio
@pytest.mark.parametrize("serializable", [True, False])
async def test_a_serializable_read_needs_no_leader(serializable: bool) -> None:
    stale = op.get("k", serializable=serializable)
    txn_reply = pb.TxnResponse(succeeded=True, responses=[pb.ResponseOp(response_range=RANGE_REPLY)])
    kv, invoker = client(RANGE_REPLY, RANGE_REPLY, RANGE_REPLY, txn_reply)
    await kv.get("k", serializable=serializable)
    await kv.range("k", serializable=serializable)
    await anext(kv.scan("k", serializable=serializable))
    await kv.txn().then(stale).commit()
    assert [call.options["needs_leader"] for call in invoker.calls] == [not serializable] * 4
    assert [call.request.serializable for call in invoker.calls[:3]] == [serializable] * 3  # type: ignore[attr-defined]


@pytest.mark.anyio
async def test_reads_are_linearizable_unless_asked_otherwise() -> None:
    kv, invoker = client(RANGE_REPLY, RANGE_REPLY, RANGE_REPLY)
    await kv.get("k")
    await kv.range("k")
    await anext(kv.scan("k"))
    assert [call.request.serializable for call in invoker.calls] == [False] * 3  # type: ignore[attr-defined]


@pytest.mark.anyio
async def test_put() -> None:
    kv, invoker = client(pb.PutResponse(header=WIRE_HEADER, prev_kv=WIRE_FOUND), pb.PutResponse(header=WIRE_HEADER))
    assert await kv.put("k", "v", lease=9, prev_kv=True, ignore_lease=False) == PutResult(HEADER, FOUND)
    assert await kv.put("k", lease=9, ignore_value=True) == PutResult(HEADER)
    assert [call.method for call in invoker.calls] == [methods.PUT] * 2
    assert [call.request for call in invoker.calls] == [
        pb.PutRequest(key=b"k", value=b"v", lease=9, prev_kv=True),
        pb.PutRequest(key=b"k", lease=9, ignore_value=True),
    ]


@pytest.mark.anyio
async def test_delete() -> None:
    kv, invoker = client(pb.DeleteRangeResponse(header=WIRE_HEADER, deleted=1, prev_kvs=[WIRE_FOUND]))
    assert await kv.delete("k", prev_kv=True) == DeleteResult(HEADER, 1, (FOUND,))
    [call] = invoker.calls
    assert call.method is methods.DELETE_RANGE
    assert call.request == pb.DeleteRangeRequest(key=b"k", prev_kv=True)


@pytest.mark.anyio
async def test_compact() -> None:
    kv, invoker = client(pb.CompactionResponse(header=WIRE_HEADER))
    assert await kv.compact(5, physical=True) == CompactResult(HEADER)
    [call] = invoker.calls
    assert call.method is methods.COMPACT
    assert call.request == pb.CompactionRequest(revision=5, physical=True)


@pytest.mark.anyio
async def test_txn() -> None:
    reply = pb.TxnResponse(header=WIRE_HEADER, succeeded=False, responses=[pb.ResponseOp(response_range=RANGE_REPLY)])
    kv, invoker = client(reply)
    won = await kv.txn().when(Key("k").create_revision == 0).then(op.put("k", "me")).otherwise(op.get("k")).commit()
    assert won == TxnResult(False, HEADER, (FOUND,))
    [call] = invoker.calls
    assert call.method is methods.TXN
    assert call.request == pb.TxnRequest(
        compare=[pb.Compare(target=pb.CompareCompareTarget.CREATE, key=b"k", create_revision=0)],
        success=[pb.RequestOp(request_put=pb.PutRequest(key=b"k", value=b"me"))],
        failure=[pb.RequestOp(request_range=pb.RangeRequest(key=b"k"))],
    )
    assert call.options["repeatable"] is None
    assert call.options["needs_leader"] is True


@pytest.mark.anyio
async def test_a_txn_that_only_reads_is_repeatable() -> None:
    reply = pb.TxnResponse(header=WIRE_HEADER, succeeded=True, responses=[pb.ResponseOp(response_range=RANGE_REPLY)])
    kv, invoker = client(reply)
    await kv.txn().then(op.get("k")).otherwise(op.txn(then=[op.range(prefix="p")])).commit()
    assert invoker.calls[0].options["repeatable"] is True


@pytest.mark.anyio
async def test_comparisons_alone_are_judged_on_the_newest_state_and_return_nothing_else() -> None:
    reply = pb.TxnResponse(header=WIRE_HEADER, succeeded=True, responses=[pb.ResponseOp(response_range=RANGE_REPLY)])
    kv, invoker = client(reply)
    assert await kv.txn().when(Key("k").exists).commit() == TxnResult(True, HEADER)
    [call] = invoker.calls
    assert isinstance(call.request, pb.TxnRequest)
    count = pb.RequestOp(request_range=pb.RangeRequest(key=b"k", count_only=True))
    assert (call.request.success, call.request.failure) == ([count], [count])
    assert (call.options["repeatable"], call.options["needs_leader"]) == (True, True)


Use = Callable[[KV, dict[str, Any]], Awaitable[object]]

CALLS: dict[str, tuple[Use, pb.Message]] = {
    "get": (lambda kv, options: kv.get("k", **options), RANGE_REPLY),
    "range": (lambda kv, options: kv.range("k", **options), RANGE_REPLY),
    "scan": (lambda kv, options: anext(kv.scan("k", **options)), RANGE_REPLY),
    "put": (lambda kv, options: kv.put("k", "v", **options), pb.PutResponse()),
    "delete": (lambda kv, options: kv.delete("k", **options), pb.DeleteRangeResponse()),
    "txn": (lambda kv, options: kv.txn().commit(**options), pb.TxnResponse()),
    "compact": (lambda kv, options: kv.compact(1, **options), pb.CompactionResponse()),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", CALLS)
async def test_every_call_hands_timeout_and_retry_on(name: str) -> None:
    use, reply = CALLS[name]
    kv, invoker = client(reply, reply)
    await use(kv, {})
    await use(kv, {"timeout": 1.5, "retry": "always"})
    said = [(call.options["timeout"], call.options["retry"]) for call in invoker.calls]
    assert said == [(UNSET, None), (1.5, "always")]


@pytest.mark.anyio
@pytest.mark.parametrize("name", CALLS)
async def test_every_call_raises_what_the_invoker_raises(name: str) -> None:
    error = NoSpaceError()
    kv, _ = client(error)
    with pytest.raises(NoSpaceError) as caught:
        await CALLS[name][0](kv, {})
    assert caught.value is error


@pytest.mark.anyio
async def test_what_cannot_be_right_is_refused_before_anything_is_sent() -> None:
    kv, invoker = client()
    with pytest.raises(EmptyKeyError):
        await kv.get("")
    with pytest.raises(InvalidRequestError, match="revision must not be negative"):
        await kv.get("k", revision=-1)
    with pytest.raises(InvalidRequestError, match="got none"):
        await kv.range()
    with pytest.raises(InvalidRequestError, match="limit must not be negative"):
        await kv.range("k", limit=-1)
    with pytest.raises(ValueProvidedError):
        await kv.put("k", "v", ignore_value=True)  # type: ignore[call-overload]
    with pytest.raises(LeaseProvidedError):
        await kv.put("k", "v", lease=1, ignore_lease=True)
    with pytest.raises(InvalidRequestError, match="value is missing"):
        await kv.put("k")  # type: ignore[call-overload]
    with pytest.raises(InvalidRequestError, match="write all_keys=True"):
        await kv.delete(prefix="")
    with pytest.raises(InvalidRequestError, match="revision must be between 1 and"):
        await kv.compact(0)
    with pytest.raises(InvalidRequestError, match="page_size must be between 1 and"):
        kv.scan(prefix="p", page_size=0)
    with pytest.raises(InvalidRequestError, match="got key and prefix="):
        kv.scan("k", prefix="p")
    assert invoker.calls == []
