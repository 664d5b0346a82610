"""transport/gateway/http1.py: read alike in pieces of any size, and refused where the end is doubtful."""

import time
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.transport.gateway.http1 import MOST_HEAD, Http1Error, ResponseParser, request_bytes

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nX-A:2 \r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nX-T: t\r\n\r\n"
UNTIL_END = b"HTTP/1.1 502 Bad Gateway\r\n\r\nhello"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


def read(*pieces: bytes, ends: bool = False) -> tuple[ResponseParser, bytes]:
    body = bytearray()
    parser = ResponseParser(body.extend)
    for piece in pieces:
        parser.feed(piece)
    if ends:
        parser.feed_end()
    return parser, bytes(body)


@given(data=st.data(), response=st.sampled_from([PLAIN, CHUNKED, UNTIL_END, INTERIM]))
def test_a_response_is_the_same_in_any_pieces(data: st.DataObject, response: bytes) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(response) - 1))))
    parser, body = read(*(response[a:b] for a, b in pairwise([0, *cuts, len(response)])), ends=True)
    assert (parser.is_complete, body, parser.rest) == (True, b"hello", b"")
    assert parser.keeps_alive is (response is not UNTIL_END)
    assert parser.status == (502 if response is UNTIL_END else 200)


@pytest.mark.parametrize("response", [PLAIN, CHUNKED, INTERIM])
def test_no_beginning_of_a_response_is_a_response(response: bytes) -> None:
    for size in range(len(response)):
        parser, _ = read(response[:size], ends=True)
        assert not parser.is_complete, response[:size]


def test_headers_are_joined_and_trailers_added() -> None:
    assert read(PLAIN)[0].headers["x-a"] == "1, 2"
    assert read(CHUNKED)[0].headers["x-t"] == "t"


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0, 0\r\n\r\n", True),
    ],
)
def test_whether_the_connection_can_be_used_again(head: bytes, keeps: bool) -> None:
    parser, body = read(head)
    assert (parser.is_complete, parser.keeps_alive, body) == (True, keeps, b"")


def test_bytes_behind_a_response_end_the_connection() -> None:
    parser, body = read(PLAIN + b"HTTP/1.1 200 OK")
    assert (body, parser.rest, parser.keeps_alive) == (b"hello", b"HTTP/1.1 200 OK", False)


def test_bytes_far_behind_a_response_are_kept() -> None:
    parser, body = read(PLAIN + b"x" * 100_000)
    assert (body, len(parser.rest)) == (b"hello", 100_000)


def test_many_small_chunks_cost_no_more_together_than_apart() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"20\r\n" + b"x" * 32 + b"\r\n"
    chunks *= 40_000
    spent = []
    for size in (3800, len(chunks)):
        begin = time.process_time()
        _, body = read(head, *(chunks[at : at + size] for at in range(0, len(chunks), size)))
        spent.append(time.process_time() - begin)
        assert len(body) == 32 * 40_000
    assert spent[1] < 5 * spent[0]


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1100, id="chunks"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 1100, id="interim responses"),
    ],
)
def test_a_flood_of_pieces_without_content_is_refused(flood: bytes) -> None:
    with pytest.raises(Http1Error, match="flood"):
        read(flood)


def test_what_follows_an_upgrade_is_kept() -> None:
    parser, _ = read(b"HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x00")
    assert (parser.status, parser.is_complete, parser.rest) == (101, True, b"\x81\x00")


@pytest.mark.parametrize(
    "response",
    [
        b"\0\0\0\4\0\0\0\0\0",
        b"SSH-2.0",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\nX: y\n\n\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 300,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * MOST_HEAD,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * MOST_HEAD + b"\r\n\r\n",
    ],
)
def test_what_is_doubtful_is_refused(response: bytes) -> None:
    with pytest.raises(Http1Error):
        read(response)


@given(data=st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for prefix in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        with suppress(Http1Error):
            read(prefix + data, ends=True)


def test_a_request() -> None:
    assert request_bytes("POST", "/v3/kv/range", (("Host", "m1:2379"),), b"{}") == (
        b"POST /v3/kv/range HTTP/1.1\r\nHost: m1:2379\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert request_bytes("GET", "/version", ()) == b"GET /version HTTP/1.1\r\n\r\n"
