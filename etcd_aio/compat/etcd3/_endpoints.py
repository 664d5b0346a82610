"""Endpoints with their certificates and options of gRPC, and the client of etcd_aio that is made of them."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from etcd_aio import TLS
from etcd_aio.compat.etcd3.watch import LIMIT
from etcd_aio.sync import Client

Options: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]]
CertificatePath: TypeAlias = str | PathLike[str]

_ANY_SIZE: Final = 2**31 - 1


class Endpoint:
    """A server of the cluster.

    Attributes:
        host: the host.
        netloc: `host:port`.
        secure: whether it has TLS.
        protocol: `"https"` or `"http"`.
        credentials: how it is verified: made by `get_secure_creds`.
    """

    def __init__(
        self,
        host: str,
        port: int | str,
        secure: bool = True,
        creds: TLS | None = None,
        time_retry: float = 300.0,
        opts: Options | None = None,
    ) -> None:
        """Describe a server. Nothing is connected.

        Args:
            host: the host, a name or an address.
            port: the port.
            secure: whether it has TLS; needs `creds` then.
            creds: how it is verified: made by `get_secure_creds`.
            time_retry: seconds after which an endpoint that has failed is tried again. Not used: that is after less
                than a second here.
            opts: options of gRPC, of which those about sizes, keepalive and the name of the server are used.
        """
        if secure and creds is None:
            raise ValueError("an endpoint with TLS needs creds=")
        self.host = host
        self.netloc = f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
        self.secure = secure
        self.protocol = "https" if secure else "http"
        self.credentials = creds
        self.time_retry = time_retry
        self.opts = dict(opts or {})

    def __str__(self) -> str:
        return f"Endpoint({self.url})"

    @property
    def url(self) -> str:
        """The URL."""
        return f"{self.protocol}://{self.netloc}"


def secure_credentials(
    ca_cert: CertificatePath, cert_key: CertificatePath | None = None, cert_cert: CertificatePath | None = None
) -> TLS:
    """How servers are verified, and the certificate of the client.

    Raises:
        OSError: a file cannot be read.
    """
    for path in (ca_cert, cert_key, cert_cert):
        if path is not None:
            Path(path).read_bytes()
    return TLS(ca=ca_cert, key=cert_key, cert=cert_cert)


def make_client(endpoints: Iterable[Endpoint], user: str | None, password: str | None) -> Client:
    """Make the client that sends the calls. A call fails as soon as every endpoint has refused the connection."""
    chosen = tuple(endpoints)
    options = {name: value for endpoint in chosen for name, value in endpoint.opts.items()}
    tls = next((endpoint.credentials for endpoint in chosen if endpoint.credentials is not None), None)
    server_name = options.get("grpc.ssl_target_name_override")
    if tls is not None and server_name:
        tls = TLS(ca=tls.ca, key=tls.key, cert=tls.cert, server_name=str(server_name))
    return Client(
        [endpoint.url for endpoint in chosen],
        tls=tls,
        auth=None if user is None or password is None else (user, password),
        allow_insecure_auth=True,
        timeout=LIMIT,
        fail_fast=True,
        allow_in_loop=True,  # as python-etcd3, which knows nothing of event loops
        keepalive_time=_seconds(options.get("grpc.keepalive_time_ms"), 10.0),
        keepalive_timeout=_seconds(options.get("grpc.keepalive_timeout_ms"), 3.0),
        max_send_bytes=_bytes(options.get("grpc.max_send_message_length"), 2 * 2**20),
        max_receive_bytes=_bytes(options.get("grpc.max_receive_message_length"), 64 * 2**20),
    )


def _seconds(milliseconds: Any, default: float) -> float:
    return default if milliseconds is None else max(5.0 if default > 5 else 1.0, milliseconds / 1000)


def _bytes(limit: Any, default: int) -> int:
    if limit is None:
        return default
    return _ANY_SIZE if limit < 0 else max(int(limit), default)
