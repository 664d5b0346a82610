"""The options of a client, checked before it is made."""

import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import get_args

from etcd_aio.balancer import POLICIES, Choice, Endpoint, PolicyName, Security, parse_endpoints
from etcd_aio.call_options import RetryMode
from etcd_aio.config.certificates import CertificateFiles
from etcd_aio.config.tls import TLS
from etcd_aio.deadline import deadline_after
from etcd_aio.discovery import Resolver, SrvResolver, StaticResolver, require_dnspython
from etcd_aio.error_handler import Credentials, RetryPolicy
from etcd_aio.errors import ConfigError, InvalidRequestError
from etcd_aio.transport import ENGINES, EngineName, TLSContext, TransportOptions

DEFAULT_ENDPOINT = "127.0.0.1:2379"  # etcd's default client URL
_MIN_KEEPALIVE_TIME = 5.0  # seconds; etcd answers more frequent pings with GOAWAY
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,40}[A-Za-z0-9])?", re.ASCII)
_DOMAIN = re.compile(
    r"(?=.{1,200}$)([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_-]{1,63}\.?", re.ASCII
)
_MAX_MESSAGE = 2**31 - 1  # bytes; the largest message that gRPC implementations accept


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """A checked configuration. See `Client` for the options."""

    endpoints: tuple[Endpoint, ...]
    tls: TLS | ssl.SSLContext | None = field(repr=False)
    timeout: float | None
    connect_timeout: float
    policy: PolicyName | Choice
    engine: EngineName
    retry: RetryMode
    retry_policy: RetryPolicy
    require_leader: bool
    keepalive_time: float
    keepalive_timeout: float
    max_send_bytes: int
    max_receive_bytes: int
    credentials: Credentials | None = None
    allow_insecure_auth: bool = False
    hedge_after: float | None = None
    auto_sync: float | None = None
    discovery_srv: str = ""
    discovery_srv_name: str = ""
    reject_old_cluster: bool = False
    fail_fast: bool = False
    _tls: TLSContext = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.timeout is not None:
            _positive("timeout", self.timeout, " or None for no limit")
            try:
                deadline_after(self.timeout, 0.0)
            except InvalidRequestError as error:
                raise ConfigError(error.message) from None
        _positive("connect_timeout", self.connect_timeout)
        _positive("keepalive_timeout", self.keepalive_timeout)
        _positive("keepalive_time", self.keepalive_time)
        if self.keepalive_time < _MIN_KEEPALIVE_TIME:
            raise ConfigError(f"keepalive_time must be at least {_MIN_KEEPALIVE_TIME:g} s: etcd refuses faster pings")
        _one_of("engine", self.engine, ENGINES)
        _one_of("retry", self.retry, get_args(RetryMode))
        if not callable(self.policy):
            _one_of("policy", self.policy, POLICIES)
        if not isinstance(self.retry_policy, RetryPolicy):
            raise ConfigError("retry_policy must be a RetryPolicy")
        for name in ("max_send_bytes", "max_receive_bytes"):
            size: object = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= _MAX_MESSAGE:
                raise ConfigError(f"{name} must be a number of bytes between 1 and {_MAX_MESSAGE}")
        if self.hedge_after is not None:
            _positive("hedge_after", self.hedge_after)
        if self.auto_sync is not None:
            _positive("auto_sync", self.auto_sync)
        for name, pattern in (("discovery_srv", _DOMAIN), ("discovery_srv_name", _LABEL)):
            word: object = getattr(self, name)
            if not isinstance(word, str) or (word and not pattern.fullmatch(word)):
                raise ConfigError(f"{name} must be a DNS name of letters, digits and '-'")
        if self.discovery_srv:
            if self.endpoints:
                raise ConfigError("pass either endpoints or discovery_srv, which takes the endpoints from DNS")
            require_dnspython()
        elif self.discovery_srv_name:
            raise ConfigError("discovery_srv_name needs discovery_srv")
        object.__setattr__(self, "_tls", _tls_context(self.tls))
        for name in ("allow_insecure_auth", "fail_fast"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} must be True or False")
        self.check_secrecy(self.endpoints)

    def check_secrecy(self, endpoints: Iterable[Endpoint]) -> None:
        """Check that these endpoints get no password or token in plain text. Unix sockets are safe.

        Raises:
            ConfigError: an endpoint would, and `allow_insecure_auth` is not set.
        """
        if self.credentials is None or self.allow_insecure_auth:
            return
        for endpoint in endpoints:
            if endpoint.host and self.tls_for(endpoint) is None:
                raise ConfigError(
                    f"credentials would go to {endpoint.name} in plain text: use https:// or tls=, "
                    "or pass allow_insecure_auth=True"
                )

    def transport_options(self, user_agent: str) -> TransportOptions:
        """The options of the engine."""
        return TransportOptions(
            connect_timeout=self.connect_timeout,
            keepalive_time=self.keepalive_time,
            keepalive_timeout=self.keepalive_timeout,
            max_receive_bytes=self.max_receive_bytes,
            user_agent=user_agent,
        )

    def tls_for(self, endpoint: Endpoint) -> TLSContext | None:
        """The TLS context for `endpoint`, or its source; None for plaintext.

        An endpoint with TLS never gets plaintext: without `tls` it is verified with the system's root certificates.
        """
        if endpoint.security is Security.PLAINTEXT or (endpoint.security is Security.OPTIONAL and self.tls is None):
            return None
        return self._tls

    def resolver(self) -> Resolver:
        """The source of the endpoints."""
        if not self.discovery_srv:
            return StaticResolver(self.endpoints)
        domain = self.discovery_srv.lower().removesuffix(".")
        tls = self.tls
        # A context has its own authorities. With one name for all members, DNS cannot decide which member is trusted.
        has_own_ca = tls is not None if not isinstance(tls, TLS) else bool(tls.ca or tls.server_name)
        return SrvResolver(domain, self.discovery_srv_name.lower(), has_tls=tls is not None, has_own_ca=has_own_ca)


def endpoints_from(endpoints: str | Iterable[str] | None) -> tuple[Endpoint, ...]:
    """Parse endpoints; None is etcd's default endpoint."""
    return parse_endpoints(DEFAULT_ENDPOINT if endpoints is None else endpoints)


def _tls_context(tls: object) -> TLSContext:
    if tls is None:
        return CertificateFiles(TLS())  # reads no file until an endpoint needs it
    if isinstance(tls, TLS):
        files = CertificateFiles(tls)
        files.check()
        return files
    if not isinstance(tls, ssl.SSLContext):
        raise ConfigError("tls must be a TLS(...) or an ssl.SSLContext")
    if tls.protocol is ssl.PROTOCOL_TLS_SERVER:
        raise ConfigError("tls must be a context for clients, such as ssl.create_default_context() returns")
    tls.set_alpn_protocols(["h2"])  # gRPC is HTTP/2 only; without ALPN, Go's TLS servers speak HTTP/1
    return tls


def _positive(name: str, value: object, otherwise: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ConfigError(f"{name} must be a number of seconds above 0{otherwise}; got {value!r}")


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")
