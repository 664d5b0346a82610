"""types/replayed.py: the result of a part of a txn, as that of a call."""

from typing import Any

import pytest

from etcd_aio import DeleteResult, Header, KeyValue, PutResult, TxnResult, op
from etcd_aio.types import ReplayedDeleteResult, ReplayedPutResult, ReplayedTxnResult, result_within

OUTER = Header(1, 2, 30, 4)
INNER = Header(revision=30)
KV = KeyValue(b"k", b"v", 1, 2, 3)
PUT = op.put("k", "v")
PARTS = [
    (PutResult, ReplayedPutResult, {"prev_kv": KV}),
    (DeleteResult, ReplayedDeleteResult, {"deleted": 1, "prev_kvs": (KV,)}),
    (TxnResult, ReplayedTxnResult, {"succeeded": True, "responses": (PutResult(INNER),), "operations": (PUT,)}),
]


@pytest.mark.parametrize("is_replayed", [False, True])
@pytest.mark.parametrize(("kind", "replayed", "values"), PARTS, ids=lambda value: getattr(value, "__name__", ""))
def test_it_has_the_header_of_the_txn_and_says_whether_it_was_replayed(
    kind: Any, replayed: Any, values: dict[str, object], is_replayed: bool
) -> None:
    expected = replayed if is_replayed else kind
    for part in (kind(header=INNER, **values), replayed(header=INNER, **values)):
        result = result_within(OUTER, part, is_replayed=is_replayed)
        assert type(result) is (expected if type(part) is kind else replayed)
        assert (result.header, result.is_replayed) == (OUTER, type(result) is replayed)
        assert {name: getattr(result, name) for name in values} == values
