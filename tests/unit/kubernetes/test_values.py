"""kubernetes/values.py, kubernetes/objects.py, kubernetes/messages.py, kubernetes/special.py,
kubernetes/wire.py: what the API server stores is the JSON that the code of Kubernetes makes of it, and what cannot be
read is told.

`objects.jsonl.gz` is made by `go run . objects` in `proto/kubernetes`, by the code of k8s.io/api: for each kind an
empty object, one with a third of its fields, and one with all, as it is stored and as JSON.
"""

import base64
import gzip
import json
import random
from functools import cache
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.kubernetes import StoredObject, decode_value
from etcd_aio.kubernetes import messages as table

OBJECTS = Path(__file__).with_name("objects.jsonl.gz")
GROUPS = {
    *("v1", "apps/v1", "batch/v1", "coordination.k8s.io/v1", "discovery.k8s.io/v1", "rbac.authorization.k8s.io/v1"),
    *("networking.k8s.io/v1", "storage.k8s.io/v1", "policy/v1", "apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1"),
    *("autoscaling/v2", "events.k8s.io/v1", "certificates.k8s.io/v1", "scheduling.k8s.io/v1", "node.k8s.io/v1"),
}


@cache
def rows() -> list[dict[str, Any]]:
    with gzip.open(OBJECTS, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def row(kind: str, size: str = "full", api_version: str = "v1") -> dict[str, Any]:
    (found,) = (one for one in rows() if (one["apiVersion"], one["kind"], one["size"]) == (api_version, kind, size))
    return found


def stored(kind: str, size: str = "full", api_version: str = "v1") -> bytes:
    return base64.b64decode(row(kind, size, api_version)["stored"])


def sized(number: int, content: bytes) -> bytes:
    """A field with a length."""
    made, size = bytes((number << 3 | 2,)), len(content)
    while size > 127:
        made += bytes((size & 127 | 128,))
        size >>= 7
    return made + bytes((size,)) + content


def envelope(api_version: str, kind: str, raw: bytes, more: bytes = b"") -> bytes:
    names = sized(1, api_version.encode()) + sized(2, kind.encode())
    return b"k8s\0" + sized(1, names) + sized(2, raw) + more


# Objects.


def test_the_kinds_are_those_that_clusters_have() -> None:
    versions = {one["apiVersion"] for one in rows()}
    assert versions >= GROUPS
    assert len(rows()) > 300
    assert {one["kind"] for one in rows()} >= {"Pod", "Secret", "ConfigMap", "Deployment", "CronJob", "Lease", "Event"}


@pytest.mark.parametrize("size", ["empty", "sparse", "full"])
def test_every_object_is_the_json_of_kubernetes(size: str) -> None:
    for one in rows():
        if one["size"] != size:
            continue
        found = decode_value(base64.b64decode(one["stored"]))
        expected = json.loads(one["json"])
        assert found.object == expected, (one["apiVersion"], one["kind"])
        assert not found.problems
        names = expected["metadata"].get("namespace", ""), expected["metadata"].get("name", "")
        assert found == StoredObject("protobuf", one["apiVersion"], one["kind"], *names, found.object)


def test_the_order_of_the_fields_is_that_of_kubernetes() -> None:
    def order(value: Any) -> Any:
        if isinstance(value, dict):
            return [(name, order(inner)) for name, inner in value.items()]
        return [order(inner) for inner in value] if isinstance(value, list) else None

    for kind in ("Pod", "Secret", "Service"):
        expected = json.loads(row(kind)["json"])
        head = {name: expected.pop(name) for name in ("apiVersion", "kind")}
        assert order(decode_value(stored(kind)).object) == order({**head, **expected})


def test_the_title() -> None:
    metadata = sized(1, b"web") + sized(3, b"default")
    assert decode_value(envelope("apps/v1", "Deployment", sized(1, metadata))).title == "apps/v1 Deployment default/web"
    assert decode_value(envelope("v1", "Node", sized(1, sized(1, b"n1")))).title == "v1 Node n1"


def test_the_table_refers_to_what_it_has() -> None:
    kinds, messages = table._table()
    assert set(kinds.values()) <= set(messages)
    scalars = {"string", "int", "bool", "double", "bytes", "time", "microtime", "duration", "quantity", "intorstring"}
    scalars |= {"strings", "raw", "propsorarray", "propsorbool", "propsorstrings"}
    used = {field.type for message in messages for field in table.fields(message)}
    assert used - set(messages) == scalars & used
    assert all(len({field.number for field in table.fields(name)}) == len(table.fields(name)) for name in messages)


# Special forms.


def timed(seconds: int, nanoseconds: int = 0) -> Any:
    """The time of an event, with microseconds."""
    data = pack("<B", 8) + varint(seconds) + (b"\x10" + varint(nanoseconds) if nanoseconds else b"")
    found = decode_value(envelope("coordination.k8s.io/v1", "Lease", sized(2, sized(3, data))))
    assert found.object is not None
    return found.object["spec"].get("acquireTime")


def varint(number: int) -> bytes:
    number %= 2**64
    made = b""
    while number > 127:
        made += bytes((number & 127 | 128,))
        number >>= 7
    return made + bytes((number,))


@pytest.mark.parametrize(
    ("seconds", "nanoseconds", "expected"),
    [
        (0, 0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000, 123_456_789, "2023-11-14T22:13:20.123456Z"),
        (-1, 0, "1969-12-31T23:59:59.000000Z"),
        (-62135596800, 0, None),
        (253402300799, 0, "9999-12-31T23:59:59.000000Z"),
        (253402300800, 0, "253402300800 seconds after 1970"),
        (2**63 - 1, 0, "9223372036854775807 seconds after 1970"),
    ],
)
def test_times(seconds: int, nanoseconds: int, expected: str | None) -> None:
    assert timed(seconds, nanoseconds) == expected


# What cannot be read.


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"k8s:enc:aescbc:v1:key1:\x00\x01\x02", "provider aescbc (v1), key 'key1': 3 bytes"),
        (b"k8s:enc:secretbox:v1:k2:" + bytes(40), "provider secretbox (v1), key 'k2': 40 bytes"),
        (b"k8s:enc:kms:v2:vault:" + bytes(9), "provider kms (v2), plugin 'vault': 9 bytes"),
        (b"k8s:enc:", "a form that is not known"),
    ],
)
def test_encrypted_values_name_the_provider(value: bytes, says: str) -> None:
    found = decode_value(value)
    assert (found.encoding, found.object) == ("encrypted", None)
    assert says in found.problems[0]
    assert "\\x" not in found.problems[0]


