"""ExactlyOnce: what a txn that only reads passes on. The rest is in the integration tests."""

import pytest

from etcd_aio import Client, Header, TxnResult, op
from etcd_aio.call_options import RetryMode, Timeout
from etcd_aio.once import ExactlyOnce


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
