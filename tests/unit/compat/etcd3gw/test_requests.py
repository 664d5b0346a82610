"""compat/etcd3gw/_json.py, compat/etcd3gw/_operations.py, compat/etcd3gw/_routes.py: the JSON of etcd's gateway."""

from base64 import b64encode
from typing import Any

import pytest

from etcd_aio import Compare, DeleteResult, Header, Key, KeyRange, KeyValue, Op, PutResult, RangeResult, TxnResult, op
from etcd_aio.compat.etcd3gw import _operations
from etcd_aio.compat.etcd3gw._json import Fields, to_json
from etcd_aio.compat.etcd3gw._routes import ROUTES, route_of
from etcd_aio.types import LeaseTimeToLiveResult, Member, MemberListResult, StatusResult

HEADER = Header(1, 2**63, 3, 4)
HEADER_JSON = {"cluster_id": "1", "member_id": f"{2**63}", "revision": "3", "raft_term": "4"}
KV = KeyValue(b"k", b"\xff", 3, 4, 2, 0)
KV_JSON = {"key": "aw==", "value": "/w==", "create_revision": "3", "mod_revision": "4", "version": "2"}


def b64(data: bytes) -> str:
    return b64encode(data).decode()


@pytest.mark.parametrize(
    ("result", "json"),
    [
        (PutResult(HEADER), {"header": HEADER_JSON}),
        (PutResult(Header(revision=5), KV), {"header": {"revision": "5"}, "prev_kv": KV_JSON}),
        (RangeResult(HEADER), {"header": HEADER_JSON}),
        (
            RangeResult(HEADER, (KV,), more=True, count=2),
            {"header": HEADER_JSON, "kvs": [KV_JSON], "more": True, "count": "2"},
        ),
        (DeleteResult(HEADER, 1, (KV,)), {"header": HEADER_JSON, "deleted": "1", "prev_kvs": [KV_JSON]}),
        (TxnResult(False, HEADER), {"header": HEADER_JSON}),
        (
            TxnResult(True, HEADER, (PutResult(HEADER), RangeResult(HEADER), DeleteResult(HEADER))),
            {
                "header": HEADER_JSON,
                "succeeded": True,
                "responses": [
                    {"response_put": {"header": HEADER_JSON}},
                    {"response_range": {"header": HEADER_JSON}},
                    {"response_delete_range": {"header": HEADER_JSON}},
                ],
            },
        ),
        (
            TxnResult(True, HEADER, (TxnResult(True, HEADER),)),
            {
                "header": HEADER_JSON,
                "succeeded": True,
                "responses": [{"response_txn": {"header": HEADER_JSON, "succeeded": True}}],
            },
        ),
        (
            LeaseTimeToLiveResult(HEADER, 7, -1, 10, (b"k",)),
            {"header": HEADER_JSON, "ID": "7", "TTL": "-1", "grantedTTL": "10", "keys": ["aw=="]},
        ),
        (
            MemberListResult(HEADER, (Member(7, "m", ("http://p",), ("http://c",), True),)),
            {
                "header": HEADER_JSON,
                "members": [
                    {
                        "ID": "7",
                        "name": "m",
                        "peerURLs": ["http://p"],
                        "clientURLs": ["http://c"],
                        "isLearner": True,
                    }
                ],
            },
        ),
        (
            StatusResult(HEADER, "3.7.3", 9, db_size_in_use=8, is_learner=True, errors=("no",)),
            {
                "header": HEADER_JSON,
                "version": "3.7.3",
                "dbSize": "9",
                "dbSizeInUse": "8",
                "isLearner": True,
                "errors": ["no"],
            },
        ),
    ],
)
def test_results_are_json_without_defaults(result: object, json: dict[str, Any]) -> None:
    assert to_json(result) == json


def test_what_no_result_has_is_no_json() -> None:
    with pytest.raises(TypeError, match="no JSON for float"):
        to_json(1.5)


