"""transport/proxy/http_connect.py, transport/proxy/conversation.py: what is sent, and what each answer means."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.errors import ProxyAuthenticationError, ProxyError
from etcd_aio.transport import Proxy
from etcd_aio.transport.proxy.conversation import Conversation
from etcd_aio.transport.proxy.http_connect import http_connect

PLAIN = Proxy("http", "p", 3128)
SECRET = Proxy("http", "p", 3128, "me", "c4n4ry")
OK = b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n"


def answered(conversation: Conversation, pieces: list[bytes]) -> bytes:
    """The bytes behind the answer; those that come later are behind it, too."""
    next(conversation)
    for number, piece in enumerate(pieces):
        try:
            assert conversation.send(piece) == b""
        except StopIteration as end:
            early: bytes = end.value
            return early + b"".join(pieces[number + 1 :])
    raise AssertionError("it waits for more")


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({0, *(place % (len(data) + 1) for place in at), len(data)})
    return [data[start:end] for start, end in pairwise(places)]


def test_what_is_sent() -> None:
    assert next(http_connect(PLAIN, "m1", 2379)) == (
        b"CONNECT m1:2379 HTTP/1.1\r\nHost: m1:2379\r\nUser-Agent: etcd_aio\r\n\r\n"
    )
    sent = next(http_connect(Proxy("http", "p", 1, "m\u00e9", "a:b"), "::1", 2379))
    assert sent.startswith(b"CONNECT [::1]:2379 HTTP/1.1\r\nHost: [::1]:2379\r\n")
    assert sent.endswith(b"\r\nProxy-Authorization: Basic bcOpOmE6Yg==\r\n\r\n")


@given(behind=st.binary(max_size=40), at=st.lists(st.integers(0, 1000), max_size=12))
def test_an_answer_in_any_pieces_loses_no_byte_behind_it(behind: bytes, at: list[int]) -> None:
    assert answered(http_connect(PLAIN, "m1", 2379), cut(OK + behind, at)) == behind


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n",
        b"HTTP/1.0 200 OK\n\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
    ],
)
def test_heads_of_a_tunnel(head: bytes) -> None:
    assert answered(http_connect(PLAIN, "m1", 2379), [head + b"\r\n\x00"]) == b"\r\n\x00"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (403, r"the proxy http://p:3128 does not allow connections to m1:2379 \(HTTP status 403\)"),
        (500, r"the proxy http://p:3128 cannot connect to m1:2379 \(HTTP status 500\)"),
        (502, r"the proxy http://p:3128 cannot connect to m1:2379"),
        (503, r"the proxy http://p:3128 cannot connect to m1:2379"),
        (400, r"did not open a tunnel to m1:2379 \(HTTP status 400\): is it an HTTP proxy"),
        (302, r"did not open a tunnel to m1:2379"),
    ],
)
def test_refusals(status: int, text: str) -> None:
    with pytest.raises(ProxyError, match=text) as caught:
        answered(http_connect(SECRET, "m1", 2379), [f"HTTP/1.1 {status} me:c4n4ry\r\n\r\nc4n4ry".encode()])
    assert type(caught.value) is ProxyError
    assert "c4n4ry" not in str(caught.value)


@pytest.mark.parametrize("status", [401, 407])
def test_credentials_that_are_wrong_or_missing(status: int) -> None:
    answer = f"HTTP/1.1 {status} Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n".encode()
    with pytest.raises(ProxyAuthenticationError, match=r"http://p:3128 refused the name and password"):
        answered(http_connect(SECRET, "m1", 2379), [answer])
    with pytest.raises(ProxyAuthenticationError, match=r"wants a name and password, and got none"):
        answered(http_connect(PLAIN, "m1", 2379), [answer])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"H\x00", "does not answer CONNECT in HTTP"),
        (b"\x05\xff", "does not answer CONNECT in HTTP"),
        (b"\x15\x03\x01\x00\x02", "answered in TLS: is it https:// ?"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "does not answer CONNECT in HTTP"),
        (b"HTTP/2.0 200 OK\r\n\r\n", "does not answer CONNECT in HTTP"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 20_000, "more than 16384 bytes"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, "more than 16384 bytes"),
    ],
)
def test_what_is_no_proxy_or_never_ends(data: bytes, text: str) -> None:
    with pytest.raises(ProxyError, match=text):
        answered(http_connect(PLAIN, "m1", 2379), [data])


@given(data=st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: b"HTTP/1." + tail))
def test_any_bytes_are_an_answer_or_a_proxy_error(data: bytes) -> None:
    with suppress(ProxyError, AssertionError):
        answered(http_connect(PLAIN, "m1", 2379), [data[:1] or b"H", data[1:], b"\r\n\r\n"])


def test_no_more_is_read_than_the_bound() -> None:
    conversation = http_connect(PLAIN, "m1", 2379)
    next(conversation)
    conversation.send(b"HTTP/1.1 200 OK\r\n")
    for _ in range(16):
        conversation.send(b"a" * 1000)
    with pytest.raises(ProxyError, match="more than"):
        conversation.send(b"a" * 1000)
