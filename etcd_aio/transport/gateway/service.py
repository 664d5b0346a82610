"""The server behind a gateway: which RPCs it serves, how it is recognised, and what stands in for metadata."""

import json
from collections.abc import Callable
from typing import Final

from etcd_aio import methods, pb
from etcd_aio.codec import encode
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ConnectError
from etcd_aio.transport.gateway.call import HttpAnswer
from etcd_aio.transport.gateway.json_mapping import Routes, etcd_route
from etcd_aio.transport.gateway.replies import NO_GATEWAY, REFUSED_HOST, is_without_gateway, unknown_answer

_SHOWN: Final = 32


@dataclass(frozen=True, slots=True)
class Service:
    """The server behind a gateway.

    Attributes:
        routes: finds the route of an RPC.
        document: the path of the document that a new connection asks for, and each check of a silent peer.
        recognise: checks that document, and returns why there are no bidirectional streams; empty if there are. Raises
            ConnectError if the server is not the right one.
        gate: the path of a second document, whose answer tells an etcd without a gateway. Empty for a server that is
            not asked.
        probe: path and payload of the unary call that goes before a WebSocket. It carries the metadata that a
            WebSocket cannot; only its errors count. None for none.
    """

    routes: Routes
    document: str
    recognise: Callable[[HttpAnswer], str]
    gate: str = ""
    probe: tuple[str, bytes] | None = None


def _recognise(answer: HttpAnswer) -> str:
    if answer.status == 421:
        raise ConnectError(REFUSED_HOST)
    if answer.status != 200:
        raise ConnectError(f"the peer does not serve /version: {unknown_answer(answer.status, answer.headers)}")
    try:
        found = json.loads(answer.body)
        version = found["etcdserver"]
        major, minor = (int(part) for part in version.split(".")[:2])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ConnectError(f"the peer serves a /version that is not etcd's: {NO_GATEWAY}") from None
    shown = version[:_SHOWN]
    if (major, minor) < (3, 4):
        raise ConnectError(f"etcd {shown} has no JSON gateway at /v3/: 3.5 or newer is needed")
    if (major, minor) < (3, 5):
        return f"etcd {shown} crashes if its gateway gets a WebSocket: streams need engine='native', or etcd 3.5"
    return ""


def check_gate(answer: HttpAnswer) -> None:
    """Check that the answer for `Service.gate` is not that of an etcd without a gateway.

    Raises:
        ConnectError: it is.
    """
    if is_without_gateway(answer.status, answer.body):
        raise ConnectError(NO_GATEWAY)


ETCD: Final = Service(
    etcd_route,
    "/version",
    _recognise,
    # The peer port serves /version too. The gateway refuses a GET there.
    "/v3/kv/range",
    # Hardly any key is a zero byte, and the member answers without its peers: this is cheap.
    (methods.RANGE.path, encode(pb.RangeRequest(key=b"\0", serializable=True, count_only=True))),
)
"""etcd itself."""