def test_of_an_unknown_kind_the_metadata_is_read_and_the_rest_is_told() -> None:
    raw = sized(1, sized(1, b"web") + sized(3, b"default")) + sized(2, b"spec, of any form")
    found = decode_value(envelope("example.com/v9", "Widget", raw))
    assert found.object == {
        "apiVersion": "example.com/v9",
        "kind": "Widget",
        "metadata": {"name": "web", "namespace": "default"},
    }
    assert found.title == "example.com/v9 Widget default/web"
    assert found.problems == ("the kind is not known", "only the metadata is decoded, and 21 bytes are not")
    broken = decode_value(envelope("example.com/v9", "Widget", b"\xff"))
    assert (broken.object, broken.kind) == (None, "Widget")
    assert broken.problems[-1] == "1 bytes are not decoded"


def test_fields_of_later_releases_are_told() -> None:
    value = envelope("v1", "ConfigMap", sized(1, sized(1, b"c") + sized(15, b"abcd")) + b"\xd8\x06\x01")
    found = decode_value(value)
    assert found.object == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    assert [problem.partition(": ")[2] for problem in found.problems] == [
        "metadata field 15 (4 bytes)",
        "core.ConfigMap field 107 (0 bytes)",
    ]
    many = decode_value(
        envelope("v1", "ConfigMap", b"".join(bytes((n << 3 & 127 | 128, n >> 4)) + b"\0" for n in range(20, 60)))
    )
    assert len(many.problems) == 21
    assert many.problems[-1].endswith("20 more fields")


