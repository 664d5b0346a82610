"""The result of an attempt, from its response headers and trailers. Pure. For the engines that speak HTTP/2."""

from collections.abc import Iterable, Mapping
from typing import Final

from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, StatusCode
from etcd_aio.http2 import ErrorCode, error_name
from etcd_aio.transport.explain import explain_not_grpc

_HTTP_TO_STATUS: Final[Mapping[str, StatusCode]] = {
    "400": StatusCode.INTERNAL,
    "401": StatusCode.UNAUTHENTICATED,
    "403": StatusCode.PERMISSION_DENIED,
    "404": StatusCode.UNIMPLEMENTED,
    "429": StatusCode.UNAVAILABLE,
    "502": StatusCode.UNAVAILABLE,
    "503": StatusCode.UNAVAILABLE,
    "504": StatusCode.UNAVAILABLE,
}
_MAX_QUOTED: Final = 3 * 4096 + 3  # AttemptFailure keeps 4096 bytes of a text; percent-encoding triples each


def http_status_code(status: str) -> StatusCode:
    """The gRPC code of an answer that has an HTTP status only (gRPC's http-grpc-status-mapping)."""
    return _HTTP_TO_STATUS.get(status, StatusCode.UNKNOWN)


def fields(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers as a mapping; of repeated names the last one counts."""
    return dict(headers)


def judge_headers(headers: Mapping[str, str]) -> AttemptFailure | None:
    """The failure that response headers alone prove: an HTTP error, or a body that is not gRPC.

    Without a gRPC status it is unknown whether the server acted: a proxy may have answered instead.
    """
    content_type = headers.get("content-type", "")
    is_grpc = _is_grpc(content_type)
    if "grpc-status" in headers and (is_grpc or not content_type):
        return None  # then the HTTP status does not count (gRPC's http-grpc-status-mapping)
    status = headers.get(":status", "")
    if status != "200":
        code = http_status_code(status)
        text = f"HTTP status {status[:16] or 'missing'} instead of gRPC{explain_not_grpc(status)}"
        return AttemptFailure(code, text, Delivery.UNKNOWN)
    if not is_grpc:
        shown = content_type[:64] or "missing"
        text = f"content-type {shown!r} is not gRPC{explain_not_grpc(status)}"
        return AttemptFailure(StatusCode.UNKNOWN, text, Delivery.UNKNOWN)
    return None


def is_trailers_only(headers: Mapping[str, str]) -> bool:
    """Whether these headers are the whole response."""
    return "grpc-status" in headers


def judge_trailers(trailers: Mapping[str, str]) -> AttemptFailure | None:
    """The failure in the trailers, or in a trailers-only response; None for OK."""
    text = trailers.get("grpc-status")
    if text == "0":
        return None
    if text is None:
        return AttemptFailure(StatusCode.UNKNOWN, "the response ended without a gRPC status", Delivery.UNKNOWN)
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        return AttemptFailure(StatusCode.UNKNOWN, f"grpc-status {text[:16]!r} is not a number", Delivery.UNKNOWN)
    message = _text(trailers.get("grpc-message", ""))
    code = StatusCode.from_number(int(text))
    if code is StatusCode.OK:  # "00": a number, but not one that gRPC writes
        return None
    pushback = pushback_seconds(trailers.get("grpc-retry-pushback-ms"))
    return AttemptFailure(code, message, Delivery.ANSWERED, pushback=pushback)


def judge_reset(code: int, *, has_begun: bool, by_peer: bool = True) -> AttemptFailure:
    """The failure of a stream that was reset.

    Args:
        code: the HTTP/2 error code.
        has_begun: whether the server had begun to answer.
        by_peer: whether the server has reset it; else this side, for an error of the server.
    """
    if not by_peer:
        return broken(f"the server broke HTTP/2 on the stream: {error_name(code)}")
    delivery = unprocessed(has_begun=has_begun) if code == ErrorCode.REFUSED_STREAM else Delivery.UNKNOWN
    return AttemptFailure(StatusCode.UNAVAILABLE, f"the server reset the stream: {error_name(code)}", delivery)


def broken(text: str, code: StatusCode = StatusCode.INTERNAL) -> AttemptFailure:
    """Return the failure of a call whose answer is not as the protocol says."""
    return AttemptFailure(code, text, Delivery.UNKNOWN)


def given_up(reason: str, delivery: Delivery) -> AttemptFailure:
    """Return the failure of a call that is to be made elsewhere."""
    return AttemptFailure(StatusCode.UNAVAILABLE, reason, delivery, reason=LocalReason.GIVEN_UP)


def closed() -> AttemptFailure:
    """Return the failure of a call on a connection that takes none."""
    return AttemptFailure(StatusCode.UNAVAILABLE, "the connection is closed", Delivery.UNSENT)


def lost(error: BaseException | None, delivery: Delivery) -> AttemptFailure:
    """Return the failure of a call whose connection is over, for this reason; None if this side closed it."""
    text = "the connection was closed"
    if error is not None:
        text = f"the connection was lost: {str(error) or type(error).__name__}"
    return AttemptFailure(StatusCode.UNAVAILABLE, text, delivery)


def expired(delivery: Delivery) -> AttemptFailure:
    """Return the failure of a call that was not answered by its deadline."""
    text = "the deadline passed before the server answered"
    return AttemptFailure(StatusCode.DEADLINE_EXCEEDED, text, delivery, reason=LocalReason.DEADLINE)


def unprocessed(*, has_begun: bool) -> Delivery:
    """The delivery of a request that the server claims not to have processed (REFUSED_STREAM, GOAWAY: RFC 9113, 8.7).

    The claim does not count if the server had begun to answer.
    """
    return Delivery.UNKNOWN if has_begun else Delivery.UNPROCESSED


def _is_grpc(content_type: str) -> bool:
    """`application/grpc`, alone or with a message format or parameters; but not `application/grpc-web`."""
    head, rest = content_type[:16].lower(), content_type[16:17]
    return head == "application/grpc" and rest in ("", "+", ";")


def _text(quoted: str) -> str:
    """Decode a percent-encoded text. Bytes that should have been encoded, but are not, come as Latin-1 characters."""
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(quoted[:_MAX_QUOTED].encode("latin-1", "replace")).decode("utf-8", "replace")


def pushback_seconds(text: str | None) -> float | None:
    """Seconds of a `grpc-retry-pushback-ms`, if there is one; unparsable or negative means "do not retry" (gRPC A6)."""
    if text is None:
        return None
    return int(text) / 1000 if text.isascii() and text.isdigit() and len(text) <= 9 else -1.0
