"""kv/txn.py: the builder of a txn: it sends its parts as one operation, and refuses parts in a wrong order."""

import warnings

import pytest

from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import ClientUsageError, InvalidRequestError
from etcd_aio.kv import op
from etcd_aio.kv.compare import Key
from etcd_aio.kv.operations import TxnOp
from etcd_aio.kv.txn import Txn
from etcd_aio.types import Header, TxnResult

RESULT = TxnResult(True, Header(revision=7))
FREE = Key("k").missing
PUT = op.put("k", "v")
GET = op.get("k")


class Recorder:
    def __init__(self) -> None:
        self.commits: list[tuple[TxnOp, Timeout, RetryMode | None]] = []

    async def __call__(self, operation: TxnOp, *, timeout: Timeout, retry: RetryMode | None) -> TxnResult:
        self.commits.append((operation, timeout, retry))
        return RESULT


@pytest.mark.anyio
async def test_commit_sends_the_parts_as_one_operation() -> None:
    recorder = Recorder()
    txn = Txn(recorder).when(FREE, Key("l").exists).then(PUT).otherwise(GET, op.delete("d"))
    assert recorder.commits == []
    assert await txn.commit(timeout=3, retry="never") is RESULT
    operation = TxnOp((FREE, Key("l").exists), (PUT,), (GET, op.delete("d")))
    assert recorder.commits == [(operation, 3, "never")]


@pytest.mark.anyio
async def test_the_repr_shows_numbers_and_no_value() -> None:
    txn = Txn(Recorder()).when(FREE, Key("l").exists).then(op.put("k", "secret"))
    assert repr(txn) == "<Txn when=2 then=1 otherwise=0>"
    await txn.commit()


@pytest.mark.anyio
async def test_every_part_may_be_left_out() -> None:
    recorder = Recorder()
    await Txn(recorder).commit()
    await Txn(recorder).when(FREE).commit()
    await Txn(recorder).then(PUT).commit()
    await Txn(recorder).otherwise(GET).commit()
    await Txn(recorder).when().then().otherwise().commit()
    assert [operation for operation, _, _ in recorder.commits] == [
        TxnOp(),
        TxnOp(when=(FREE,)),
        TxnOp(then=(PUT,)),
        TxnOp(otherwise=(GET,)),
        TxnOp(),
    ]
    assert recorder.commits[0][1:] == (UNSET, None)


@pytest.mark.anyio
async def test_a_txn_may_be_committed_again() -> None:
    recorder = Recorder()
    txn = Txn(recorder).when(FREE).then(PUT)
    await txn.commit()
    await txn.commit()
    assert recorder.commits[0] == recorder.commits[1]


def test_each_part_is_given_once() -> None:
    with pytest.raises(InvalidRequestError, match=r"when\(\) is called twice"):
        Txn(Recorder()).when().when(FREE)
    with pytest.raises(InvalidRequestError, match=r"then\(\) is called twice"):
        Txn(Recorder()).then().then(PUT)
    with pytest.raises(InvalidRequestError, match=r"otherwise\(\) is called twice"):
        Txn(Recorder()).otherwise().otherwise(GET)


def test_the_parts_have_an_order() -> None:
    with pytest.raises(InvalidRequestError, match=r"when\(\) comes before then\(\) and otherwise\(\)"):
        Txn(Recorder()).then().when(FREE)
    with pytest.raises(InvalidRequestError, match=r"when\(\) comes before then\(\) and otherwise\(\)"):
        Txn(Recorder()).otherwise().when(FREE)
    with pytest.raises(InvalidRequestError, match=r"then\(\) comes before otherwise\(\)"):
        Txn(Recorder()).otherwise().then(PUT)


def test_a_refused_part_changes_nothing() -> None:
    txn = Txn(Recorder())
    with pytest.raises(TypeError, match=r"when\(\) takes comparisons"):
        txn.when(PUT)  # type: ignore[arg-type]
    txn.when(FREE)


def test_a_part_refuses_items_of_another_kind() -> None:
    with pytest.raises(TypeError, match=r"when\(\) takes comparisons .*, got bool"):
        Txn(Recorder()).when(Key("k") == 0)  # type: ignore[arg-type,comparison-overlap]  # .version is missing
    with pytest.raises(TypeError, match=r"then\(\) takes operations .*, got Compare"):
        Txn(Recorder()).then(FREE)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"otherwise\(\) takes operations .*, got list"):
        Txn(Recorder()).otherwise([GET])  # type: ignore[arg-type]


def test_a_txn_with_operations_that_is_never_committed_gives_a_warning() -> None:
    with pytest.warns(ResourceWarning, match=r"<Txn when=1 then=1 otherwise=2> was never committed"):
        Txn(Recorder()).when(FREE).then(PUT).otherwise(GET, GET)


@pytest.mark.anyio
async def test_a_txn_that_was_committed_or_is_empty_or_was_refused_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await Txn(Recorder()).then(PUT).commit()
        Txn(Recorder()).when(FREE).then()
        with pytest.raises(InvalidRequestError):
            Txn(Recorder()).then(PUT).then(PUT)
        with pytest.raises(InvalidRequestError):
            Txn(Recorder()).then(PUT).when(FREE)
        with pytest.raises(TypeError):
            Txn(Recorder()).then(PUT).otherwise("get")  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_awaiting_the_builder_raises_an_error_that_names_commit() -> None:
    with pytest.raises(ClientUsageError, match=r"write `await client\.txn\(\)\.then\(\.\.\.\)\.commit\(\)`"):
        await Txn(Recorder()).then(PUT)  # type: ignore[misc]
