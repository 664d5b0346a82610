"""Which endpoints get TLS, and which may get credentials."""

import ssl
from collections.abc import Iterable, Sequence

from etcd_aio.balancer import Security, Source
from etcd_aio.config.tls import TLS
from etcd_aio.errors import ConfigError
from etcd_aio.transport import CertificateRenewal, TLSContext


class EndpointSecurity:
    """The rules of one client.

    Args:
        tls: the option of `Client`.
        has_credentials: whether its requests carry a token, and its logins a password.
        allow_insecure_auth: the option of `Client`.
        client: name of the client; empty if it has none.
        alpn: the versions of HTTP that are offered with TLS.

    Attributes:
        has_tls: whether `tls` was given.
        has_own_authorities: whether `tls` says whom to trust.
        renewal: the source of TLS contexts whose connections are to be renewed with their certificates, or None.

    Raises:
        ConfigError: `tls` is neither a `TLS` nor a context for clients, or one of its files is wrong.
    """

    def __init__(
        self,
        tls: TLS | ssl.SSLContext | None,
        *,
        has_credentials: bool,
        allow_insecure_auth: bool,
        client: str = "",
        alpn: Sequence[str] = ("h2",),
    ) -> None:
        self.has_tls = tls is not None
        # A context has its own authorities. With one name for all members, DNS cannot decide which member is trusted.
        self.has_own_authorities = bool(tls.ca or tls.server_name) if isinstance(tls, TLS) else self.has_tls
        self._needs_secrecy = has_credentials and not allow_insecure_auth
        self._alpn = alpn
        self._client = client
        self.renewal: CertificateRenewal | None = None
        self._context = None if tls is None else self._checked(tls)

    def tls_for(self, endpoint: Source) -> TLSContext | None:
        """The TLS context for `endpoint`, or its source; None for plaintext.

        An endpoint with TLS never gets plaintext: without `tls` it is verified with the system's root certificates.
        """
        has_tls = endpoint.security is Security.TLS or (endpoint.security is Security.OPTIONAL and self.has_tls)
        if has_tls and self._context is None:
            from etcd_aio.config.certificates import CertificateFiles

            self._context = CertificateFiles(TLS(), self._client, self._alpn)  # reads no file until it is needed
        return self._context if has_tls else None

    def check(self, endpoints: Iterable[Source]) -> None:
        """Check that these endpoints get no password or token in plain text. Unix sockets are safe.

        Raises:
            ConfigError: an endpoint would, and `allow_insecure_auth` is not set.
        """
        for endpoint in endpoints:
            if self._needs_secrecy and endpoint.host and self.tls_for(endpoint) is None:
                raise ConfigError(
                    f"credentials would go to {endpoint.name} in plain text: use https:// "
                    "(etcds:// in a connection URL) or tls=, or pass allow_insecure_auth=True"
                )

    def _checked(self, tls: TLS | ssl.SSLContext) -> TLSContext:
        if isinstance(tls, TLS):
            from etcd_aio.config.certificates import CertificateFiles

            files = CertificateFiles(tls, self._client, self._alpn)
            files.check()
            if tls.reconnect:
                self.renewal = files
            return files
        if not isinstance(tls, ssl.SSLContext):
            raise ConfigError("tls must be a TLS(...) or an ssl.SSLContext")
        if tls.protocol is ssl.PROTOCOL_TLS_SERVER:
            raise ConfigError("tls must be a context for clients, such as ssl.create_default_context() returns")
        tls.set_alpn_protocols([*self._alpn])  # without ALPN, Go's TLS servers speak HTTP/1, and gRPC is HTTP/2 only
        return tls
