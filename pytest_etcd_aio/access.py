"""Access: how clients reach a server, with its certificates and its user."""

from dataclasses import dataclass, replace
from typing import TypeVar, Unpack

from etcd_aio import TLS, Client
from etcd_aio.config import ClientOptions

_C = TypeVar("_C", bound=Client)


@dataclass(frozen=True, slots=True)
class Access:
    """How clients reach a server.

    Attributes:
        endpoints: its endpoints.
        tls: how to verify it; None for a server without TLS.
        auth: name and password of the user `root`; None for a server without authentication.
        url: a connection URL that says all of this instead.
    """

    endpoints: tuple[str, ...]
    tls: TLS | None = None
    auth: tuple[str, str] | None = None
    url: str = ""

    def through(self, endpoint: str) -> "Access":
        """The same through a proxy."""
        return replace(self, endpoints=(endpoint,))

    def client(self, kind: type[_C], **options: Unpack[ClientOptions]) -> _C:
        """Make a client.

        Args:
            kind: its class.
            options: those of `Client`, which override what is needed for access.
        """
        if self.url:
            client = kind.from_url(self.url, **options)
            if client.endpoints != self.endpoints:
                client.set_endpoints(self.endpoints)
            return client
        options.setdefault("tls", self.tls)
        if "token" not in options:
            options.setdefault("auth", self.auth)
        options.setdefault("allow_insecure_auth", self.tls is None)  # on this machine
        return kind(self.endpoints, **options)


def given_access(text: str) -> Access:
    """The server that the user names: endpoints, or a connection URL.

    Raises:
        ConfigError: it is neither.
    """
    scheme, separator, _ = text.partition("://")
    if separator and scheme.startswith("etcd"):
        return Access(Client.from_url(text).endpoints, url=text)
    return Access(Client(text).endpoints)
