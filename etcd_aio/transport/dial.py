"""Dialling: from a target to a connected asyncio transport, the same for every engine.

Knows: asyncio's connection makers, ALPN. Never knows: HTTP/2 frames, retries, or how long to wait before the next dial.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import TypeVar

from etcd_aio.errors import ConnectError, TLSError
from etcd_aio.transport.seam import Target

P = TypeVar("P", bound=asyncio.Protocol)

_HAPPY_EYEBALLS_DELAY = 0.25  # RFC 8305, section 5: "Connection Attempt Delay" default
_TLS_SHUTDOWN_TIMEOUT = 1.0  # asyncio's 30 s would hold a closing client; we abort what is dead anyway


async def dial(target: Target, factory: Callable[[], P]) -> tuple[asyncio.Transport, P]:
    """Connect to `target` with a protocol from `factory`. The caller bounds the time.

    Raises:
        OSError: the operating system's or TLS's reason.
        ConnectError: the host cannot be the name of one.
        TLSError: TLS is up, but the peer did not agree on HTTP/2.
    """
    try:
        transport, protocol = await _connect(target, factory)
    except UnicodeError as error:  # what IDNA refuses, and no OSError
        raise ConnectError(f"{target.host!r} cannot be a host name") from error
    if target.tls is not None:
        agreed = _agreed_protocol(transport)
        if agreed != "h2":
            transport.abort()
            raise TLSError(f"the peer did not agree on HTTP/2 by ALPN (it chose {agreed or 'nothing'})")
    return transport, protocol


async def _connect(target: Target, factory: Callable[[], P]) -> tuple[asyncio.Transport, P]:
    loop = asyncio.get_running_loop()
    tls = target.tls
    server_name = target.server_name if tls is not None else None
    shutdown_timeout = _TLS_SHUTDOWN_TIMEOUT if tls is not None else None
    if target.path:
        return await loop.create_unix_connection(
            factory, target.path, ssl=tls, server_hostname=server_name, ssl_shutdown_timeout=shutdown_timeout
        )
    if isinstance(loop, asyncio.BaseEventLoop):
        return await loop.create_connection(
            factory,
            target.host,
            target.port,
            ssl=tls,
            server_hostname=server_name,
            ssl_shutdown_timeout=shutdown_timeout,
            happy_eyeballs_delay=_HAPPY_EYEBALLS_DELAY,
        )
    # uvloop has its own order of addresses and no happy eyeballs.
    return await loop.create_connection(
        factory,
        target.host,
        target.port,
        ssl=tls,
        server_hostname=server_name,
        ssl_shutdown_timeout=shutdown_timeout,
    )


def _agreed_protocol(transport: asyncio.Transport) -> str | None:
    ssl_object = transport.get_extra_info("ssl_object")
    return ssl_object.selected_alpn_protocol() if isinstance(ssl_object, ssl.SSLObject) else None