@pytest.mark.parametrize(
    ("request_json", "meant"),
    [
        ({"request_put": {"key": "aw==", "value": "dg==", "lease": "7"}}, op.put(b"k", b"v", lease=7)),
        ({"requestPut": {"key": "aw==", "prevKv": True}}, op.put(b"k", b"", prev_kv=True)),
        ({"request_put": {"key": "aw==", "ignore_value": True}}, op.put(b"k", ignore_value=True)),
        ({"request_range": {"key": "aw=="}}, op.RangeOp(KeyRange(b"k"))),
        (
            {"request_range": {"key": "aw==", "range_end": "AA==", "sort_order": "DESCEND", "sort_target": "MOD"}},
            op.range(from_key=b"k", sort_order="descend", sort_by="mod_revision"),
        ),
        (
            {"request_range": {"key": "aw==", "rangeEnd": "bQ==", "sort_order": 1, "sort_target": "4", "limit": "2"}},
            op.range(b"k", range_end=b"m", sort_order="ascend", sort_by="value", limit=2),
        ),
        (
            {"request_range": {"key": "aw==", "minModRevision": 2, "max_create_revision": "9", "keys_only": True}},
            op.range(b"k", min_mod_revision=2, max_create_revision=9, keys_only=True),
        ),
        (
            {"request_delete_range": {"key": "aw==", "range_end": "bQ==", "prev_kv": True}},
            op.delete(b"k", range_end=b"m", prev_kv=True),
        ),
        (
            {"request_txn": {"compare": [{"key": "aw=="}], "success": [{"request_range": {"key": "aw=="}}]}},
            op.txn(when=[Key(b"k").version == 0], then=[op.range(b"k")]),
        ),
    ],
)
def test_operations(request_json: dict[str, Any], meant: Op) -> None:
    assert _operations.txn(Fields({"success": [request_json]})) == op.txn(then=[meant])
    assert _operations.txn(Fields({"failure": [request_json]})) == op.txn(otherwise=[meant])


@pytest.mark.parametrize(
    ("compare", "meant"),
    [
        ({"result": "EQUAL", "target": "CREATE", "create_revision": 0}, Key(b"k").create_revision == 0),
        ({"result": "GREATER", "target": "VERSION", "version": "2"}, Key(b"k").version > 2),
        ({"result": 2, "target": "MOD", "modRevision": 9}, Key(b"k").mod_revision < 9),
        ({"result": "3", "target": 3, "value": b64(b"v")}, Key(b"k").value != b"v"),
        ({"target": "LEASE", "lease": 7}, Key(b"k").lease == 7),
        ({"range_end": "AA==", "target": "VERSION"}, Key(from_key=b"k").version == 0),
        ({"range_end": b64(b"m")}, Key(b"k", range_end=b"m").version == 0),
    ],
)
def test_comparisons(compare: dict[str, Any], meant: Compare) -> None:
    assert _operations.txn(Fields({"compare": [{"key": "aw==", **compare}]})) == op.txn(when=[meant])


@pytest.mark.parametrize("text", ["-_8=", "-_8", "+/8=", "+/8"])
def test_both_alphabets_of_base64_are_taken_with_and_without_padding(text: str) -> None:
    assert Fields({"key": text}).data("key") == b"\xfb\xff"


@pytest.mark.parametrize(
    "request_json",
    [
        {"success": [{"request_move": {}}]},
        {"compare": [{"key": "aw==", "result": "ABOUT"}]},
        {"compare": [{"key": "aw==", "target": 9}]},
        {"success": [{"request_range": {"key": "no base64!"}}]},
        {"success": ["request_range"]},
        {"success": [{"request_range": {"key": "aw==", "limit": "many"}}]},
    ],
)
def test_a_request_that_cannot_be_read_is_an_error(request_json: dict[str, Any]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        _operations.txn(Fields(request_json))


@pytest.mark.parametrize(
    ("url", "route"),
    [
        ("http://localhost:2379/v3/kv/put", "kv/put"),
        ("https://[::1]:2379/v3beta/kv/range", "kv/range"),
        ("http://localhost:2379/v3/kv/lease/timetolive", "lease/timetolive"),
        ("http://localhost:2379/v3/lease/keepalive", "lease/keepalive"),
        ("http://localhost:2379/v3/cluster/member/list", "cluster/member/list"),
    ],
)
def test_a_route_is_the_path_behind_the_version(url: str, route: str) -> None:
    assert route_of(url) == route
    assert route in ROUTES
