"""The TLS source of one connection, which remembers the certificates that its handshakes have used.

A connection of the gateway has several sockets, and each has its own handshake. The oldest files and the first end
count: the connection is renewed as a whole.

Counted is what a handshake checks: the client's own certificate, and the member's. The authorities have an end as well,
but a certificate should end before them; when their files are replaced, the contents change.
"""

import ssl
from collections.abc import Awaitable, Callable
from math import inf

from etcd_aio.config.validity import not_after
from etcd_aio.transport import OF_CLIENT, OF_MEMBER


class RememberedCertificates:
    """See `transport.ConnectionCertificates`.

    Args:
        load: reads the files; returns the context, the version of the files, and when the client's certificate expires.
        newest: returns the version of the files that were read last.
        server_name: see `transport.TLSSource`.

    Attributes:
        server_name: the same.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[tuple[ssl.SSLContext, int, float]]],
        newest: Callable[[], int],
        server_name: str,
    ) -> None:
        self.server_name = server_name
        self._load = load
        self._newest = newest
        self._version: int | None = None  # of the first handshake
        self._own = self._of_member = inf

    async def context(self) -> ssl.SSLContext:
        """See `transport.TLSSource`."""
        context, version, end = await self._load()
        if self._version is None:
            self._version = version
        self._own = min(self._own, end)
        return context

    def on_handshake(self, tls: ssl.SSLObject) -> None:
        """See `transport.TLSSource`."""
        der = tls.getpeercert(binary_form=True)
        end = not_after(der) if der else None
        if end is not None:
            self._of_member = min(self._of_member, end)

    @property
    def is_current(self) -> bool:
        """See `transport.ConnectionCertificates`."""
        return self._version is None or self._version == self._newest()

    @property
    def expiry(self) -> tuple[float, str]:
        """See `transport.ConnectionCertificates`."""
        return min((self._own, OF_CLIENT), (self._of_member, OF_MEMBER))
