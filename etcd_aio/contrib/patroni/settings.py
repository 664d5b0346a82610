"""Settings: the section `etcd3aio` of Patroni's configuration as options of a client. Pure.

The section has the names of Patroni's own `etcd3`, so that one may be renamed to the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from etcd_aio import TLS
from etcd_aio.dataclass import dataclass

_PORT: Final = 2379
_SYNC_SECONDS: Final = 60.0  # between two looks at the members of the cluster
_KEEPALIVE: Final = 5.0  # seconds: etcd refuses less


class SettingsError(Exception):
    """The section cannot be used."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach etcd.

    Attributes:
        endpoints: URLs of members; empty if DNS names them.
        srv: the domain whose SRV records name the members.
        srv_name: the name of the cluster, if the domain has several.
        ca: the file of the authority.
        cert: the file of the client's certificate, whose common name may be a user of etcd.
        key: the file of its key.
        user: name and password.
        is_plain: whether the protocol is http, also for a password.
        finds_members: whether to use the URLs that the members advertise; not behind a proxy.
    """

    endpoints: tuple[str, ...] = ()
    srv: str = ""
    srv_name: str = ""
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    user: tuple[str, str] | None = field(default=None, repr=False)
    is_plain: bool = True
    finds_members: bool = True

    def options(self) -> dict[str, Any]:
        """The options of a `Client`, but for its endpoints and its `timeout`."""
        has_tls = not self.is_plain or any(url.startswith("https:") for url in self.endpoints)
        return {
            "tls": TLS(ca=self.ca, cert=self.cert, key=self.key) if has_tls else None,
            "auth": self.user,
            "allow_insecure_auth": self.is_plain,  # the section says so
            "discovery_srv": self.srv,
            "discovery_srv_name": self.srv_name,
            "auto_sync": _SYNC_SECONDS if self.finds_members else None,
            "keepalive_time": _KEEPALIVE,
            "name": "patroni",
        }


def settings_of(section: Mapping[str, Any]) -> Settings:
    """The settings in a section.

    Raises:
        SettingsError: it names no member, one half of a certificate, or a port that is none.
    """
    ca, cert, key = (section.get(name) or None for name in ("cacert", "cert", "key"))
    if cert and not key:
        key = cert  # one file has both, as with `etcd3`
    if key and not cert:
        raise SettingsError("etcd3aio: key is given, but no cert")
    protocol = str(section.get("protocol") or ("https" if ca or cert else "http")).lower()
    name, password = section.get("username"), section.get("password")
    url = section.get("proxy") or section.get("url")
    if url:
        parts, port = _split(str(url), _PORT)
        endpoints: tuple[str, ...] = (_url(parts.scheme, parts.hostname or "", port),)
        name, password = parts.username or name, parts.password or password
    else:
        endpoints = tuple(_endpoint(protocol, text, section.get("port")) for text in _hosts(section))
    srv = section.get("srv") or section.get("discovery_srv") or section.get("srv_domain") or ""
    if srv:
        endpoints = ()
    elif not endpoints:
        raise SettingsError("etcd3aio needs one of: host, hosts, srv, url, proxy")
    return Settings(
        endpoints,
        srv,
        section.get("srv_suffix") or "",
        ca,
        cert,
        key,
        (name, password) if name and password else None,
        any(url.startswith("http:") for url in endpoints) if endpoints else protocol == "http",
        not (section.get("proxy") or section.get("use_proxies")),
    )


def _hosts(section: Mapping[str, Any]) -> Iterable[str]:
    hosts = section.get("hosts") or section.get("host") or ()
    texts = map(str, hosts) if isinstance(hosts, list | tuple) else str(hosts).split(",")
    return [text.strip() for text in texts if text.strip()]


def _endpoint(protocol: str, text: str, port: object) -> str:
    if "://" in text:
        return text
    parts, number = _split(f"//{text}", port or _PORT)
    return _url(protocol, parts.hostname or "", number)


def _split(url: str, default_port: object) -> tuple[SplitResult, int]:
    """The parts of a URL, and its port."""
    try:
        parts = urlsplit(url)
        return parts, parts.port or int(str(default_port))
    except ValueError:  # its text may have a part of the password
        raise SettingsError("etcd3aio: a host, the url or the port has no port between 1 and 65535") from None


def _url(protocol: str, host: str, port: int) -> str:
    return f"{protocol}://{f'[{host}]' if ':' in host else host}:{port}"
