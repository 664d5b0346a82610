"""cli/formats.py, cli/results.py, cli/rows.py, cli/style.py, cli/format_fields.py, cli/format_json.py,
cli/format_pretty.py, cli/format_protobuf.py, cli/format_simple.py, cli/format_table.py, cli/messages.py: large numbers
are exact in each, bytes come through, and output that etcdctl does not print is refused.
"""

import json

import pytest

from etcd_aio import DeleteResult, Header, KeyValue, PutResult, RangeResult, TxnResult, pb
from etcd_aio.admin import Member, MemberListResult, Role, RoleListResult, StatusResult, User, UserListResult
from etcd_aio.cli.formats import format_of
from etcd_aio.cli.results import Done, EndpointHealth, HealthReport, Shown, StatusReport
from etcd_aio.cli.style import Style
from etcd_aio.lease import LeaseGrantResult

LARGEST, LARGEST_ID = 2**63 - 1, 2**64 - 1
HEADER = Header(LARGEST_ID, LARGEST_ID - 1, LARGEST, LARGEST_ID - 2)
KV = KeyValue(b"k<", b"\x00\xff\n", LARGEST, LARGEST - 1, LARGEST - 2, LARGEST - 3)
FOUND = RangeResult(HEADER, (KV,), more=True, count=LARGEST)


def shown(result: Shown, word: str, *, is_hex: bool = False) -> str:
    text = format_of(word)(result, Style(is_hex=is_hex))
    assert text is not None
    return text


def test_json_has_the_largest_numbers_digit_by_digit() -> None:
    text = shown(FOUND, "json")
    assert f'"cluster_id":{LARGEST_ID},"member_id":{LARGEST_ID - 1},"revision":{LARGEST}' in text
    assert f'"key":"azw=","create_revision":{LARGEST},"mod_revision":{LARGEST - 1}' in text
    assert text.endswith(f'"more":true,"count":{LARGEST}}}\n')


def test_fields_have_the_largest_numbers_and_quoted_bytes() -> None:
    lines = shown(FOUND, "fields").splitlines()
    assert lines[:2] == [f'"ClusterID" : {LARGEST_ID}', f'"MemberID" : {LARGEST_ID - 1}']
    assert '"Value" : "\\x00\\xff\\n"' in lines
    assert f'"Lease" : {LARGEST - 3}' in lines
    assert f'"Lease" : {LARGEST - 3:016x}' in shown(FOUND, "fields", is_hex=True)


def test_simple_prints_the_bytes_themselves_or_in_hexadecimal() -> None:
    assert shown(FOUND, "simple").encode("utf-8", "surrogateescape") == b"k<\n\x00\xff\n\n"
    assert shown(FOUND, "simple", is_hex=True) == "\\x6b\\x3c\n\\x00\\xff\\x0a\n"


def test_pretty_json_has_ids_as_text_and_revisions_as_numbers() -> None:
    found = json.loads(shown(FOUND, "pretty-json"))
    assert found["header"]["cluster_id"] == "ffffffffffffffff"
    assert found["header"]["revision"] == LARGEST
    assert found["kvs"][0] | {"version": 0} == {
        "key": "k<",
        "value": {"base64": "AP8K"},
        "create_revision": LARGEST,
        "mod_revision": LARGEST - 1,
        "version": 0,
        "lease": f"{LARGEST - 3:x}",
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"max": [1, 12345678901234567890]}', {"max": [1, 12345678901234567890]}),
        (b'"text"', "text"),
        (b"null", None),
        (b"plain", "plain"),
        (b"", ""),
        (b"\xff", {"base64": "/w=="}),
        (b"NaN", "NaN"),
        (b'"\\ud800"', '"\\ud800"'),
        (b"[" * 100_000, "[" * 100_000),
        (b"9" * 5000, "9" * 5000),
    ],
)
def test_pretty_json_parses_values_on_request(value: bytes, expected: object) -> None:
    found = RangeResult(HEADER, (KeyValue(b"1", value, 1, 1, 1),))
    text = format_of("pretty-json")(found, Style(parses_values=True))
    assert text is not None
    text.encode()
    (kv,) = json.loads(text)["kvs"]
    assert (kv["key"], kv["value"]) == ("1", expected)
    (kv,) = json.loads(shown(found, "pretty-json"))["kvs"]
    assert isinstance(kv["value"], str) or value == b"\xff"


def test_pretty_json_has_bytes_in_hexadecimal() -> None:
    (kv,) = json.loads(shown(FOUND, "pretty-json", is_hex=True))["kvs"]
    assert (kv["key"], kv["value"]) == ({"hex": "6b3c"}, {"hex": "00ff0a"})


