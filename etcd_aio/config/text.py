"""Options of `Client` that are given as text: by a connection URL, or by environment variables."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypedDict, cast

from etcd_aio.balancer import Choice, PolicyName
from etcd_aio.call_options import RetryMode
from etcd_aio.config.durations import parse_duration
from etcd_aio.config.tls import TLS
from etcd_aio.error_handler import RetryPolicy, TokenFunction
from etcd_aio.errors import ConfigError
from etcd_aio.transport import EngineName

Value: TypeAlias = str | bool | int | float | None


class ClientOptions(TypedDict, total=False):
    """The options of `Client` besides its endpoints, which are described there."""

    tls: TLS | ssl.SSLContext | None
    auth: tuple[str, str] | None
    token: str | TokenFunction | None
    allow_insecure_auth: bool
    timeout: float | None
    connect_timeout: float
    policy: PolicyName | Choice
    engine: EngineName
    retry: RetryMode
    retry_policy: RetryPolicy | None
    require_leader: bool
    keepalive_time: float
    keepalive_timeout: float
    max_send_bytes: int
    max_receive_bytes: int
    hedge_after: float | None
    auto_sync: float | None
    discovery_srv_name: str
    reject_old_cluster: bool
    fail_fast: bool


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """The TLS options of a URL or of the environment.

    Attributes:
        ca: file with the authorities to trust; empty for the system's.
        cert: file with the client's certificate.
        key: file with its private key.
        server_name: the name that every member's certificate must carry; empty for the host name of each endpoint.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """The content of a URL or of the environment.

    Attributes:
        endpoints: the endpoints; None if there are none.
        discovery_srv: the domain of the SRV records; empty for none.
        tls: None without TLS options.
        auth: name and password.
        token: a token.
        options: other options of `Client`, by name.
    """

    endpoints: tuple[str, ...] | None = None
    discovery_srv: str = ""
    tls: TLSFiles | None = None
    auth: tuple[str, str] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    options: Mapping[str, Value] = field(default_factory=dict)


def client_options(settings: Settings, given: ClientOptions) -> ClientOptions:
    """The options for `Client`: those of `settings`, replaced by those in `given`.

    Raises:
        ConfigError: the TLS options contradict each other.
    """
    options = cast("ClientOptions", dict(settings.options))  # the readers have given them these types
    if settings.tls is not None and "tls" not in given:
        options["tls"] = _tls(settings.tls)
    if "auth" not in given and "token" not in given:
        if settings.auth is not None:
            options["auth"] = settings.auth
        if settings.token:
            options["token"] = settings.token
    return {**options, **given}


def _tls(files: TLSFiles) -> TLS:
    return TLS(
        ca=files.ca or None,
        cert=files.cert or None,
        key=files.key or None,
        server_name=files.server_name or None,
    )


def _seconds(name: str, text: str) -> float:
    found = parse_duration(text)
    if found is None:
        raise ConfigError(f"{name} must be a duration such as 3s, 500ms or 1m30s, or a number of seconds")
    return found


def _seconds_or_none(name: str, text: str) -> float | None:
    return None if text == "none" else _seconds(name, text)


def read_flag(name: str, text: str) -> bool:
    """True or False, in every spelling that Go accepts, and in mixed case.

    Args:
        name: the name that the error shows.
        text: its value.

    Raises:
        ConfigError: the text is something else; the message does not repeat it.
    """
    found = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(text.lower())
    if found is None:
        raise ConfigError(f"{name} must be true or false")
    return found


def _bytes(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ConfigError(f"{name} must be a number of bytes")
    return int(text)


def _word(name: str, text: str) -> str:
    if not text:
        raise ConfigError(f"{name} must not be empty")
    return text


_READERS: Final[Mapping[str, Callable[[str, str], Value]]] = {
    "timeout": _seconds_or_none,
    "connect_timeout": _seconds,
    "policy": _word,
    "engine": _word,
    "retry": _word,
    "require_leader": read_flag,
    "keepalive_time": _seconds,
    "keepalive_timeout": _seconds,
    "max_send_bytes": _bytes,
    "max_receive_bytes": _bytes,
    "hedge_after": _seconds_or_none,
    "auto_sync": _seconds_or_none,
    "discovery_srv_name": _word,
    "reject_old_cluster": read_flag,
    "fail_fast": read_flag,
    "allow_insecure_auth": read_flag,
}

OPTIONS: Final = frozenset(_READERS)
"""The options of `Client` that can be given as text."""


def read_option(option: str, text: str, name: str = "") -> Value:
    """Parse the value of an option.

    Args:
        option: one of `OPTIONS`.
        text: its value.
        name: the name that the error shows; the option's own name by default.

    Raises:
        ConfigError: the value is malformed; the message does not repeat it.
    """
    return _READERS[option](name or option, text)
