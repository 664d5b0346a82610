"""The handshake: from a target to a connection whose peer has proved that it speaks HTTP/2. The same for every engine.

Knows: what a peer that fails the proof seems to be. Never knows: HTTP/2 frames, calls, retries.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from etcd_aio.errors import ConnectError, ConnectionLostError
from etcd_aio.transport.dial import dial, find_route
from etcd_aio.transport.interface import Target
from etcd_aio.transport.names import Names
from etcd_aio.transport.response import explain_first_bytes
from etcd_aio.transport.tls_errors import explain_hang_up, explain_tls

_FIRST_BYTES = 16  # enough to tell protocols apart


class Handshake:
    """Whether the peer's SETTINGS have come, or why they will not."""

    __slots__ = ("_done", "_first_bytes")

    def __init__(self) -> None:
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._first_bytes = b""

    @property
    def has_heard(self) -> bool:
        """Whether the peer sent anything."""
        return bool(self._first_bytes)

    @property
    def is_over(self) -> bool:
        """Whether it succeeded or failed."""
        return self._done.done()

    def on_bytes(self, data: bytes) -> None:
        """The peer sent something; only its first bytes are kept."""
        if len(self._first_bytes) < _FIRST_BYTES:
            self._first_bytes += data[:_FIRST_BYTES]

    def succeed(self) -> None:
        """The peer's SETTINGS came; harmless if they did before."""
        if not self._done.done():
            self._done.set_result(None)

    def fail(self, error: BaseException | None) -> None:
        """The connection ended before; `error` is the real cause, None if it was closed on this side."""
        text = explain_first_bytes(self._first_bytes)
        if error is None or text or isinstance(error, ConnectionLostError):
            error = ConnectError(text or f"connected, but the peer did not begin HTTP/2: {error or 'closed'}")
        self._done.set_exception(error)
        self._done.exception()  # whoever gave up waiting need not retrieve it

    def explain_silence(self, seconds: float) -> ConnectError:
        """Why it took too long."""
        text = explain_first_bytes(self._first_bytes)
        return ConnectError(text or f"connected, but no answer within {seconds:g} s of dialling")

    async def wait(self) -> None:
        """Wait for its end; raises why it failed."""
        await self._done


class HandshakingProtocol(asyncio.Protocol):
    """What an engine's protocol offers until it is a connection."""

    handshake: Handshake

    @property
    def takes_calls(self) -> bool:
        """Whether a call can be made on it."""
        raise NotImplementedError

    def abort(self, error: BaseException | None) -> None:
        """End it now, waiting for nobody."""
        raise NotImplementedError


C = TypeVar("C", bound=HandshakingProtocol)


async def connect(target: Target, names: Names, seconds: float, make: Callable[[], C]) -> C:
    """Dial `target` and wait for the handshake; leaves nothing behind if that fails.

    Args:
        target: where to.
        names: looks host names up.
        seconds: for the dial with the handshake, and before that as much for what `find_route` waits for.
        make: makes the protocol.

    Raises:
        OSError: the operating system's reason.
        ConnectError: the peer answered, but not as a gRPC server; or it, or the host's name, was not found in time.
        TLSError: TLS failed, and not for the peer's certificate, which is an `ssl.SSLCertVerificationError`.
    """
    route = await find_route(target, names, seconds)
    protocol: C | None = None
    try:
        async with asyncio.timeout(seconds):
            _, protocol = await dial(route, make)
            await protocol.handshake.wait()
        # A GOAWAY or the end may have come right behind the SETTINGS.
        if not protocol.takes_calls:
            raise ConnectError("the peer ended the connection as soon as it was open")
    except BaseException as error:  # a cancellation too: no socket may stay behind
        if protocol is not None:
            protocol.abort(None)
        # The kernel's own ETIMEDOUT is a TimeoutError too, and then says more than ours.
        if isinstance(error, TimeoutError) and error.errno is None:
            if protocol is not None:
                raise protocol.handshake.explain_silence(seconds) from None
            raise ConnectError(f"no answer within {seconds:g} s of dialling") from None
        if target.tls is not None:
            explained = explain_tls(error)
            if explained is None and protocol is not None and not protocol.handshake.has_heard:
                explained = explain_hang_up(error)
            if explained is not None:
                raise explained from error
        raise
    return protocol
