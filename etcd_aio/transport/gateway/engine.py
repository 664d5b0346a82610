"""The gateway engine: attempts and streams over etcd's JSON gateway, where only HTTP/1 passes.

A proxy on the way may speak no HTTP/2, or end it. etcd serves its RPCs over HTTP/1.1 too, as JSON. This engine maps
each attempt to a request and back, so everything above it stays as it is. It is several times slower than the others.
"""

from typing import Final

from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import AttemptFailure, ConnectError, LocalReason
from etcd_aio.transport.document import most_bytes
from etcd_aio.transport.document_status import check_document
from etcd_aio.transport.gateway.call import HttpAnswer, HttpCall
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.connection import GatewayConnection
from etcd_aio.transport.gateway.http1 import request_bytes
from etcd_aio.transport.gateway.service import ETCD, Service
from etcd_aio.transport.handshake import connect
from etcd_aio.transport.interface import ConnectionOwner, Target, TransportOptions
from etcd_aio.transport.names import Names

_TOO_LONG: Final = "the peer's answer is too long"


class GatewayEngine:
    """Opens connections over HTTP/1. See `transport.Engine`.

    Args:
        options: limits and times.
        names: resolves host names.
        service: what is served; etcd's RPCs by default.
    """

    def __init__(self, options: TransportOptions, names: Names | None = None, service: Service = ETCD) -> None:
        self._options = options
        self._names = names or Names()
        self._service = service

    async def connect(self, target: Target, owner: ConnectionOwner) -> GatewayConnection:
        self._names.turn(target.host)  # all sockets of a connection begin with the same address
        connection = GatewayConnection(target, self._options, owner, self._names, self._service)
        await connection.open()
        return connection

    async def http_get(self, target: Target, path: str) -> bytes:
        make = lambda: Channel(lambda: None, lambda channel, error: None)  # noqa: E731 - short
        channel = await connect(target, self._names, self._options, make, over_http1=True)
        headers = (("Host", target.authority), ("User-Agent", self._options.user_agent))
        most = most_bytes(path)
        call = HttpCall(_NoPool(), request_bytes("GET", path, headers), limit=most, deadline=NEVER)
        try:
            call.begin(channel)
            answer: HttpAnswer = await call.future
        except AttemptFailure as failure:
            is_too_long = failure.reason is LocalReason.REPLY_TOO_LARGE
            raise ConnectError(_TOO_LONG if is_too_long else failure.message) from None
        finally:
            call.close()
            channel.abort(None)
        check_document(path, answer.status)
        if len(answer.body) > most:
            raise ConnectError(_TOO_LONG)
        return answer.body


class _NoPool:
    """Keeps no socket."""

    def release(self, channel: Channel, *, keeps_alive: bool) -> None:
        """See `CallOwner`."""
        channel.abort(None)
