"""Parameters: what `--rdzv-endpoint` and `--rdzv-conf` say about the client. Pure, but for the file of the password."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from etcd_aio import TLS
from etcd_aio.dataclass import dataclass

NAME: Final = "etcd-v3"
"""The name of the backend, for `--rdzv-backend`."""

_DEFAULT_READ_TIMEOUT: Final = 60  # seconds, as of torch's own backend
_DNS: Final = "dns:"  # the client connects with TLS to such a name if it has `tls`
_DEFAULT_PREFIX: Final = "torch/elastic/"
_FLAGS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a job, as far as they are about etcd.

    Attributes:
        endpoints: the members, `host` or `host:port` each, without a scheme; or DNS names that lead to members, as
            `dns:///name:port`.
        tls: how to connect with TLS; None is plain text.
        auth: name and password of a user.
        allow_insecure_auth: whether they may be sent in plain text.
        read_timeout: seconds for a call with all its attempts: an outage that is shorter is not noticed.
        prefix: of all keys.
        proxy: the URL of a proxy for the connections.
    """

    endpoints: tuple[str, ...]
    tls: TLS | None
    auth: tuple[str, str] | None = field(repr=False)
    allow_insecure_auth: bool
    read_timeout: int
    prefix: str
    proxy: str | None = field(repr=False)  # may have a password

    def client_options(self) -> dict[str, Any]:
        """The keyword arguments of `Client`."""
        scheme = "http" if self.tls is None else "https"
        return {
            "endpoints": [one if one.startswith(_DNS) else f"{scheme}://{one}" for one in self.endpoints],
            "tls": self.tls,
            "auth": self.auth,
            "allow_insecure_auth": self.allow_insecure_auth,
            "timeout": float(self.read_timeout),
            "namespace": self.prefix,
            "proxy": self.proxy,
        }


def read_parameters(endpoint: str, config: Mapping[str, Any]) -> Parameters:
    """Read the parameters of torch.

    The options are those of torch's own backend: `protocol` (http, https), `ca_cert`, `ssl_cert`, `ssl_cert_key`,
    `read_timeout`; and `server_name`, `user`, `password` or `password_file`, `allow_insecure_auth`, `prefix`, `proxy`.

    Args:
        endpoint: the members of the cluster, separated by commas.
        config: the options.

    Raises:
        ValueError: one is invalid.
    """
    endpoints = tuple(part.strip() for part in endpoint.split(",") if part.strip())
    if not endpoints:
        raise ValueError("the rendezvous endpoint must name at least one member of etcd, such as m1:2379,m2:2379")
    if any("://" in one and not one.startswith(_DNS) for one in endpoints):
        raise ValueError(
            "Endpoints are host:port without a scheme, or dns:///name:port; the option protocol says whether to use TLS"
        )
    return Parameters(
        endpoints,
        _tls(config),
        _auth(config),
        _flag(config, "allow_insecure_auth"),
        _read_timeout(config),
        str(config.get("prefix") or _DEFAULT_PREFIX),
        str(config.get("proxy") or "") or None,
    )


def _read_timeout(config: Mapping[str, Any]) -> int:
    try:
        seconds = int(config.get("read_timeout", _DEFAULT_READ_TIMEOUT))
    except (TypeError, ValueError):
        seconds = 0
    if seconds <= 0:
        raise ValueError("The read timeout must be a positive integer.")
    return seconds


def _tls(config: Mapping[str, Any]) -> TLS | None:
    ca, cert, key, name = (config.get(word) or None for word in ("ca_cert", "ssl_cert", "ssl_cert_key", "server_name"))
    if key and not cert:
        raise ValueError("The option ssl_cert_key needs the option ssl_cert.")
    protocol = str(config.get("protocol", "https" if ca or cert else "http")).strip().lower()
    if protocol == "https":
        return TLS(ca=ca, cert=cert, key=key, server_name=name)
    if protocol != "http":
        raise ValueError("The protocol must be HTTP or HTTPS.")
    if ca or cert or name:
        raise ValueError("The options ca_cert, ssl_cert and server_name need the protocol HTTPS.")
    return None


def _auth(config: Mapping[str, Any]) -> tuple[str, str] | None:
    user, password, file = (config.get(word) for word in ("user", "password", "password_file"))
    if not user:
        if password or file:
            raise ValueError("The options password and password_file need the option user.")
        return None
    if file:
        try:
            password = Path(str(file)).read_text().rstrip("\r\n")
        except OSError as error:
            raise ValueError(f"The password_file cannot be read: {error}") from error
    if not password:
        raise ValueError("The option user needs the option password_file, or password.")
    return str(user), str(password)


def _flag(config: Mapping[str, Any], name: str) -> bool:
    value = config.get(name, False)
    flag = value if isinstance(value, bool) else _FLAGS.get(str(value).lower())
    if flag is None:
        raise ValueError(f"The option {name} must be true or false.")
    return flag
