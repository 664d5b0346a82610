"""Chooses the engine for each endpoint: HTTP/2, or etcd's JSON gateway where HTTP/2 provably does not pass.

The proof is the dial's: the peer answers HTTP/2's preface in HTTP/1, or TLS agrees on no HTTP/2. Silence and refusals
prove nothing. A choice of the gateway lasts until a dial over it fails; then the proxy may be gone, and HTTP/2 is tried
again.
"""

import logging

from etcd_aio.base.logs import log_of
from etcd_aio.errors import ConnectError
from etcd_aio.transport.explain import without_hint
from etcd_aio.transport.gateway.engine import GatewayEngine
from etcd_aio.transport.interface import Connection, ConnectionOwner, Target, TransportOptions
from etcd_aio.transport.names import Names
from etcd_aio.transport.native.connection import NativeEngine

logger = logging.getLogger("etcd_aio.transport")


class AutoEngine:
    """Opens connections of the native engine, or of the gateway's. See `transport.Engine`.

    Args:
        options: limits and times.
        names: resolves host names.
    """

    def __init__(self, options: TransportOptions, names: Names | None = None) -> None:
        names = names or Names()
        self._native = NativeEngine(options, names)
        self._gateway = GatewayEngine(options, names)
        self._log = log_of(logger, options.client)
        self._over_http1: set[tuple[str, int, str]] = set()
        self._told: set[tuple[str, int, str]] = set()

    async def connect(self, target: Target, owner: ConnectionOwner) -> Connection:
        key = target.place
        if key in self._over_http1:
            try:
                return await self._gateway.connect(target, owner)
            except BaseException:
                self._over_http1.discard(key)
                raise
        try:
            return await self._native.connect(target, owner)
        except ConnectError as error:
            if not error.lacks_http2:
                raise
            reason = error
        met = without_hint(reason)
        try:
            connection = await self._gateway.connect(target, owner)
        except (OSError, ConnectError) as error:
            over_http1 = f"{type(error).__name__}: {error}"
            text = f"neither HTTP/2 ({met}) nor etcd's JSON gateway works (over HTTP/1: {over_http1})"
            both = type(reason)(text)
            both.lacks_http2 = True
            raise both from error
        self._over_http1.add(key)
        if key not in self._told:
            self._told.add(key)
            self._log.warning(
                "endpoint %s: HTTP/2 does not work (%s); etcd's JSON gateway is used, which is slower",
                target.authority,
                met,
            )
        return connection

    async def http_get(self, target: Target, path: str) -> bytes:
        if target.place not in self._over_http1:
            try:
                return await self._native.http_get(target, path)
            except ConnectError as error:
                if not error.lacks_http2:
                    raise
        return await self._gateway.http_get(target, path)
