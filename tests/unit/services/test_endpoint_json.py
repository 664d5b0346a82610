"""services/endpoint_json.py: the bytes of Go's writer, and what its reader accepts; the rest is no entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio import InvalidRequestError
from etcd_aio.errors import EmptyKeyError
from etcd_aio.services.endpoint_json import ServiceEndpoint, decode_entry, encode_entry, entry_key, target_prefix

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text('aé<"\\\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner),
    max_leaves=6,
)


def test_an_entry_is_what_go_writes() -> None:
    assert encode_entry("10.0.0.1:80", None) == b'{"Op":0,"Addr":"10.0.0.1:80","Metadata":null}'
    assert encode_entry("a:1", {"zone": "a"}) == b'{"Op":0,"Addr":"a:1","Metadata":{"zone":"a"}}'


@given(st.text(min_size=1).filter(lambda text: text.isprintable()), JSON)
def test_what_is_written_is_read(address: str, metadata: object) -> None:
    assert decode_entry(encode_entry(address, metadata)) == (address, metadata)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "entry"),
    [
        (b'{"Op":0,"Addr":"a:1","Metadata":null}', ("a:1", None)),
        (b' {"addr" : "a:1", "more": 1}', ("a:1", None)),
        (b'{"Op":1,"Addr":"a:1","Metadata":"v2"}', ("a:1", "v2")),
        (b'{"Addr":"a\\u003cb"}', ("a<b", None)),
    ],
)
def test_what_go_reads_is_read(value: bytes, entry: tuple[str, object]) -> None:
    assert decode_entry(value) == entry


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"a:1",
        b"null",
        b"[]",
        b'"a:1"',
        b"{}",
        b'{"Addr":""}',
        b'{"Addr":1}',
        b'{"Addr":"a:1"',
        b'{"Addr":"\\ud800:1"}',
        b"\xff",
        b"[" * 10**5,
    ],
)
def test_anything_else_is_no_entry_and_is_not_repeated(value: bytes) -> None:
    with pytest.raises(ValueError, match="not an entry of a service") as caught:
        decode_entry(value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("metadata", [float("nan"), {1, 2}, b"bytes", {"secret": object()}])
def test_metadata_that_json_cannot_express(metadata: object) -> None:
    with pytest.raises(InvalidRequestError, match="metadata must be what JSON can express") as caught:
        encode_entry("a:1", metadata)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_keys() -> None:
    assert entry_key("svc/web", "10.0.0.1:80") == b"svc/web/10.0.0.1:80"
    assert target_prefix(b"foo") == b"foo/"
    with pytest.raises(InvalidRequestError, match="must not end with a slash"):
        target_prefix("svc/web/")
    with pytest.raises(EmptyKeyError):
        target_prefix("")
    with pytest.raises(EmptyKeyError):
        entry_key("svc", "")
    with pytest.raises(TypeError):
        entry_key("svc", 80)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError):
        encode_entry("", None)


def test_an_endpoint_with_metadata_can_stand_in_a_set() -> None:
    assert len({ServiceEndpoint(b"k", "a:1", {"zone": "a"}), ServiceEndpoint(b"k", "a:1", {"zone": "a"})}) == 1


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("10.0.0.1:80", "10.0.0.1", 80),
        ("node.example:65535", "node.example", 65535),
        ("[::1]:443", "::1", 443),
        ("[::1]", "::1", None),
        ("::1", "::1", None),
        ("node", "node", None),
        ("node:", "node:", None),
        (":80", ":80", None),
        ("node:65536", "node:65536", None),
        ("node:http", "node:http", None),
        ("unix:/run/api", "unix:/run/api", None),
        ("dns:///node:80", "dns:///node:80", None),
    ],
)
def test_an_address_has_a_host_and_a_port(address: str, host: str, port: int | None) -> None:
    endpoint = ServiceEndpoint(b"svc/a", address)
    assert (endpoint.host, endpoint.port) == (host, port)
