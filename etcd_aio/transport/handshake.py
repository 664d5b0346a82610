"""The handshake: dials a target until the peer has proved that it speaks HTTP/2, or tells why not. For every engine."""

import asyncio
from collections.abc import Callable
from random import random
from typing import TypeVar

from etcd_aio.errors import ConnectError, ConnectionLostError, ProxyError
from etcd_aio.transport.crowd import crowd
from etcd_aio.transport.dial import dial, find_route
from etcd_aio.transport.explain import (
    ENOUGH,
    FIRST_BYTES,
    explain_first_bytes,
    explain_hang_up,
    explain_tls,
    lacks_http2,
    not_begun,
)
from etcd_aio.transport.interface import Target, TransportOptions
from etcd_aio.transport.names import Names
from etcd_aio.transport.time_limit import TimeLimit


class Handshake:
    """Waits for the peer's SETTINGS, or its answer over HTTP/1, or the reason why they do not arrive.

    Args:
        over_http1: the connection is one of HTTP/1.

    Attributes:
        is_tls: it is within TLS; set before anything is sent.
    """

    def __init__(self, *, over_http1: bool = False) -> None:
        self._over_http1 = over_http1
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._first_bytes = b""
        self.is_tls = False

    @property
    def has_heard(self) -> bool:
        """Whether the peer has sent anything."""
        return bool(self._first_bytes)

    @property
    def is_over(self) -> bool:
        """Whether the handshake has succeeded or failed."""
        return self._done.done()

    def on_bytes(self, data: bytes) -> None:
        """Look at the first bytes from the peer. Those of another protocol are the end: it may wait for more."""
        self._first_bytes += data[: FIRST_BYTES - len(self._first_bytes)]
        if len(self._first_bytes) >= ENOUGH and self._explained():
            self.fail(None)

    def succeed(self) -> None:
        """The peer's SETTINGS arrived, perhaps not for the first time."""
        if not self._done.done():
            self._done.set_result(None)

    def fail(self, error: BaseException | None) -> None:
        """The connection ended first; `error` is the cause, None if the client closed it."""
        if self._done.done():
            return
        text = self._explained()
        if error is None or text or isinstance(error, ConnectionLostError):
            error = self._error(text or not_begun(error or "closed", over_http1=self._over_http1))
        self._done.set_exception(error)
        self._done.exception()  # no warning if nothing waits for it any more

    def explain_silence(self, seconds: float) -> ConnectError:
        """The error for a timeout."""
        return self._error(self._explained() or f"connected, but no answer within {seconds:.3g} s of dialling")

    def _explained(self) -> str:
        return explain_first_bytes(self._first_bytes, over_http1=self._over_http1, is_tls=self.is_tls)

    def _error(self, text: str) -> ConnectError:
        error = ConnectError(text)
        error.lacks_http2 = not self._over_http1 and lacks_http2(self._first_bytes, is_tls=self.is_tls)
        return error

    async def wait(self) -> None:
        """Wait for the end of the handshake; raises the reason if it failed."""
        await self._done


class HandshakingProtocol(asyncio.BaseProtocol):
    """An engine's protocol. A subclass is an `asyncio.Protocol` or an `asyncio.BufferedProtocol` too.

    Attributes:
        handshake: resolves when the peer's SETTINGS arrive; fails with the reason if the connection ends before.
        is_established: whether `connect` returned the connection; before that its owner is not notified.
    """

    handshake: Handshake
    is_established = False

    @property
    def takes_calls(self) -> bool:
        """Whether new calls can be made."""
        raise NotImplementedError

    def abort(self, error: BaseException | None) -> None:
        """End the connection at once."""
        raise NotImplementedError


C = TypeVar("C", bound=HandshakingProtocol)


async def connect(
    target: Target, names: Names, options: TransportOptions, make: Callable[[], C], *, over_http1: bool = False
) -> C:
    """Dial `target` and wait for the handshake. Cleans up if that fails.

    Args:
        target: the server.
        names: resolves host names.
        options: `connect_timeout` bounds the dial with the handshake, and before that `find_route`. The time in which
            the loop is blocked, or the dial waits for its turn, does not count.
        make: creates the protocol.
        over_http1: it is one of HTTP/1.

    Raises:
        OSError: the operating system's reason.
        ConnectError: the peer is not a gRPC server; or the peer, or DNS, did not answer in time.
        TLSError: TLS failed. An invalid certificate of the peer is an `ssl.SSLCertVerificationError` instead.
    """
    is_tls = target.tls is not None
    seconds = options.connect_timeout
    is_reached = False
    shared = crowd()
    clock = asyncio.get_running_loop().time
    peer = target.place
    proxy = target.proxy

    def made() -> C:
        new = make()
        new.handshake.is_tls = is_tls
        return new

    def on_reached() -> None:
        nonlocal is_reached, seconds
        is_reached = True
        if options.is_patient:
            longer = shared.patience.of(peer, seconds, random)
            limit.extend(longer - seconds)
            seconds = longer

    route = await find_route(target, names, seconds)
    protocol: C | None = None
    has_succeeded = False
    try:
        async with shared.gate.turn(peer):
            began = clock()
            async with TimeLimit(seconds) as limit:
                _, protocol = await dial(route, made, over_http1=over_http1, on_reached=on_reached)
                await protocol.handshake.wait()
        has_succeeded = True
        shared.patience.answered(peer, clock() - began)
        # A GOAWAY or the end may have arrived right after the SETTINGS.
        if not protocol.takes_calls:
            raise ConnectError("the peer ended the connection as soon as it was open")
    except BaseException as error:  # a cancellation too: no socket may stay behind
        if protocol is not None:
            protocol.abort(None)
        # The kernel's ETIMEDOUT is a TimeoutError too, and more specific.
        if isinstance(error, TimeoutError) and error.errno is None:
            if is_reached:
                shared.patience.timed_out(peer, seconds)
            if protocol is not None:
                raise protocol.handshake.explain_silence(seconds) from None
            if proxy is not None and not is_reached:
                raise ProxyError(
                    f"the proxy {proxy.name} did not open a tunnel to {target.dialled} within {seconds:.3g} s"
                ) from None
            raise ConnectError(f"no answer within {seconds:.3g} s of dialling") from None
        if isinstance(error, Exception):
            shared.patience.answered(peer)  # in some way
        explained: ConnectError | None = explain_tls(error, over_http1=over_http1) if is_tls else None
        # In plain text a peer that hangs up later, perhaps on a further connection, says nothing about TLS.
        is_mute = protocol is not None and not protocol.handshake.has_heard and (is_tls or not has_succeeded)
        if explained is None and is_mute:
            explained = explain_hang_up(error, is_tls=is_tls, over_http1=over_http1)
        if explained is not None:
            raise explained from error
        raise
    protocol.is_established = True
    return protocol
