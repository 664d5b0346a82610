"""transport/request_headers.py: made once, and a timeout that never says less than the caller has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.transport.interface import Metadata, Target
from etcd_aio.transport.metadata import with_headers
from etcd_aio.transport.request_headers import CallHeaders, timeout_text

TARGET = Target("127.0.0.1", 2379, "", "127.0.0.1:2379")
UNITS = {"m": 1, "S": 1000}


def test_the_headers_of_a_method_are_made_once_for_each_metadata() -> None:
    headers = CallHeaders(TARGET, "agent")
    plain, other = (("a", "1"),), (("a", "2"),)
    made = headers.of("/x/Y", plain)
    assert made.fields[:4] == (
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "127.0.0.1:2379"),
        (":path", "/x/Y"),
    )
    assert made.fields[-1] == ("a", "1")
    assert headers.of("/x/Y", (("a", "1"),)) is made
    assert headers.of("/x/Y", other) is not made
    assert headers.of("/x/Y", plain) is made


def test_a_token_that_is_out_of_use_is_remembered_nowhere() -> None:
    headers = CallHeaders(TARGET, "agent")
    bare = headers.of("/x/Login", ())
    for number in range(10):
        token = ("token", f"{number}-c4n4ry")
        for path in ("/x/Y", "/x/Z"):
            made = headers.of(path, (token,))
            assert made.fields[-1] == token
            assert headers.of(path, (("hasleader", "true"), token)) is not made
            assert headers.of(path, (token,)) is made
        headers.of("/x/Login", ())  # carries none, and ends nothing
        assert headers.of("/x/Y", (token,)) is headers.of("/x/Y", (token,))
    remembered = repr(
        [made.fields for made in (*headers._known.values(), *(made for _, made in headers._last.values()))]
    )
    assert "9-c4n4ry" in remembered
    assert "8-c4n4ry" not in remembered
    assert bare.fields == headers.of("/x/Login", ()).fields


def test_the_memory_of_headers_is_bounded() -> None:
    headers = CallHeaders(TARGET, "agent")
    for number in range(2000):
        headers.of("/x/Y", (("a", str(number)),))
        headers.timeout(number / 7)
    for number in range(40_000):
        headers.timeout(number / 1000)
    assert len(headers._known) <= 256
    assert len(headers._last) <= 256
    assert len(headers._timeouts) <= 16_384


def test_only_the_first_timeout_is_worth_a_place_in_the_table() -> None:
    headers = CallHeaders(TARGET, "agent")
    usual = headers.timeout(4.9999)
    assert usual.fields == (("grpc-timeout", "5000m"),)
    assert usual.is_lasting
    assert headers.timeout(4.9991) is usual
    assert not headers.timeout(0.1).is_lasting
    assert headers.timeout(4.95) is usual


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (1, "1m"),
        (99, "99m"),
        (101, "110m"),
        (4999, "5000m"),
        (5000, "5000m"),
        (99_999_999, "100000S"),
        (10**12, "99999999S"),
    ],
)
def test_a_timeout_is_rounded_up(milliseconds: int, text: str) -> None:
    assert timeout_text(milliseconds) == text


@given(st.integers(1, 10**10))
def test_a_timeout_never_says_less_and_hardly_more(milliseconds: int) -> None:
    text = timeout_text(milliseconds)
    assert len(text) <= 9, "eight digits and a unit"
    told = int(text[:-1]) * UNITS[text[-1]]
    assert milliseconds <= told <= milliseconds * 1.1 + 1000


def test_headers_of_one_call_are_not_kept() -> None:
    headers = CallHeaders(TARGET, "etcd_aio/0")
    base: Metadata = (("hasleader", "true"),)
    plain = headers.of("/a", base)
    for number in range(1000):
        own = headers.of("/a", with_headers(base, (("traceparent", str(number)),)))
        assert own.base is plain
        assert own.fields == (("traceparent", str(number)),)
    assert len(headers._known) == 1
    retried: Metadata = (*with_headers(base, (("traceparent", "1"),)), ("grpc-previous-rpc-attempts", "1"))
    again = headers.of("/a", retried)
    assert again.base is not None
    assert again.base.fields[-1] == ("grpc-previous-rpc-attempts", "1")
