"""services/naming.py: naming.update: one txn of all changes, checked before it is sent."""

from typing import Any

import pytest

from etcd_aio import Header, InvalidRequestError, TxnResult, op
from etcd_aio.services import NewEndpoint, ServiceEndpoint, naming

pytestmark = pytest.mark.anyio


class FakeStore:
    backend = None

    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def do(self, operation: Any, *, timeout: Any) -> TxnResult:
        self.sent.append(operation)
        return TxnResult(True, Header(revision=7))


async def update(store: FakeStore, **changes: Any) -> TxnResult:
    return await naming.update(store, "svc", **changes)  # type: ignore[arg-type]


async def test_all_changes_are_one_txn() -> None:
    store = FakeStore()
    resolved = ServiceEndpoint(b"svc/old", "c:1")
    result = await update(
        store,
        add=["a:1", NewEndpoint("b:1", {"zone": "b"}, lease=7, name="b")],
        remove=["d:1", resolved],
    )
    assert result.revision == 7
    assert store.sent == [
        op.txn(
            then=[
                op.put("svc/a:1", b'{"Op":0,"Addr":"a:1","Metadata":null}'),
                op.put("svc/b", b'{"Op":0,"Addr":"b:1","Metadata":{"zone":"b"}}', lease=7),
                op.delete("svc/d:1"),
                op.delete("svc/old"),
            ]
        )
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"add": ["a:1", "a:1"]},
        {"add": ["a:1"], "remove": ["a:1"]},
        {"remove": [ServiceEndpoint(b"svc_other/a:1", "a:1")]},
        {"add": [""]},
    ],
)
async def test_what_cannot_be_meant_is_refused(changes: dict[str, Any]) -> None:
    store = FakeStore()
    with pytest.raises(InvalidRequestError):
        await update(store, **changes)
    assert not store.sent


@pytest.mark.parametrize("changes", [{"add": "a:1"}, {"remove": "a:1"}, {"add": [7]}, {"remove": [b"a:1"]}])
async def test_wrong_types_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        await update(FakeStore(), **changes)
