"""concurrency/fenced.py: what it passes on to the writer beneath. The rest is in the integration tests."""

from typing import Any

import pytest

from etcd_aio import Header, Key, Txn, TxnResult, op
from etcd_aio.base.call_options import RetryMode, Timeout
from etcd_aio.concurrency.fenced import FencedWriter

pytestmark = pytest.mark.anyio


class FakeHeld:
    """A lock that is held."""

    key = b"a/1"
    revision = 7
    conditions = staticmethod(lambda: (Key(b"a/1").create_revision == 7, Key(b"a/1").lease == 1))
    is_over = False
    is_lost = False


class FakeWriter:
    """Applies every txn, and notes how it was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Timeout, RetryMode | None]] = []

    def txn(self) -> Txn:
        return Txn(self.do)

    async def do(self, operation: op.TxnOp, *, timeout: Timeout, retry: RetryMode | None) -> TxnResult:
        self.sent.append((timeout, retry))
        responses = tuple(TxnResult(True, Header(8)) for _ in operation.then)
        return TxnResult(True, Header(8), responses, operation.then)


@pytest.mark.parametrize("when", [(), (Key("k").missing,)])
async def test_a_txn_keeps_its_timeout_and_its_retry_mode(when: tuple[Any, ...]) -> None:
    writer = FakeWriter()
    txn = FencedWriter(writer, writer, FakeHeld()).txn()  # type: ignore[arg-type] # as much of them as it needs
    await txn.when(*when).then(op.txn(then=[op.put("k", "v")])).commit(timeout=3.0, retry="never")
    assert writer.sent == [(3.0, "never")]


async def test_a_write_is_sent_safely_whatever_the_client_does_by_default() -> None:
    """A refusal of a copy would say nothing of the copies before it."""
    writer = FakeWriter()
    txn = FencedWriter(writer, writer, FakeHeld()).txn()  # type: ignore[arg-type] # as much of them as it needs
    await txn.when(Key("k").missing).then(op.txn(then=[op.put("k", "v")])).commit()
    assert [retry for _, retry in writer.sent] == ["safe"]
