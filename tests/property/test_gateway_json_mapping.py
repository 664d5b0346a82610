"""The gateway's JSON mapping: protobuf's canonical one, both ways, for any message of any RPC."""

import base64
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import betterproto2 as bp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import methods, pb
from etcd_aio.codec import decode, encode, fields_of, message_class_of
from etcd_aio.errors import AttemptFailure, Delivery, MalformedReplyError, StatusCode
from etcd_aio.methods import AnyMethod
from etcd_aio.transport.gateway.json_mapping import (
    PATHS,
    MappingError,
    _names,
    etcd_route,
    from_json,
    json_name,
    to_dict,
)
from etcd_aio.transport.gateway.replies import refusal, reply_of, streamed
from tests.property.test_codec import messages
from tests.support.tiers import nightly_examples

PROTO = Path(__file__).parent.parent.parent / "proto"
REPLIES = sorted({message_class_of(method.reply) for method in PATHS}, key=lambda found: found.__name__)
REQUESTS = sorted({method.request for method in PATHS}, key=lambda found: found.__name__)
_FIELD = re.compile(r"^\s*(?:repeated\s+|optional\s+)?[\w.]+\s+(\w+)\s*=\s*(\d+)\s*[;\[]")


def proto_names() -> dict[str, dict[int, str]]:
    """By message and number, the names of all fields in the .proto files."""
    found: dict[str, dict[int, str]] = {}
    for file in ("kv", "auth", "rpc"):
        open_blocks: list[tuple[str, str]] = []
        for line in re.sub(r"//.*", "", (PROTO / f"{file}.proto").read_text()).splitlines():
            begins = re.match(r"\s*(message|enum|oneof|service|rpc)\s+(\w+)", line)
            field = _FIELD.match(line)
            if field is not None and open_blocks and open_blocks[-1][0] in ("message", "oneof"):
                name = "".join(name for kind, name in open_blocks if kind == "message")
                found.setdefault(name, {})[int(field[2])] = field[1]
            for char in line:
                if char == "{":
                    open_blocks.append((begins[1], begins[2]) if begins else ("", ""))
                elif char == "}":
                    open_blocks.pop()
    return found


NAMES = proto_names()


def _proto_name(message_class: type[pb.Message]) -> str:
    return message_class.__name__.replace("HashKv", "HashKV")


def as_server(message: pb.Message, *, json_names: bool = False, numbers: bool = False) -> dict[str, Any]:
    """The JSON of a message, as a server writes it: with the names of the .proto file, which betterproto2 has lost."""
    written: dict[str, Any] = {}
    for number, field in fields_of(type(message)).items():
        value = getattr(message, field.name)
        if value is None or (not value and not field.may_be_none):
            continue
        name = NAMES[_proto_name(type(message))][number]
        if json_names:
            name = re.sub(r"_(\w)", lambda found: found[1].upper(), name)

        def one(item: Any, field: Any = field) -> Any:
            if isinstance(item, pb.Message):
                return as_server(item, json_names=json_names, numbers=numbers)
            if isinstance(item, bytes):
                return base64.b64encode(item).decode()
            if isinstance(item, bp.Enum):
                return int(item) if numbers or not item.name else item.name
            if field.proto_type in ("int64", "uint64") and not numbers:
                return str(item)
            return item

        written[name] = [one(item) for item in value] if field.repeated else one(value)
    return written


def names_in(message_class: type[pb.Message], seen: set[type[pb.Message]]) -> None:
    """Compare the names of a request, and of all messages in it."""
    if message_class in seen:
        return
    seen.add(message_class)
    for number, field in fields_of(message_class).items():
        assert json_name(field) == NAMES[_proto_name(message_class)][number], f"{message_class.__name__}.{field.name}"
        if field.message_class is not None:
            names_in(field.message_class, seen)


def test_requests_have_the_names_of_the_proto_files() -> None:
    seen: set[type[pb.Message]] = set()
    for request in REQUESTS:
        names_in(request, seen)
    assert pb.TxnRequest in seen
    assert pb.AuthUserAddRequest in seen


def test_every_rpc_but_one_has_a_path() -> None:
    assert set(methods.ALL) - set(PATHS) == {methods.RANGE_STREAM}
    assert len(set(PATHS.values())) == len(PATHS)
    assert etcd_route(methods.RANGE_STREAM.path) is None


@nightly_examples(10_000)
@given(message=st.sampled_from(REPLIES).flatmap(messages), json_names=st.booleans(), numbers=st.booleans())
def test_a_reply_is_read_however_a_server_writes_it(message: pb.Message, json_names: bool, numbers: bool) -> None:
    text = json.dumps(as_server(message, json_names=json_names, numbers=numbers))
    assert from_json(type(message), json.loads(text)) == encode(message)


@nightly_examples(10_000)
@given(message=st.sampled_from(REQUESTS).flatmap(messages))
def test_a_request_is_protobufs_canonical_json(message: pb.Message) -> None:
    written = json.loads(json.dumps(to_dict(message)))
    assert from_json(type(message), written) == encode(message)
    assert written == as_server_with_numbers_of_enums(message)


def as_server_with_numbers_of_enums(message: pb.Message) -> Any:
    def plain(found: Any, like: Any) -> Any:
        if isinstance(found, dict):
            return {name: plain(value, like[name]) for name, value in found.items()}
        if isinstance(found, list):
            return [plain(value, other) for value, other in zip(found, like, strict=True)]
        return like if isinstance(like, int) and isinstance(found, str) and not found.lstrip("-").isdigit() else found

    words = as_server(message)
    return plain(words, as_server(message, numbers=True))


