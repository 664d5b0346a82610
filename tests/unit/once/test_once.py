"""once/once.py, once/writes.py, once/settle.py: ExactlyOnce: what its txns pass on, and a close that is cancelled. The
rest is in the integration tests.
"""

import asyncio

import pytest

from etcd_aio import Client, Header, PutResult, TxnResult, op
from etcd_aio.base.call_options import RetryMode, Timeout
from etcd_aio.errors import OutcomeUnknownError
from etcd_aio.fake import FakeEtcd
from etcd_aio.once import ExactlyOnce
from etcd_aio.once.guarded import WriteAnswer
from etcd_aio.once.write_verdicts import Branch
from etcd_aio.once.writes import WriteRequest


@pytest.mark.anyio
async def test_a_txn_that_only_reads_is_sent_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client("127.0.0.1:1")
    sent: list[tuple[op.TxnOp, Timeout, RetryMode | None]] = []

    async def do(operation: op.TxnOp, *, timeout: Timeout, retry: RetryMode | None) -> TxnResult:
        sent.append((operation, timeout, retry))
        return TxnResult(True, Header(8))

    monkeypatch.setattr(client, "do", do)
    once = ExactlyOnce(client)
    await once.txn().then(op.get("k")).commit(timeout=3.0, retry="never")
    assert sent == [(op.txn(then=[op.get("k")]), 3.0, "never")]


@pytest.mark.anyio
async def test_a_txn_makes_one_attempt_if_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[RetryMode] = []

    async def run(request: WriteRequest) -> WriteAnswer:
        wanted.append(request.retry)
        return WriteAnswer(Branch.THEN, Header(8), (PutResult(Header(8)),))

    async with ExactlyOnce(Client("127.0.0.1:1")) as once:
        monkeypatch.setattr(once._writes, "run", run)
        txn = once.txn().then(op.put("k", "v"))
        await txn.commit(retry="never")
        await txn.commit()
    assert wanted == ["never", "always"]


@pytest.mark.anyio
async def test_a_close_that_is_cancelled_stops_the_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    once = ExactlyOnce(Client("127.0.0.1:1"))
    stopped: list[bool] = []
    monkeypatch.setattr(once._pool, "close", asyncio.Event().wait)
    monkeypatch.setattr(once._settler, "stop", lambda: stopped.append(True))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await once.aclose()
    assert stopped == [True]


@pytest.mark.anyio
@pytest.mark.virtual_time
async def test_a_settling_without_an_answer_is_tried_again() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, client.exactly_once() as once:
        await once.put("k", "1")
        with fake.fault("KV/Txn", hang=True, times=3) as fault:
            with pytest.raises(OutcomeUnknownError) as caught:
                await once.put("k", "2", timeout=1.0)
            await asyncio.sleep(100.0)
            assert fault.hits == 3, "the write, and two attempts to settle it"
        assert once.statistics().unsettled == 0
        assert (await once.settle(caught.value)).applied
        assert fake.keys()[b"k"] == b"2"