def test_protobuf_is_the_message() -> None:
    raw = shown(FOUND, "protobuf").encode("utf-8", "surrogateescape")
    message = pb.RangeResponse.parse(raw)
    assert message.header is not None
    assert (message.header.cluster_id, message.count, message.kvs[0].value) == (LARGEST_ID, LARGEST, KV.value)


def test_a_reply_without_a_header_is_empty_as_that_of_move_leader() -> None:
    moved = Done("Leadership transferred", Header(), has_fields=False)
    assert (shown(moved, "protobuf"), shown(moved, "json")) == ("", "{}\n")
    assert shown(Done("revoked", HEADER), "protobuf") != ""


def test_txns_in_txns_come_through_as_messages() -> None:
    inner = TxnResult(
        True, Header(revision=7), (PutResult(Header(revision=7), KV), RangeResult(Header(), (KV,), count=1))
    )
    text = shown(TxnResult(True, HEADER, (inner, DeleteResult(HEADER, 2, (KV,)))), "json")
    first, second = json.loads(text)["responses"]
    put, ranged = first["Response"]["response_txn"]["responses"]
    assert put["Response"]["response_put"]["prev_kv"]["key"] == "azw="
    assert (ranged["Response"]["response_range"]["header"], second["Response"]["response_delete_range"]["deleted"]) == (
        {},
        2,
    )
    raw = shown(TxnResult(True, HEADER, (inner,)), "protobuf").encode("utf-8", "surrogateescape")
    message = pb.TxnResponse.parse(raw).responses[0].response_txn
    assert message is not None
    assert [one.response_put is not None for one in message.responses] == [True, False]


def test_json_escapes_what_go_escapes() -> None:
    text = shown(User(HEADER, "u", ("a<b>&\u2028ä\n",)), "json")
    assert '["a\\u003cb\\u003e\\u0026\\u2028ä\\n"]' in text


def test_members_as_a_table_and_in_hexadecimal() -> None:
    members = MemberListResult(HEADER, (Member(LARGEST_ID, "", ("http://a", "http://b"), (), is_learner=True),))
    assert shown(members, "table").splitlines()[1:4:2] == [
        "│        ID        │  STATUS   │ NAME │    PEER ADDRS     │ CLIENT ADDRS │ IS LEARNER │",
        "│ ffffffffffffffff │ unstarted │      │ http://a,http://b │              │       true │",
    ]
    assert json.loads(shown(members, "json", is_hex=True))["members"][0]["ID"] == "ffffffffffffffff"


def test_a_negative_lease_is_shown_as_go_shows_it() -> None:
    assert shown(LeaseGrantResult(HEADER, -10, 5), "simple") == "lease -00000000000000a granted with TTL(5s)\n"


@pytest.mark.parametrize(
    ("result", "word"),
    [
        (PutResult(HEADER), "table"),
        (FOUND, "table"),
        (User(HEADER, "u"), "fields"),
        (Done("moved", HEADER, has_fields=False), "fields"),
        (LeaseGrantResult(HEADER, 1, 5), "protobuf"),
    ],
)
def test_formats_that_etcdctl_does_not_have_are_none(result: Shown, word: str) -> None:
    assert format_of(word)(result, Style()) is None


EVIL = "a\x1b[31m\r\n\x9b\u2028b"


@pytest.mark.parametrize("word", ["simple", "table", "pretty-json", "json", "fields"])
@pytest.mark.parametrize(
    "result",
    [
        MemberListResult(HEADER, (Member(1, EVIL, (EVIL,), (EVIL,)),)),
        StatusReport(
            (("http://a:1", StatusResult(header=HEADER, version=EVIL, storage_version=EVIL, errors=(EVIL,))),)
        ),
        HealthReport((EndpointHealth(EVIL, is_healthy=False, took="1ms", error=EVIL),)),
        UserListResult(HEADER, (EVIL,)),
        RoleListResult(HEADER, (EVIL,)),
        User(HEADER, EVIL, (EVIL,)),
        Role(HEADER, EVIL, ()),
        Done(f"User {EVIL} created", HEADER),
    ],
    ids=lambda result: type(result).__name__,
)
def test_names_of_the_cluster_do_not_control_the_terminal(result: Shown, word: str) -> None:
    text = format_of(word)(result, Style())
    for line in (text or "").split("\n"):
        assert line.replace("\t", "").isprintable()
    assert "\na" not in (text or "")
