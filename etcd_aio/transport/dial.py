"""Dialling: from a target to a connected asyncio transport, the same for every engine.

Knows: asyncio's connection makers, ALPN. Never knows: HTTP/2 frames, retries, or how long to wait before the next dial.
"""

import asyncio
import socket
import ssl
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from etcd_aio.aio import start_task
from etcd_aio.errors import ConnectError, TLSError
from etcd_aio.transport.seam import Target

P = TypeVar("P", bound=asyncio.Protocol)

_Address: TypeAlias = tuple[int, int, int, str, Any]  # what getaddrinfo says

_HAPPY_EYEBALLS_DELAY: Final = 0.25  # RFC 8305, section 5: "Connection Attempt Delay" default
_TLS_SHUTDOWN_TIMEOUT: Final = 1.0  # asyncio's 30 s would hold a closing client; we abort what is dead anyway


async def dial(target: Target, factory: Callable[[], P]) -> tuple[asyncio.Transport, P]:
    """Connect to `target` with a protocol from `factory`. The caller bounds the time.

    Raises:
        OSError: the operating system's or TLS's reason.
        ConnectError: the host cannot be the name of one.
        TLSError: the peer hung up during the handshake, or did not agree on HTTP/2.
    """
    try:
        transport, protocol = await _connect(target, factory)
    except UnicodeError as error:  # what IDNA refuses, and no OSError
        raise ConnectError(f"{target.host!r} cannot be a host name") from error
    except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError) as error:
        if target.tls is None:
            raise
        text = "the peer hung up during the TLS handshake: does the endpoint serve TLS, and want no client certificate?"
        raise TLSError(text) from error
    if target.tls is not None:
        agreed = _agreed_protocol(transport)
        if agreed != "h2":
            transport.abort()
            raise TLSError(f"the peer did not agree on HTTP/2 by ALPN (it chose {agreed or 'nothing'})")
    return transport, protocol


async def _connect(target: Target, factory: Callable[[], P]) -> tuple[asyncio.Transport, P]:
    loop = asyncio.get_running_loop()
    source = target.tls
    tls = source if source is None or isinstance(source, ssl.SSLContext) else await source.context()
    server_name = target.server_name if tls is not None else None
    shutdown_timeout = _TLS_SHUTDOWN_TIMEOUT if tls is not None else None
    if target.path:
        return await loop.create_unix_connection(
            factory, target.path, ssl=tls, server_hostname=server_name, ssl_shutdown_timeout=shutdown_timeout
        )
    if not isinstance(loop, asyncio.BaseEventLoop):  # uvloop has its own order of addresses
        return await loop.create_connection(
            factory,
            target.host,
            target.port,
            ssl=tls,
            server_hostname=server_name,
            ssl_shutdown_timeout=shutdown_timeout,
        )
    sock = await _race(await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM))
    # The transport owns the socket before this first waits.
    return await loop.create_connection(
        factory, sock=sock, ssl=tls, server_hostname=server_name, ssl_shutdown_timeout=shutdown_timeout
    )


async def _race(addresses: Sequence[_Address]) -> socket.socket:
    """Happy eyeballs: a socket connected to the first address that answers (RFC 8305).

    asyncio has its own, but cancelled at the wrong moment that leaves a connected socket behind.
    """
    waiting = _alternating(addresses)
    running: set[asyncio.Task[socket.socket]] = set()
    errors: list[BaseException] = []
    try:
        while waiting or running:
            if waiting:
                running.add(start_task(_connect_socket(waiting.popleft()), name="etcd_aio dial"))
            delay = _HAPPY_EYEBALLS_DELAY if waiting else None
            done, _ = await asyncio.wait(running, timeout=delay, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                running.discard(task)
                error = task.exception()
                if error is None:
                    return task.result()
                errors.append(error)
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_close_socket)
    if not errors:
        raise OSError("the host name has no address")
    for error in errors[1:]:
        errors[0].add_note(f"and {error}")
    raise errors[0]


async def _connect_socket(address: _Address) -> socket.socket:
    family, kind, protocol, _, where = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:  # a cancellation too: nobody else knows the socket
        sock.close()
        raise
    return sock


def _close_socket(task: asyncio.Task[socket.socket]) -> None:
    """Whoever comes second, or after the end, is not needed."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def _alternating(addresses: Sequence[_Address]) -> deque[_Address]:
    """The addresses with their families by turns, so that one broken family costs one delay (RFC 8305, section 4)."""
    families = list(dict.fromkeys(address[0] for address in addresses))
    ranks: Counter[int] = Counter()
    keyed: list[tuple[int, int, _Address]] = []
    for address in addresses:
        keyed.append((ranks[address[0]], families.index(address[0]), address))
        ranks[address[0]] += 1
    return deque(address for _, _, address in sorted(keyed, key=lambda entry: entry[:2]))


def _agreed_protocol(transport: asyncio.Transport) -> str | None:
    ssl_object = transport.get_extra_info("ssl_object")
    return ssl_object.selected_alpn_protocol() if isinstance(ssl_object, ssl.SSLObject) else None
