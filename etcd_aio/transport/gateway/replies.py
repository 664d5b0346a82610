"""Maps HTTP answers of the gateway to replies and errors: a gRPC status of etcd, or the status of a proxy. Pure.

The gateway puts the gRPC code and text into the JSON of its answer. An answer without them comes from a proxy
on the way, or from a server that is no etcd. Whether etcd acted is unknown then, unless the answer proves that it did
not.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, StatusCode
from etcd_aio.transport.gateway.json_mapping import GatewayRoute, MappingError
from etcd_aio.transport.response import broken, http_status_code, pushback_seconds

NO_GATEWAY: Final = (
    "this address does not answer as etcd's JSON gateway does: "
    "it may be etcd's peer port, an etcd with --enable-grpc-gateway=false, or another service"
)

REFUSED_HOST: Final = "HTTP status 421: the server refuses requests to this host name (etcd --host-whitelist)"

_NO_SUCH_PATH: Final = "Not Found"  # of the gateway itself
_NO_HANDLER: Final = b"404 page not found"  # of Go's HTTP server without the gateway
_ODD: Final = frozenset({200, 301, 302, 303, 307, 308, 404, 405, 410, 501})  # no status of a proxy in trouble
# The gateway is a client of its member. A member that refuses the gateway's certificate says so and closes; when the
# gateway still writes, it meets the closed connection before it reads the reason.
_OWN_TLS: Final = "remote error: tls:"
_OWN_CLOSED: Final = re.compile(r"write tcp \S+: write: (broken pipe|connection reset by peer)")
_OWN_CERTIFICATE: Final = (
    "the gateway uses the server's certificate as its client certificate: it must be valid for clientAuth too"
)
_SHOWN: Final = 64
_MOST_CODE: Final = max(StatusCode)
_MOST_SEARCHED: Final = 256


def reply_of(status: int, headers: Mapping[str, str], body: bytes, route: GatewayRoute) -> bytes:
    """The encoded reply of a whole answer to a unary call.

    Args:
        status: the HTTP status.
        headers: those of the answer, by lower-case name.
        body: the body.
        route: of the RPC.

    Raises:
        AttemptFailure: there is none.
    """
    if status != 200:
        raise refusal(status, headers, body)
    found = parsed(body, headers)
    if route.has_header and not (isinstance(found, dict) and found.get("header")):
        # Such as `{}`, or an error with the status of a success. It must not pass for "no such key".
        raise malformed("the JSON of the answer has no header: is it etcd's?")
    return wire_of(found, route.to_wire)


def parsed(text: bytes | str, headers: Mapping[str, str] | None = None) -> object:
    """The JSON of a successful answer.

    Raises:
        AttemptFailure: it is none.
    """
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        kind = "" if headers is None else f" (content-type {headers.get('content-type', 'missing')[:_SHOWN]!r})"
        raise malformed(f"the answer is not JSON{kind}: is it etcd's?") from None
    return found


def wire_of(found: object, to_wire: Callable[[object], bytes]) -> bytes:
    """The encoded message of parsed JSON.

    Raises:
        AttemptFailure: it does not fit the message.
    """
    try:
        return to_wire(found)
    except MappingError as error:
        raise malformed(f"the JSON of the answer does not fit its message: {error}") from None
    except RecursionError:
        raise malformed("the JSON of the answer nests too deep for its message") from None


def streamed(text: bytes | str, to_wire: Callable[[object], bytes]) -> bytes:
    """The encoded message of one line, or WebSocket message, of a stream.

    Raises:
        AttemptFailure: the server ends the stream with a status; or the line is not of the gateway.
    """
    found = parsed(text)
    if isinstance(found, dict):
        error = found.get("error")
        if error is not None:
            raise _status(error if isinstance(error, dict) else found) or broken("the stream ended with an error")
        result = found.get("result")
        if result is not None:
            return wire_of(result, to_wire)
        failure = _status(found)
        if failure is not None:
            raise failure
    raise malformed("the message of a stream has neither a result nor an error")


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> AttemptFailure:
    """The failure that an answer without success means."""
    found: object = None
    with suppress(ValueError, RecursionError):
        found = json.loads(body)
    if status == 404:
        if is_without_gateway(status, body):
            return AttemptFailure(StatusCode.UNIMPLEMENTED, NO_GATEWAY, Delivery.ANSWERED)
        text = found.get("message") if isinstance(found, dict) else body[:_SHOWN].decode("latin-1").strip()
        if text == _NO_SUCH_PATH:
            return AttemptFailure(StatusCode.UNIMPLEMENTED, "the gateway has no such path", Delivery.ANSWERED)
    if isinstance(found, dict) and isinstance(found.get("error"), dict):
        found = found["error"]  # of a stream that ends before its first message
    failure = _status(found) if isinstance(found, dict) else None
    if failure is not None:
        text = headers.get("grpc-trailer-grpc-retry-pushback-ms", headers.get("grpc-metadata-grpc-retry-pushback-ms"))
        failure.pushback = pushback_seconds(text)
        return failure
    if status == 400 and b"CommonName" in body[:_MOST_SEARCHED]:
        text = "the gateway takes no certificate with a common name: use auth= without one, or engine='native'"
        return AttemptFailure(StatusCode.PERMISSION_DENIED, text, Delivery.ANSWERED)
    if status == 421:
        return AttemptFailure(StatusCode.PERMISSION_DENIED, REFUSED_HOST, Delivery.UNKNOWN)
    if status == 413:
        text = "HTTP status 413: a proxy on the way refuses a request of this size"
        return AttemptFailure(StatusCode.RESOURCE_EXHAUSTED, text, Delivery.UNKNOWN)
    return AttemptFailure(http_status_code(str(status)), unknown_answer(status, headers), Delivery.UNKNOWN)


def is_without_gateway(status: int, body: bytes) -> bool:
    """Whether an answer is that of an etcd that serves no gateway there, such as at its peer port."""
    return status == 404 and body.strip() == _NO_HANDLER


def unknown_answer(status: int, headers: Mapping[str, str]) -> str:
    """The words for an answer that is not of etcd's gateway."""
    text = f"HTTP status {status} instead of etcd's answer{server_of(headers)}"
    return f"{text}: {NO_GATEWAY}" if status in _ODD else text