def test_json_is_shown_as_it_is() -> None:
    found = decode_value(
        b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"a":[1,null]}}\n'
    )
    assert (found.encoding, found.title, found.problems) == ("json", "example.com/v1 Widget w", ())
    assert found.object is not None
    assert found.object["spec"] == {"a": [1, None]}
    assert decode_value(b'{"metadata": 1, "kind": []}') == StoredObject("json", object={"metadata": 1, "kind": []})


@pytest.mark.parametrize(
    "value", [b"", b"1", b"plain text", b"{", b'{"a":NaN}', b'{"a":1e400}', b'{"a":"\\ud800"}', b"[" * 9, b"k8s"]
)
def test_other_values_are_none_of_kubernetes(value: bytes) -> None:
    found = decode_value(value)
    assert (found.encoding, found.object, len(found.problems)) == ("unknown", None, 1)


def test_an_envelope_of_another_type_is_told() -> None:
    found = decode_value(envelope("v1", "ConfigMap", b"{}", sized(4, b"application/json")))
    assert found.problems == ("2 bytes are not decoded: their type is 'application/json', their encoding ''",)


# Hostile values.


def nested_schema(depth: int) -> bytes:
    data = b""
    for _ in range(depth):
        data = bytes((0xE2, 0x01)) + varint(len(data)) + data
    return data


def test_depth_is_bounded() -> None:
    def crd(depth: int) -> StoredObject:
        version = sized(4, sized(1, nested_schema(depth)))
        return decode_value(
            envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", sized(2, sized(7, version)))
        )

    assert not crd(50).problems
    assert "nested too deep" in crd(2000).problems[0]


@pytest.mark.parametrize(("head", "tail"), [(b'{"a":', b"}"), (b'{"a":[', b"]}")])
def test_the_depth_of_json_is_bounded_by_a_number_and_not_by_the_stack(head: bytes, tail: bytes) -> None:
    def nested(depth: int) -> StoredObject:
        count = depth // len(tail)
        return decode_value(head * count + b"1" + tail * count)

    json.dumps(nested(200).object, indent=2)
    for depth in (202, 900, 980, 2000, 200_000):  # some of them are more than the interpreter takes
        assert nested(depth).object is None, depth


def test_the_number_of_messages_is_bounded() -> None:
    containers = sized(2, b"") * 400_000
    found = decode_value(envelope("v1", "Pod", sized(2, containers)))
    assert "too many messages" in found.problems[0]


@given(st.binary(max_size=300))
def test_any_bytes_give_an_answer(data: bytes) -> None:
    for head in (b"", b"k8s\0", b"{", b"k8s:enc:", b"\xd9\xd9\xf7"):
        decode_value(head + data)
    decode_value(envelope("v1", "Pod", data))
    decode_value(envelope("x/v1", "X", data))


@pytest.mark.parametrize("seed", range(5))
def test_flipped_bits_give_an_answer_that_can_be_printed(seed: int) -> None:
    rng = random.Random(seed)
    for one in rng.sample(rows(), 60):
        value = bytearray(base64.b64decode(one["stored"]))
        for _ in range(rng.randint(1, 6)):
            value[rng.randrange(4, len(value))] ^= 1 << rng.randrange(8)
        found = decode_value(bytes(value))
        json.dumps(found.object, allow_nan=False).encode()
        "".join(found.problems).encode()


def test_a_value_that_is_cut_short_is_told() -> None:
    for value in (stored("Job", "empty", "batch/v1"), stored("ConfigMap", "empty"), stored("Pod")):
        ends = range(5, len(value) - 4)  # the last four bytes say that the object is not encoded once more
        for end in ends if len(ends) < 500 else ends[::97]:
            assert decode_value(value[:end]).problems, end
