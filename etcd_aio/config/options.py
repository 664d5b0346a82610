"""The options of a client, each with its type, which decides how the option is checked and how it is read from text.

`Client` has the defaults and the meanings.
"""

import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypedDict, get_args, get_type_hints

from etcd_aio.arguments import is_encodable, one_of
from etcd_aio.balancer import POLICIES, Choice, PolicyName
from etcd_aio.base.call_options import RetryMode
from etcd_aio.base.deadline import deadline_after
from etcd_aio.config.text import Value, read_flag, read_seconds, read_seconds_or_none, read_size, read_word
from etcd_aio.config.tls import TLS
from etcd_aio.dataclass import dataclass
from etcd_aio.error_handler import RetryPolicy, TokenFunction
from etcd_aio.errors import ConfigError, InvalidRequestError
from etcd_aio.observing import Observer
from etcd_aio.transport import ENGINES, EngineFactory, EngineName
from etcd_aio.types import KeyLike

_MIN_KEEPALIVE_TIME: Final = 5.0  # seconds; etcd answers more frequent pings with GOAWAY
_MAX_MESSAGE: Final = 2**31 - 1  # bytes; the largest message that gRPC implementations accept
ENVIRONMENT: Final = "environment"
"""The value of `proxy` that takes the proxies from the environment."""

_NAME: Final = re.compile(r"[A-Za-z0-9._:/-]{0,64}", re.ASCII)  # no space and no %: it stands in formats of log lines
_LABEL: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9-]{0,40}[A-Za-z0-9])?)?", re.ASCII)


class ClientOptions(TypedDict, total=False):
    """The options of `Client` besides its endpoints."""

    tls: TLS | ssl.SSLContext | None
    auth: tuple[str, str] | None
    token: str | TokenFunction | None
    allow_insecure_auth: bool
    timeout: float | None
    connect_timeout: float
    policy: PolicyName | Choice
    engine: EngineName | EngineFactory
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
    proxy: str | None
    namespace: KeyLike | None
    observers: Sequence[Observer]
    name: str


def check_options(**options: object) -> None:
    """Check the values of all options, except `tls`, `auth` and `token`, which are checked where they are used.

    Raises:
        ConfigError: an option is invalid.
    """
    for name, kind in _OPTION_KINDS.items():
        kind.check(name, options[name])
    if not isinstance(options["retry_policy"], RetryPolicy | None):
        raise ConfigError("retry_policy must be a RetryPolicy")
    observers = options["observers"]
    if not isinstance(observers, list | tuple) or not all(isinstance(item, Observer) for item in observers):
        raise ConfigError("observers must be a list of objects whose classes are made from etcd_aio.observing.Observer")


def read_option(option: str, text: str, name: str = "") -> Value:
    """Parse the value of an option.

    Args:
        option: one of `TEXT_OPTIONS`.
        text: its value.
        name: the name that the error shows; the option's own name by default.

    Raises:
        ConfigError: the value is malformed; the message does not repeat it.
    """
    return _OPTION_KINDS[option].read(name or option, text)


def _check_seconds(name: str, value: object, otherwise: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ConfigError(f"{name} must be a number of seconds above 0{otherwise}; got {value!r}")
    if name == "keepalive_time" and value < _MIN_KEEPALIVE_TIME:
        raise ConfigError(f"keepalive_time must be at least {_MIN_KEEPALIVE_TIME:g} s: etcd refuses faster pings")


def _check_seconds_or_none(name: str, value: object) -> None:
    if value is None:
        return
    _check_seconds(name, value, " or None")
    if name == "timeout" and isinstance(value, int | float):
        try:
            deadline_after(value, 0.0)
        except InvalidRequestError as error:
            raise ConfigError(error.message) from None


def _check_size(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MAX_MESSAGE:
        raise ConfigError(f"{name} must be a number of bytes between 1 and {_MAX_MESSAGE}")


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be True or False")


def _check_label(name: str, value: object) -> None:
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise ConfigError(f"{name} must be a DNS name of letters, digits and '-'")


def _check_name(name: str, value: object) -> None:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ConfigError(f"{name} must be a text of at most 64 letters, digits and '.', '_', '-', ':', '/'")


def _check_namespace(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, KeyLike) or not value:
        raise ConfigError(f"{name} must be a prefix of keys, as text or bytes, and not empty")
    if isinstance(value, str) and not is_encodable(value):
        raise ConfigError(f"{name} has a lone surrogate, which is not text: pass bytes")


def _check_proxy(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} must be the URL of a proxy, 'environment', or None")
    if value != ENVIRONMENT:
        from etcd_aio.config.proxy_url import parse_proxy

        parse_proxy(value, name)


def _read_proxy(name: str, text: str) -> Value:
    proxy = None if text == "none" else text
    _check_proxy(name, proxy)
    return proxy


def _check_word(words: tuple[str, ...], *, or_function: bool = False) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        one_of(words, value, name, or_function=or_function, error=ConfigError)

    return check


@dataclass(frozen=True, slots=True)
class _OptionKind:
    """The check and the reader of the options of one type.

    Attributes:
        check: raises ConfigError if a value is invalid; gets the name of the option and the value.
        read: parses a text; gets the name for errors and the text.
    """

    check: Callable[[str, object], None]
    read: Callable[[str, str], Value]


_OPTION_KIND_OF_TYPE: Final[Mapping[object, _OptionKind]] = {
    bool: _OptionKind(_check_flag, read_flag),
    int: _OptionKind(_check_size, read_size),
    float: _OptionKind(_check_seconds, read_seconds),
    float | None: _OptionKind(_check_seconds_or_none, read_seconds_or_none),
    str: _OptionKind(_check_label, read_word),
    EngineName | EngineFactory: _OptionKind(_check_word(ENGINES, or_function=True), read_word),
    RetryMode: _OptionKind(_check_word(get_args(RetryMode)), read_word),
    PolicyName | Choice: _OptionKind(_check_word(POLICIES, or_function=True), read_word),
    KeyLike | None: _OptionKind(_check_namespace, read_word),
    str | None: _OptionKind(_check_proxy, _read_proxy),
}
_OPTION_KINDS: Final[Mapping[str, _OptionKind]] = {
    name: _OPTION_KIND_OF_TYPE[annotation]
    for name, annotation in get_type_hints(ClientOptions).items()
    if annotation in _OPTION_KIND_OF_TYPE
} | {"name": _OptionKind(_check_name, read_word)}

TEXT_OPTIONS: Final = frozenset(_OPTION_KINDS)
"""The options that can be given as text. The others are objects."""
