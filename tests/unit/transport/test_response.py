"""transport/response.py: what headers and trailers say, for everything a server or a proxy may write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_aio.errors import Delivery, StatusCode
from etcd_aio.transport.response import (
    fields,
    is_trailers_only,
    judge_headers,
    judge_reset,
    judge_trailers,
)

GRPC = {":status": "200", "content-type": "application/grpc"}


def test_good_headers_prove_nothing() -> None:
    assert judge_headers(GRPC) is None


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("400", StatusCode.INTERNAL),
        ("401", StatusCode.UNAUTHENTICATED),
        ("403", StatusCode.PERMISSION_DENIED),
        ("404", StatusCode.UNIMPLEMENTED),
        ("429", StatusCode.UNAVAILABLE),
        ("502", StatusCode.UNAVAILABLE),
        ("503", StatusCode.UNAVAILABLE),
        ("504", StatusCode.UNAVAILABLE),
        *[(str(status), StatusCode.UNKNOWN) for status in (100, 201, 204, 302, 405, 415, 500, 505, 599)],
        ("", StatusCode.UNKNOWN),
        ("two hundred", StatusCode.UNKNOWN),
    ],
)
def test_an_http_error_has_the_code_that_grpc_prescribes_and_an_unknown_outcome(status: str, code: StatusCode) -> None:
    failure = judge_headers(GRPC | {":status": status})
    assert failure is not None
    assert (failure.code, failure.delivery) == (code, Delivery.UNKNOWN)
    assert (status or "missing") in failure.message


def test_missing_status_and_content_type() -> None:
    for headers in ({}, {":status": "200"}, {"content-type": "application/grpc"}):
        failure = judge_headers(headers)
        assert failure is not None
        assert failure.code is StatusCode.UNKNOWN
        assert "missing" in failure.message


@pytest.mark.parametrize(
    ("content_type", "is_grpc"),
    [
        ("application/grpc", True),
        ("application/grpc+proto", True),
        ("application/grpc;charset=utf-8", True),
        ("Application/gRPC", True),
        ("application/grpc-web", False),
        ("application/grpcx", False),
        ("text/html", False),
        ("", False),
    ],
)
def test_only_grpc_is_grpc(content_type: str, is_grpc: bool) -> None:
    assert (judge_headers(GRPC | {"content-type": content_type}) is None) is is_grpc


def test_a_grpc_status_counts_more_than_the_http_status_beside_it() -> None:
    headers = GRPC | {":status": "503", "grpc-status": "5"}
    assert judge_headers(headers) is None
    assert is_trailers_only(headers)
    assert not is_trailers_only(GRPC)
    without_type = {":status": "200", "grpc-status": "12"}
    assert judge_headers(without_type) is None, "some servers write no more than that"
    assert judge_headers(headers | {"content-type": "text/html"}) is not None, "a web server's word is not gRPC's"


@pytest.mark.parametrize("text", ["0", "00", "000"])
def test_zero_is_ok(text: str) -> None:
    assert judge_trailers({"grpc-status": text}) is None


@pytest.mark.parametrize("number", range(1, 17))
def test_a_status_is_an_answer(number: int) -> None:
    failure = judge_trailers({"grpc-status": str(number), "grpc-message": "text"})
    assert failure is not None
    assert (failure.code, failure.message, failure.delivery) == (number, "text", Delivery.ANSWERED)
    assert failure.pushback is None
    assert failure.reason is None


@pytest.mark.parametrize("text", ["17", "99", "9999"])
def test_an_undefined_status_is_unknown_but_answered(text: str) -> None:
    failure = judge_trailers({"grpc-status": text})
    assert failure is not None
    assert (failure.code, failure.delivery) == (StatusCode.UNKNOWN, Delivery.ANSWERED)


@pytest.mark.parametrize("text", ["", "OK", "-1", "1.0", " 0", "٣", "9" * 5000, "0x0"])
def test_a_garbled_status_is_no_answer(text: str) -> None:
    failure = judge_trailers({"grpc-status": text})
    assert failure is not None
    assert (failure.code, failure.delivery) == (StatusCode.UNKNOWN, Delivery.UNKNOWN)
    assert len(failure.message) < 100


def test_a_missing_status_is_no_answer() -> None:
    failure = judge_trailers({"grpc-message": "but no status"})
    assert failure is not None
    assert (failure.code, failure.delivery) == (StatusCode.UNKNOWN, Delivery.UNKNOWN)


@pytest.mark.parametrize(
    ("quoted", "text"),
    [
        ("plain", "plain"),
        ("100%25 gr%C3%B6%C3%9Fer %E2%98%83", "100% größer ☃"),
        ("%zz %2", "%zz %2"),
        ("%ff", "\N{REPLACEMENT CHARACTER}"),
        ("größer".encode().decode("latin-1"), "größer"),
        ("☃", "?"),
    ],
)
def test_the_text_is_decoded_leniently(quoted: str, text: str) -> None:
    failure = judge_trailers({"grpc-status": "2", "grpc-message": quoted})
    assert failure is not None
    assert failure.message == text


@pytest.mark.parametrize("quoted", ["x" * 10**6, "%41" * 10**6, "%F0%9F%98%80" * 10**5])
def test_the_text_is_capped(quoted: str) -> None:
    failure = judge_trailers({"grpc-status": "2", "grpc-message": quoted})
    assert failure is not None
    assert 1000 <= len(failure.message) <= 4096


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("250", 0.25), ("5000", 5.0), ("-1", -1.0), ("soon", -1.0), ("", -1.0), ("9" * 400, -1.0)],
)
def test_pushback(text: str, seconds: float) -> None:
    failure = judge_trailers({"grpc-status": "14", "grpc-retry-pushback-ms": text})
    assert failure is not None
    assert failure.pushback == seconds


@pytest.mark.parametrize("code", [*range(16), 2**32 - 1])
def test_only_a_refused_stream_is_surely_unprocessed(code: int) -> None:
    failure = judge_reset(code, has_begun=False)
    assert failure.code is StatusCode.UNAVAILABLE
    assert failure.delivery is (Delivery.UNPROCESSED if code == 7 else Delivery.UNKNOWN)
    assert (("REFUSED_STREAM" if code == 7 else "CANCEL") in failure.message) is (code in (7, 8))
    assert judge_reset(code, has_begun=True).delivery is Delivery.UNKNOWN


def test_of_repeated_headers_the_last_counts() -> None:
    assert fields([("a", "1"), ("b", "2"), ("a", "3")]) == {"a": "3", "b": "2"}


@given(st.dictionaries(st.sampled_from([":status", "content-type", "grpc-status", "grpc-message"]), st.text()))
def test_any_headers_are_judged_without_an_exception(headers: dict[str, str]) -> None:
    for failure in (judge_headers(headers), judge_trailers(headers)):
        assert failure is None or failure.code is not StatusCode.OK
