"""Settings: the content of a connection URL or of environment variables, before it becomes options of `Client`."""

from collections.abc import Mapping
from dataclasses import field
from typing import TypedDict, cast

from etcd_aio.config.options import ClientOptions
from etcd_aio.config.text import Value
from etcd_aio.config.tls import TLS
from etcd_aio.dataclass import dataclass


class TLSFiles(TypedDict, total=False):
    """The options of `TLS` that can be given as text."""

    ca: str
    cert: str
    key: str
    server_name: str
    reconnect: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """The content of a URL or of the environment.

    Attributes:
        endpoints: the endpoints; None if there are none.
        discovery_srv: the domain of the SRV records; empty for none.
        tls: None without TLS options.
        auth: name and password.
        token: a token.
        proxy: the URL of a proxy, or `environment`; empty for none.
        options: other options of `Client`, by name.
    """

    endpoints: tuple[str, ...] | None = None
    discovery_srv: str = ""
    tls: TLSFiles | None = None
    auth: tuple[str, str] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)
    options: Mapping[str, Value] = field(default_factory=dict)


def client_options(settings: Settings, given: ClientOptions) -> ClientOptions:
    """The options for `Client`: those of `settings`, replaced by those in `given`.

    Raises:
        ConfigError: the TLS options contradict each other.
    """
    options = cast("ClientOptions", dict(settings.options))  # the readers have given them these types
    if settings.tls is not None and "tls" not in given:
        options["tls"] = TLS(**settings.tls)
    if settings.proxy:
        options["proxy"] = settings.proxy
    if "auth" not in given and "token" not in given:
        if settings.auth is not None:
            options["auth"] = settings.auth
        if settings.token:
            options["token"] = settings.token
    return {**options, **given}
