"""calls/keys.py: each call sends one message by its own method, with its options, and returns its result."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from etcd_aio import UNSET, Client, RetryMode, Timeout, codec, methods, pb
from etcd_aio.backend import ClientBackend
from etcd_aio.base.deadline import deadline_after
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import EmptyKeyError, InvalidRequestError, LeaseProvidedError, NoSpaceError, ValueProvidedError
from etcd_aio.kv import op
from etcd_aio.kv.compare import Key
from etcd_aio.kv.operations import DeleteOp, GetOp, Op, PutOp, RangeOp, TxnOp
from etcd_aio.lease import LeaseKeeper, Leases
from etcd_aio.types import (
    CompactResult,
    DeleteResult,
    Header,
    KeyRange,
    KeyValue,
    Operation,
    PutResult,
    RangeResult,
    TxnResult,
)
from tests.support.backends import shared

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

_R = TypeVar("_R")

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

    def clock(self) -> float:
        return 0.0

    def deadline(self, timeout: Timeout, now: float) -> float:
        return now + 5.0 if timeout is UNSET else deadline_after(timeout, now)

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


def client(*answers: pb.Message | Exception) -> tuple[Client, FakeInvoker]:
    invoker, made = FakeInvoker(*answers), Client()
    made._invoker = cast("Invoker", invoker)  # the call about the history is not one of a store
    made.backend = backend_of(invoker)
    return made, invoker


def backend_of(invoker: FakeInvoker) -> ClientBackend:
    made = shared(clock=invoker.clock)
    return ClientBackend(cast("Invoker", invoker), lambda: Leases(cast("LeaseKeeper", None)), made)


RANGE_REPLY = pb.RangeResponse(header=WIRE_HEADER, kvs=[WIRE_FOUND], more=True, count=3)


@pytest.mark.anyio
async def test_get_returns_the_key_or_none() -> None:
    kv, invoker = client(RANGE_REPLY, pb.RangeResponse(header=WIRE_HEADER))
    assert await kv.get("k", revision=5, keys_only=True) == FOUND
    assert await kv.get("absent") is None
    [first, _] = invoker.calls
    assert first.method is methods.RANGE
    assert first.request == pb.RangeRequest(key=b"k", revision=5, keys_only=True)


@pytest.mark.anyio
async def test_range_sends_every_option_and_returns_the_reply() -> None:
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
async def test_put_sends_every_option_and_returns_the_reply() -> None:
    kv, invoker = client(pb.PutResponse(header=WIRE_HEADER, prev_kv=WIRE_FOUND), pb.PutResponse(header=WIRE_HEADER))
    assert await kv.put("k", "v", lease=9, prev_kv=True, ignore_lease=False) == PutResult(HEADER, FOUND)
    assert await kv.put("k", lease=9, ignore_value=True) == PutResult(HEADER)
    assert [call.method for call in invoker.calls] == [methods.PUT] * 2
    assert [call.request for call in invoker.calls] == [
        pb.PutRequest(key=b"k", value=b"v", lease=9, prev_kv=True),
        pb.PutRequest(key=b"k", lease=9, ignore_value=True),
    ]


@pytest.mark.anyio
async def test_put_if_missing_is_a_txn() -> None:
    put = pb.ResponseOp(response_put=pb.PutResponse(header=pb.ResponseHeader(revision=7)))
    kv, invoker = client(
        pb.TxnResponse(header=WIRE_HEADER, succeeded=True, responses=[put]), pb.TxnResponse(header=WIRE_HEADER)
    )
    assert await kv.put("k", "v", lease=9, if_missing=True) == PutResult(HEADER)
    assert await kv.put("k", "v", if_missing=True) is None
    assert [call.method for call in invoker.calls] == [methods.TXN] * 2
    request = invoker.calls[0].request
    assert isinstance(request, pb.TxnRequest)
    assert codec.encode(request.compare[0]) == Key("k").missing.message()
    assert request.success == [pb.RequestOp(request_put=pb.PutRequest(key=b"k", value=b"v", lease=9))]
    assert request.failure == []


@pytest.mark.anyio
async def test_delete_sends_every_option_and_returns_the_reply() -> None:
    kv, invoker = client(pb.DeleteRangeResponse(header=WIRE_HEADER, deleted=1, prev_kvs=[WIRE_FOUND]))
    assert await kv.delete("k", prev_kv=True) == DeleteResult(HEADER, 1, (FOUND,))
    [call] = invoker.calls
    assert call.method is methods.DELETE_RANGE
    assert call.request == pb.DeleteRangeRequest(key=b"k", prev_kv=True)


@pytest.mark.anyio
async def test_compact_sends_its_options_and_returns_the_header() -> None:
    kv, invoker = client(pb.CompactionResponse(header=WIRE_HEADER))
    assert await kv.compact(5, physical=True) == CompactResult(HEADER)
    [call] = invoker.calls
    assert call.method is methods.COMPACT
    assert call.request == pb.CompactionRequest(revision=5, physical=True)


@pytest.mark.anyio
async def test_a_txn_is_sent_as_built_and_returns_the_responses_of_its_branch() -> None:
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
async def test_comparisons_alone_are_linearizable_and_return_nothing_else() -> None:
    reply = pb.TxnResponse(header=WIRE_HEADER, succeeded=True, responses=[pb.ResponseOp(response_range=RANGE_REPLY)])
    kv, invoker = client(reply)
    assert await kv.txn().when(Key("k").exists).commit() == TxnResult(True, HEADER)
    [call] = invoker.calls
    assert isinstance(call.request, pb.TxnRequest)
    count = pb.RequestOp(request_range=pb.RangeRequest(key=b"k", count_only=True))
    assert (call.request.success, call.request.failure) == ([count], [count])
    assert (call.options["repeatable"], call.options["needs_leader"]) == (True, True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("operation", "reply", "expected"),
    [
        (op.get("k"), RANGE_REPLY, FOUND),
        (op.get("k"), pb.RangeResponse(header=WIRE_HEADER), None),
        (op.range(prefix="k"), RANGE_REPLY, RangeResult(HEADER, (FOUND,), more=True, count=3)),
        (op.put("k", "v"), pb.PutResponse(header=WIRE_HEADER), PutResult(HEADER)),
        (op.delete("k"), pb.DeleteRangeResponse(header=WIRE_HEADER, deleted=1), DeleteResult(HEADER, 1)),
        (op.txn(), pb.TxnResponse(header=WIRE_HEADER, succeeded=True), TxnResult(True, HEADER)),
    ],
)
async def test_do_sends_each_operation_and_returns_its_result(
    operation: Op, reply: pb.Message, expected: object
) -> None:
    kv, invoker = client(reply)
    assert await kv.do(operation, timeout=1.5, retry="never") == expected
    [call] = invoker.calls
    assert call.method is operation.method
    assert call.request == codec.decode(type(call.request), operation.message())
    assert (call.options["timeout"], call.options["retry"]) == (1.5, "never")


@pytest.mark.anyio
async def test_do_lets_one_member_answer_a_serializable_txn() -> None:
    txn = op.txn(then=[op.get("k", serializable=True)], otherwise=[op.range("l", serializable=True)])
    reply = pb.TxnResponse(header=WIRE_HEADER, succeeded=True, responses=[pb.ResponseOp(response_range=RANGE_REPLY)])
    kv, invoker = client(reply)
    assert (await kv.do(txn)).responses == (FOUND,)
    [call] = invoker.calls
    assert (call.options["repeatable"], call.options["needs_leader"]) == (True, False)


@pytest.mark.anyio
async def test_do_repeats_reads_and_no_mutation() -> None:
    found = pb.ResponseOp(response_range=RANGE_REPLY)
    kv, invoker = client(
        RANGE_REPLY, pb.TxnResponse(succeeded=True, responses=[found]), pb.PutResponse(), pb.TxnResponse(succeeded=True)
    )
    await kv.do(op.get("k"))
    await kv.do(op.txn(then=[op.get("k")]))
    await kv.do(op.put("k", "v"))
    await kv.do(op.txn(otherwise=[op.put("k", "v")], when=[Key("k").missing]))
    assert [call.options["repeatable"] for call in invoker.calls] == [True, True, None, None]


@pytest.mark.anyio
async def test_do_takes_operations_only() -> None:
    kv, invoker = client()
    with pytest.raises(TypeError, match=r'do\(\) takes an operation such as op\.put\("k", "v"\), got str'):
        await kv.do("k")  # type: ignore[arg-type]
    assert invoker.calls == []


@pytest.mark.anyio
async def test_a_backend_that_stands_on_another_changes_every_call() -> None:
    class Prefixed:
        """Puts every key below a prefix, as a namespace does."""

        def __init__(self, beneath: ClientBackend) -> None:
            self.beneath = beneath
            self.shared, self.key_space, self.leases = beneath.shared, beneath.key_space, beneath.leases
            self.chunks, self.watch = beneath.chunks, beneath.watch

        async def do(self, operation: Operation[_R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> _R:
            assert isinstance(operation, GetOp | PutOp | RangeOp | DeleteOp | TxnOp)
            if isinstance(operation, GetOp | PutOp):
                moved: Any = replace(operation, key=b"p/" + operation.key)
            elif isinstance(operation, RangeOp | DeleteOp):
                moved = replace(operation, keys=KeyRange(b"p/" + operation.keys.key))
            else:
                moved = replace(operation, then=tuple(op.put(b"p/k", "v") for _ in operation.then))
            result: _R = await self.beneath.do(moved, timeout=timeout, retry=retry)
            return result

    put = pb.PutResponse(header=WIRE_HEADER)
    txn = pb.TxnResponse(succeeded=True, responses=[pb.ResponseOp(response_put=put)])
    invoker = FakeInvoker(RANGE_REPLY, RANGE_REPLY, RANGE_REPLY, put, pb.DeleteRangeResponse(), txn)
    kv = StoreCalls(Prefixed(backend_of(invoker)))
    assert await kv.get("k") == FOUND
    await kv.range("k")
    await anext(kv.scan("k"))
    await kv.put("k", "v")
    await kv.delete("k")
    await kv.txn().then(op.put("k", "v")).commit()
    *calls, last = [call.request for call in invoker.calls]
    assert [call.key for call in calls] == [b"p/k"] * 5  # type: ignore[attr-defined]
    assert last == pb.TxnRequest(success=[pb.RequestOp(request_put=pb.PutRequest(key=b"p/k", value=b"v"))])


Use = Callable[[Client, dict[str, Any]], Awaitable[object]]

CALLS: dict[str, tuple[Use, pb.Message]] = {
    "do": (lambda kv, options: kv.do(op.put("k", "v"), **options), pb.PutResponse()),
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
async def test_every_call_passes_timeout_and_retry_on(name: str) -> None:
    use, reply = CALLS[name]
    kv, invoker = client(reply, reply)
    await use(kv, {})
    await use(kv, {"timeout": 1.5, "retry": "always"})
    options = [(call.options["timeout"], call.options["retry"]) for call in invoker.calls]
    assert options == [(UNSET, None), (1.5, "always")]


@pytest.mark.anyio
@pytest.mark.parametrize("name", CALLS)
async def test_every_call_raises_what_the_invoker_raises(name: str) -> None:
    error = NoSpaceError()
    kv, _ = client(error)
    with pytest.raises(NoSpaceError) as caught:
        await CALLS[name][0](kv, {})
    assert caught.value is error


@pytest.mark.anyio
async def test_invalid_arguments_are_refused_before_anything_is_sent() -> None:
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
    with pytest.raises(InvalidRequestError, match="if_missing=True excludes"):
        await kv.put("k", "v", prev_kv=True, if_missing=True)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="if_missing must be True or False"):
        await kv.put("k", "v", if_missing="no")  # type: ignore[call-overload]
    with pytest.raises(InvalidRequestError, match="past revision"):
        await kv.txn().then(op.get("k", revision=3), op.put("k", "v")).commit()
    with pytest.raises(InvalidRequestError, match="write all_keys=True"):
        await kv.delete(prefix="")
    with pytest.raises(InvalidRequestError, match="revision must be between 1 and"):
        await kv.compact(0)
    with pytest.raises(InvalidRequestError, match="page_size must be between 1 and"):
        kv.scan(prefix="p", page_size=0)
    with pytest.raises(InvalidRequestError, match="got key and prefix="):
        kv.scan("k", prefix="p")
    assert invoker.calls == []