def server_of(headers: Mapping[str, str]) -> str:
    """The name that the answering server gives itself, in brackets; empty if it gives none."""
    by = headers.get("server", "")[:_SHOWN]
    return f" (server: {by})" if by else ""


def unserved(path: str) -> AttemptFailure:
    """The failure of an RPC that the gateway does not serve."""
    text = f"etcd's JSON gateway does not serve {path.rpartition('.')[2]}: engine='native' does"
    return AttemptFailure(StatusCode.UNIMPLEMENTED, text, Delivery.ANSWERED)


def malformed(text: str) -> AttemptFailure:
    """The failure of a message that came whole and cannot be read."""
    return AttemptFailure(StatusCode.INTERNAL, text, Delivery.UNKNOWN, reason=LocalReason.MALFORMED)


def too_large(limit: int) -> AttemptFailure:
    """The failure of a reply whose JSON alone proves that it is too large."""
    text = f"received message is larger than max_receive_bytes ({limit})"
    return AttemptFailure(StatusCode.RESOURCE_EXHAUSTED, text, Delivery.UNKNOWN, reason=LocalReason.REPLY_TOO_LARGE)


def _status(found: Mapping[str, object]) -> AttemptFailure | None:
    """The gRPC status in a JSON object; None if there is none. `grpc_code` is what 3.5 calls it in streams."""
    code = found.get("code", found.get("grpc_code"))
    message = found.get("message", found.get("error", ""))
    if type(code) is not int or type(message) is not str or not 0 < code <= _MOST_CODE:
        return None  # a proxy's code is often the HTTP status
    if _OWN_TLS in message:
        message = f"{message}: {_OWN_CERTIFICATE}"
    elif _OWN_CLOSED.search(message):
        message = f"{message}: the member closed the gateway's own connection; if it always does, {_OWN_CERTIFICATE}"
    return AttemptFailure(StatusCode.from_number(code), message, Delivery.ANSWERED)
