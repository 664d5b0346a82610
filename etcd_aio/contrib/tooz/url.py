"""Settings: what the URL of a coordinator says. Pure.

    etcd3+aio://[name:password@]host[:port][,host[:port]...][/[namespace]][?option=value&...]

With `dns=true` the hosts are DNS names, each of whose addresses is a member. Besides the options of the driver, these
are the options of `Client`, by their names, but for its `timeout`, which is `call_timeout` here: `timeout` has had
another meaning in tooz for long.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final
from urllib.parse import quote, urlencode

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import ConfigError

_DEFAULT_HOST: Final = "127.0.0.1:2379"
_DEFAULT_NAMESPACE: Final = "tooz/"
_DEFAULT_TIMEOUT: Final = 30  # seconds, as of tooz's other drivers
_DEFAULT_CALL_TIMEOUT: Final = 10  # seconds; a member may need 7 to tell that a write was lost with the leader
_TLS_FILES: Final = {"ca_cert": "ca", "cert_cert": "cert", "cert_key": "key"}  # as tooz's etcd3gw driver calls them
_TLS_OPTIONS: Final = frozenset({"ca", "cert", "key", "server_name", "reconnect"})
_OF_TOOZ: Final = frozenset({"executor"})
_FLAGS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a coordinator.

    Attributes:
        url: of the client.
        options: of the client that are no texts.
        membership_timeout: seconds that a member stays in its groups without a heartbeat.
        lock_timeout: seconds that locks and leaderships outlive a crash of the process.
        call_timeout: seconds for a call.
    """

    url: str = field(repr=False)  # has the password
    options: Mapping[str, Any] = field(repr=False)
    membership_timeout: int
    lock_timeout: int
    call_timeout: int


def read_settings(hosts: str, path: str, options: Mapping[str, Any]) -> Settings:
    """Read a URL that tooz has taken apart.

    Args:
        hosts: with the credentials, as in the URL.
        path: of the URL.
        options: those of its query, and the keyword arguments of `get_coordinator`.

    Raises:
        ConfigError: an option is invalid. What the client is given is checked by the client.
    """
    given = {_TLS_FILES.get(name, name): value for name, value in options.items() if name not in _OF_TOOZ}
    timeout = _seconds(given, "timeout", _DEFAULT_TIMEOUT)
    membership_timeout = _seconds(given, "membership_timeout", timeout)
    lock_timeout = _seconds(given, "lock_timeout", timeout)
    call_timeout = _seconds(given, "call_timeout", _DEFAULT_CALL_TIMEOUT)
    given["timeout"] = str(call_timeout)
    is_dns = _take_flag(given, "dns")
    is_tls = _has_tls(given) or bool(_TLS_OPTIONS & given.keys())
    namespace = path.strip("/")
    if "namespace" not in given:
        given["namespace"] = f"{namespace}/" if namespace else _DEFAULT_NAMESPACE
    elif namespace:
        raise ConfigError("the URL of the coordinator has two namespaces: its path, and the option namespace")
    query = urlencode({name: value for name, value in given.items() if isinstance(value, str)}, quote_via=quote)
    url = f"{'etcds' if is_tls else 'etcd'}{'+dns' if is_dns else ''}://{hosts or _DEFAULT_HOST}?{query}"
    others = {name: value for name, value in given.items() if not isinstance(value, str)}
    return Settings(url, others, membership_timeout, lock_timeout, call_timeout)


def _seconds(options: dict[str, Any], name: str, default: int) -> int:
    """Take the option of the driver."""
    value = options.pop(name, default)
    try:
        seconds = int(value)
    except (TypeError, ValueError, OverflowError):
        seconds = 0
    if seconds < 1:
        raise ConfigError(f"option {name} of the coordinator must be whole seconds, at least 1, not {value!r}")
    return seconds


def _has_tls(options: dict[str, Any]) -> bool:
    """Whether the option `tls` asks for it; a flag is taken, since the client has it in its scheme."""
    value = options.get("tls")
    if not isinstance(value, str | bool | None):
        return True  # the settings of TLS themselves
    return _take_flag(options, "tls")


def _take_flag(options: dict[str, Any], name: str) -> bool:
    """Take an option that is true or false; by default it is false."""
    value = options.pop(name, None)
    flag = _FLAGS.get(value.lower()) if isinstance(value, str) else value
    if value is None or isinstance(flag, bool):
        return bool(flag)
    raise ConfigError(f"option {name} of the coordinator must be true or false, not {value!r}")