@given(message=messages(pb.RangeResponse) | messages(pb.TxnResponse) | messages(pb.WatchResponse))
def test_betterproto_reads_the_same(message: pb.Message) -> None:
    read = type(message).from_dict(as_server(message, json_names=True))
    assert encode(read) == from_json(type(message), as_server(message))


@pytest.mark.parametrize("number", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_numbers_of_every_size(number: int) -> None:
    message = pb.KeyValue(key=b"", version=number)
    assert decode(pb.KeyValue, from_json(pb.KeyValue, as_server(message))) == message
    assert to_dict(message) == ({"version": str(number)} if number else {})


def test_the_largest_unsigned_number() -> None:
    message = pb.ResponseHeader(cluster_id=2**64 - 1)
    assert decode(pb.ResponseHeader, from_json(pb.ResponseHeader, as_server(message))) == message


def test_what_is_set_to_its_default_in_a_oneof_is_written() -> None:
    compare = pb.Compare(key=b"k", version=0)
    assert to_dict(compare) == {"key": "aw==", "version": "0"}
    assert to_dict(pb.WatchRequest(progress_request=pb.WatchProgressRequest())) == {"progress_request": {}}


def test_unknown_fields_and_null_are_passed_over() -> None:
    found = {"header": None, "newer": {"deep": [1]}, "count": "3", "more": True}
    assert decode(pb.RangeResponse, from_json(pb.RangeResponse, found)) == pb.RangeResponse(count=3, more=True)


def test_bytes_of_the_other_alphabet_are_read() -> None:
    assert from_json(pb.KeyValue, {"key": "-_8"}) == encode(pb.KeyValue(key=b"\xfb\xff"))


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        "text",
        {"count": "x"},
        {"count": 1.5},
        {"count": str(2**63)},
        {"count": True},
        {"more": 1},
        {"more": "true"},
        {"kvs": {}},
        {"kvs": [1]},
        {"kvs": [None]},
        {"kvs": [{"key": "?"}]},
        {"kvs": [{"key": 1}]},
        {"header": {"cluster_id": "-1"}},
    ],
)
def test_what_does_not_fit_is_refused_without_being_shown(found: object) -> None:
    with pytest.raises(MappingError) as caught:
        from_json(pb.RangeResponse, found)
    assert "?" not in str(caught.value)


ROUTES = [route for path in {method.path: 0 for method in PATHS} if (route := etcd_route(path)) is not None]
JSON_NAMES = st.sampled_from(
    sorted({name for names in NAMES.values() for name in names.values()} | {"result", "error", "code", "message"})
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.integers().map(str),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(JSON_NAMES | st.text(max_size=5), inner, max_size=5),
    max_leaves=30,
)


def check_reads_or_refuses(text: bytes) -> None:
    """Every reader of answers returns a message that the codec takes or refuses in its own way, or a failure."""
    for route, method in zip(ROUTES, PATHS, strict=True):
        for read in (
            lambda route=route: reply_of(200, {}, text, route),
            lambda route=route: streamed(text, route.to_wire),
            lambda: refusal(500, {}, text),
        ):
            with suppress(AttemptFailure, MalformedReplyError):
                found = read()
                if isinstance(found, bytes):
                    decode(message_class_of(method.reply), found)


@nightly_examples(2_000)
@given(found=ANY_JSON)
def test_any_json_is_read_or_refused(found: object) -> None:
    check_reads_or_refuses(json.dumps(found).encode())


@pytest.mark.parametrize("depth", [1, 50, 99, 100, 150, 250, 310, 900, 20_000])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('{"responses":[{"response_txn":', "}]}"),
        ('{"result":', "}"),
        ('{"error":', "}"),
        ('{"kvs":[', "]}"),
        ("[", "]"),
    ],
)
def test_json_of_any_depth_is_read_or_refused(depth: int, opening: str, closing: str) -> None:
    begin = '{"header":{"revision":"1"},"responses":[{"response_txn":' if "txn" in opening else ""
    text = begin + opening * depth + "{}" + closing * depth + ("}]}" if begin else "")
    check_reads_or_refuses(text.encode())
    check_reads_or_refuses(f'{{"result":{text}}}'.encode())


@pytest.mark.parametrize(
    "text",
    [b"{}", b"[]", b"null", b'{"kvs":[]}', b'{"header":{}}', b'{"error":"etcdserver: no leader","code":14}'],
)
@pytest.mark.parametrize("method", [methods.RANGE, methods.PUT, methods.TXN, methods.LEASE_GRANT, methods.MEMBER_LIST])
def test_a_reply_without_a_header_is_none_of_etcd(method: AnyMethod, text: bytes) -> None:
    route = etcd_route(method.path)
    assert route is not None
    with pytest.raises(AttemptFailure) as caught:
        reply_of(200, {}, text, route)
    assert (caught.value.code, caught.value.delivery) == (StatusCode.INTERNAL, Delivery.UNKNOWN)


def test_replies_that_etcd_leaves_empty_are_read() -> None:
    for method in (methods.DEFRAGMENT, methods.MOVE_LEADER):
        route = etcd_route(method.path)
        assert route is not None
        assert reply_of(200, {}, b"{}", route) == b""


def test_names_that_are_not_known_are_not_kept_if_they_are_long() -> None:
    names = _names(pb.RangeResponse)
    before = len(names)
    found = {"x" * 10_000: 1, "k" + "_" * 10_000 + "vs": [{"key": "YQ=="}]}
    assert decode(pb.RangeResponse, from_json(pb.RangeResponse, found)).kvs[0].key == b"a"
    assert len(names) == before
    from_json(pb.RangeResponse, {f"x{number}": 1 for number in range(5000)})
    assert len(names) <= 1024


def test_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(MappingError):
        from_json(pb.StatusResponse, json.loads('{"version": "\\ud800"}'))
