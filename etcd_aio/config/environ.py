"""The client's options from etcdctl's environment variables, and ETCD_PROXY. Pure: the variables are an argument.

| variable | argument |
| --- | --- |
| ETCDCTL_ENDPOINTS | endpoints |
| ETCDCTL_DISCOVERY_SRV, ETCDCTL_DISCOVERY_SRV_NAME | discovery_srv, discovery_srv_name |
| ETCDCTL_USER (name or name:password), ETCDCTL_PASSWORD | auth |
| ETCDCTL_AUTH_JWT_TOKEN | token |
| ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY | tls |
| ETCDCTL_DIAL_TIMEOUT, ETCDCTL_COMMAND_TIMEOUT | connect_timeout, timeout |
| ETCDCTL_KEEPALIVE_TIME, ETCDCTL_KEEPALIVE_TIMEOUT | keepalive_time (at least 10 s, as in Go), keepalive_timeout |
| ETCDCTL_MAX_REQUEST_BYTES, ETCDCTL_MAX_RECV_BYTES | max_send_bytes, max_receive_bytes |
| ETCDCTL_INSECURE_TRANSPORT | false requires TLS; true, etcdctl's default, has no effect |
| ETCDCTL_INSECURE_DISCOVERY | false accepts only SRV records of members with TLS |
| ETCDCTL_INSECURE_SKIP_TLS_VERIFY | true is refused: a forgotten variable must not switch verification off |
| ETCD_AIO_TLS_RECONNECT | reconnect of tls, if one of the variables above asks for TLS; it is no variable of etcdctl |
| ETCD_PROXY | proxy; `off`, `on` and `readonly` are a setting of etcd itself and have no effect |

An empty variable counts as unset, and so does a size of 0. Other variables of etcdctl are about its output and are
ignored.
"""

from collections.abc import Mapping
from typing import Final, cast

from etcd_aio.config.options import read_option
from etcd_aio.config.settings import Settings, TLSFiles
from etcd_aio.config.text import PREFIX, PROXY, RECONNECT_VARIABLE, Value, read_flag
from etcd_aio.errors import ConfigError

_OPTIONS: Final[Mapping[str, str]] = {
    "COMMAND_TIMEOUT": "timeout",
    "DIAL_TIMEOUT": "connect_timeout",
    "DISCOVERY_SRV_NAME": "discovery_srv_name",
    "KEEPALIVE_TIME": "keepalive_time",
    "KEEPALIVE_TIMEOUT": "keepalive_timeout",
    "MAX_RECV_BYTES": "max_receive_bytes",
    "MAX_REQUEST_BYTES": "max_send_bytes",
}
_OF_SERVERS: Final = ("off", "on", "readonly")  # etcd up to 3.5 has a setting with the same variable
_FILES: Final[Mapping[str, str]] = {"CACERT": "ca", "CERT": "cert", "KEY": "key"}
_LEAST_KEEPALIVE_TIME: Final = 10.0  # gRPC for Go raises smaller values to it; etcdctl's default is 2 s


def read_environment(environ: Mapping[str, str], *, has_tls: bool = False) -> Settings:
    """The settings in the variables.

    Args:
        environ: all variables.
        has_tls: the caller passes `tls`, so the variables about TLS are ignored.

    Raises:
        ConfigError: a variable is malformed, or contradicts another; the message repeats no value.
    """
    variables = {
        name.removeprefix(PREFIX): value for name, value in environ.items() if name.startswith(PREFIX) and value
    }
    if not has_tls and _flag(variables, "INSECURE_SKIP_TLS_VERIFY"):
        raise ConfigError(f"{PREFIX}INSECURE_SKIP_TLS_VERIFY is refused: pass tls= an ssl.SSLContext to do that")
    options: dict[str, Value] = {
        option: read_option(option, variables[name], PREFIX + name)
        for name, option in _OPTIONS.items()
        if name in variables
    }
    for option in ("max_send_bytes", "max_receive_bytes"):
        if options.get(option) == 0:  # etcdctl's default, which means the default of the Go client
            del options[option]
    keepalive_time = options.get("keepalive_time")
    if isinstance(keepalive_time, float):
        options["keepalive_time"] = max(keepalive_time, _LEAST_KEEPALIVE_TIME)
    domain = variables.get("DISCOVERY_SRV", "")
    if domain and "ENDPOINTS" in variables:
        raise ConfigError(f"{PREFIX}ENDPOINTS and {PREFIX}DISCOVERY_SRV exclude each other")
    if not domain:
        options.pop("discovery_srv_name", None)
    proxy = environ.get(PROXY, "")
    proxy = "" if not proxy or proxy in _OF_SERVERS else str(read_option("proxy", proxy, PROXY) or "")
    return Settings(
        endpoints=tuple(variables["ENDPOINTS"].split(",")) if "ENDPOINTS" in variables else None,
        discovery_srv=domain,
        tls=None if has_tls else _tls(variables, environ.get(RECONNECT_VARIABLE, "")),
        auth=_auth(variables),
        token=variables.get("AUTH_JWT_TOKEN", ""),
        proxy=proxy,
        options=options,
    )


def _auth(variables: Mapping[str, str]) -> tuple[str, str] | None:
    user, password = variables.get("USER", ""), variables.get("PASSWORD", "")
    if not user:
        if password:
            raise ConfigError(f"{PREFIX}PASSWORD needs {PREFIX}USER")
        return None
    if not password:
        user, _, password = user.partition(":")
        if not user or not password:
            raise ConfigError(f"{PREFIX}USER needs a password: name:password, or {PREFIX}PASSWORD")
    return user, password


def _tls(variables: Mapping[str, str], reconnect: str) -> TLSFiles | None:
    if ("CERT" in variables) != ("KEY" in variables):
        raise ConfigError(f"{PREFIX}CERT and {PREFIX}KEY need each other")
    files: dict[str, str | bool] = {option: variables[name] for name, option in _FILES.items() if name in variables}
    is_asked_for = not _flag(variables, "INSECURE_TRANSPORT", default=True) or (
        "DISCOVERY_SRV" in variables and not _flag(variables, "INSECURE_DISCOVERY", default=True)
    )
    if not files and not is_asked_for:
        return None
    if reconnect:
        files["reconnect"] = read_flag(RECONNECT_VARIABLE, reconnect)
    return cast("TLSFiles", files)


def _flag(variables: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    return read_flag(PREFIX + name, variables[name]) if name in variables else default
