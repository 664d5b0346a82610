"""The TLS source of one connection, which remembers the certificates that its handshakes have used.

A connection of the gateway has several sockets, and each has its own handshake. The oldest files and the first end
count: the connection is renewed as a whole.

Counted is what a handshake checks: the client's own certificate, and the member's. The authorities have an end as well,
but a certificate should end before them; when their files are replaced, the contents change.
"""

import ssl
from math import inf
from typing import TYPE_CHECKING

from etcd_aio.config.validity import not_after
from etcd_aio.transport import OF_CLIENT, OF_MEMBER

if TYPE_CHECKING:
    from etcd_aio.config.certificates import CertificateFiles


class RememberedCertificates:
    """See `transport.ConnectionCertificates`.

    Args:
        files: those of the client.
    """

    def __init__(self, files: "CertificateFiles") -> None:
        self._files = files
        self._version: int | None = None  # of the first handshake
        self._own = self._of_member = inf

    @property
    def server_name(self) -> str:
        """See `transport.TLSSource`."""
        return self._files.server_name

    async def context(self) -> ssl.SSLContext:
        """See `transport.TLSSource`."""
        loaded = await self._files.load()
        if self._version is None:
            self._version = loaded.version
        self._own = min(self._own, loaded.not_after)
        return loaded.context

    def on_handshake(self, tls: ssl.SSLObject) -> None:
        """See `transport.TLSSource`."""
        der = tls.getpeercert(binary_form=True)
        end = not_after(der) if der else None
        if end is not None:
            self._of_member = min(self._of_member, end)

    @property
    def is_current(self) -> bool:
        """See `transport.ConnectionCertificates`."""
        return self._version is None or self._version == self._files.version

    @property
    def expiry(self) -> tuple[float, str]:
        """See `transport.ConnectionCertificates`."""
        return min((self._own, OF_CLIENT), (self._of_member, OF_MEMBER))
