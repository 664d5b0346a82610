"""Settings: what a URL or the environment says, on its way to the client's own arguments.

Knows: the arguments of `Client`, as words and as types. Never knows: where a setting came from.
"""

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
    """The options of `Client` besides its endpoints; it has their meanings."""

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
    """What is said of TLS.

    Attributes:
        ca: file of the authorities to trust; empty for the system's.
        cert: file of the client's certificate.
        key: file of its private key.
        server_name: the name that every member's certificate must carry; empty for each one's own.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""
    server_name: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What was said.

    Attributes:
        endpoints: the endpoints; None if nothing was said of them.
        discovery_srv: the domain of the SRV records; empty for none.
        tls: None if nothing was said of TLS.
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
    """The arguments of `Client` besides its endpoints: what was said, unless `given` says otherwise.

    Raises:
        ConfigError: what was said of TLS contradicts itself.
    """
    said = cast("ClientOptions", dict(settings.options))  # by their readers they have their types
    if settings.tls is not None and "tls" not in given:
        said["tls"] = _tls(settings.tls)
    if "auth" not in given and "token" not in given:
        if settings.auth is not None:
            said["auth"] = settings.auth
        if settings.token:
            said["token"] = settings.token
    return {**said, **given}


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
    """True or False, in every spelling that Go takes, and some more.

    Args:
        name: what the user calls it.
        text: its value.

    Raises:
        ConfigError: it is neither. The text is not repeated.
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
"""The options of `Client` that a text can give."""


def read_option(option: str, text: str, name: str = "") -> Value:
    """The value of an option that was given as text.

    Args:
        option: one of `OPTIONS`.
        text: its value.
        name: what the user calls it; the option's own name by default.

    Raises:
        ConfigError: it is none. The text is not repeated.
    """
    return _READERS[option](name or option, text)
