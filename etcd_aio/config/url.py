"""Connection URLs: the endpoints, credentials and options of a client in one text. Pure.

    etcd://[name:password@]host[:port][,host[:port]...][/[namespace]][?option=value&...]     plaintext
    etcds://...                                                                              TLS
    etcd+unix:///path, etcds+unix:///path                                                    a unix socket
    etcd+srv://domain[/[namespace]], etcds+srv://domain...                                   from DNS SRV records
    etcd+dns://name[:port][,...][/[namespace]], etcds+dns://name...                          each address of DNS names

The namespace is all of the path after its first slash. Name, password, path and values are percent-decoded. Options
are those of `Client`, by its names; with TLS also `ca`, `cert`, `key` (files), `server_name` and `reconnect`. Errors
repeat nothing of the URL: a password that was not percent-encoded may end up in any other part.
"""

import re
from typing import Final, cast
from urllib.parse import unquote_to_bytes

from etcd_aio.arguments import split_host_port
from etcd_aio.config.options import TEXT_OPTIONS, read_option
from etcd_aio.config.settings import Settings, TLSFiles
from etcd_aio.config.text import Value, read_flag
from etcd_aio.errors import ConfigError

_URL: Final = re.compile(r"(etcds?)(\+unix|\+srv|\+dns)?://([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.ASCII | re.IGNORECASE)
_SCHEMES: Final = "etcd or etcds, perhaps with +unix, +srv or +dns"
_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def parse_url(url: str) -> Settings:
    """Parse a connection URL.

    Raises:
        ConfigError: the URL is malformed; the message repeats no secret.
        TypeError: it is not a str.
    """
    if not isinstance(url, str):
        raise TypeError(f"a connection URL must be a str, not {type(url).__name__}")
    if not url.isprintable() or any(character.isspace() for character in url):
        raise ConfigError("a connection URL must not contain white space or control characters: percent-encode them")
    if "#" in url:
        raise ConfigError("a connection URL cannot contain '#': write %23 in a name, password or value")
    match = _URL.fullmatch(url)
    if match is None:
        raise ConfigError(f"a connection URL begins with {_SCHEMES}, followed by ://")
    scheme, kind, place, path, query = match.group(1).lower(), (match.group(2) or "").lower(), *match.group(3, 4, 5)
    if "@" in path or "@" in (query or ""):
        raise ConfigError(
            "the connection URL has '@' after its hosts: percent-encode '@/?#' in a name, password or value"
        )
    is_tls = scheme == "etcds"
    credentials, separator, hosts = place.rpartition("@")
    auth = _credentials(credentials) if separator else None
    options, files = _query(query or "", is_tls)
    proxy = str(options.pop("proxy", None) or "")
    tls = files if files or (is_tls and kind == "+srv") else None
    if kind != "+unix" and len(path) > 1:
        if "namespace" in options:
            raise ConfigError("the connection URL has two namespaces: its path, and the option namespace")
        options["namespace"] = _decoded(path[1:], "the path")
    if kind == "+srv":
        return Settings(discovery_srv=_domain(hosts), tls=tls, auth=auth, proxy=proxy, options=options)
    if "discovery_srv_name" in options:
        raise ConfigError("discovery_srv_name needs a URL that begins with etcd+srv or etcds+srv")
    endpoints = (_socket(hosts, path, is_tls),) if kind == "+unix" else _hosts(hosts, kind, is_tls)
    return Settings(endpoints=endpoints, tls=tls, auth=auth, proxy=proxy, options=options)


def _credentials(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if "@" in text or ":" in password:
        raise ConfigError("a connection URL can have one percent-encoded name:password@, before its first host")
    if not name or not colon or not password:
        raise ConfigError("the connection URL needs both a name and a password before '@'")
    return _decoded(name, "the name"), _decoded(password, "the password")


def _hosts(text: str, kind: str, is_tls: bool) -> tuple[str, ...]:
    if not text:
        raise ConfigError("a connection URL needs a host; etcd's default is 127.0.0.1:2379")
    hosts = text.split(",")
    for number, host in enumerate(hosts, start=1):
        if not _is_host(host):
            raise ConfigError(f"host #{number} of the connection URL must be host, host:port or [IPv6]:port")
    endpoints = tuple(f"{'https' if is_tls else 'http'}{kind}://{host}" for host in hosts)
    if kind:
        from etcd_aio.balancer import parse_sources

        parse_sources(endpoints)  # not every host is a DNS name; its errors repeat nothing
    return endpoints


def _socket(hosts: str, path: str, is_tls: bool) -> str:
    if hosts:
        raise ConfigError("the URL of a unix socket has an absolute path and no host: etcd+unix:///path")
    decoded = _decoded(path, "the path")
    if not decoded.strip("/") or not decoded.isprintable() or any(character.isspace() for character in decoded):
        raise ConfigError("the URL of a unix socket needs a path without white space: etcd+unix:///path")
    return f"{'unixs' if is_tls else 'unix'}://{decoded}"


def _domain(text: str) -> str:
    if not _is_host(f"{text}:1"):
        raise ConfigError("a URL with +srv needs one domain without a port: etcd+srv://example.com")
    return text


def _is_host(text: str) -> bool:
    """Whether it is a host, with or without a port. Checked here, since the endpoint parser repeats wrong endpoints."""
    try:
        split_host_port(text)
    except ValueError:
        return False
    return "%" not in text  # zones of IPv6 addresses would need percent-encoding


def _query(text: str, is_tls: bool) -> tuple[dict[str, Value], TLSFiles]:
    options: dict[str, Value] = {}
    files: dict[str, str | bool] = {}
    known = TEXT_OPTIONS | TLSFiles.__annotations__.keys()
    for number, part in enumerate(filter(None, text.split("&")), start=1):
        name, _, encoded = part.partition("=")
        if name not in known:
            from difflib import get_close_matches  # with the first mistake

            near = get_close_matches(name, sorted(known), n=1)
            if near:  # a misspelt name, so not a part of a secret
                raise ConfigError(f"unknown option {name!r} in the connection URL; did you mean {near[0]!r}?")
            raise ConfigError(f"unknown option #{number} in the connection URL")
        if name in options or name in files:
            raise ConfigError(f"option {name} is given twice in the connection URL")
        value = _decoded(encoded, f"option {name}")
        if name in TEXT_OPTIONS:
            options[name] = read_option(name, value)
        elif not is_tls:
            raise ConfigError(f"option {name} needs a URL that begins with etcds")
        elif not value:
            raise ConfigError(f"option {name} must not be empty")
        else:
            files[name] = read_flag(name, value) if name == "reconnect" else value
    return options, cast("TLSFiles", files)


def _decoded(text: str, what: str) -> str:
    if not _PERCENT.search(text):
        raw = unquote_to_bytes(text)
        if b"\0" not in raw and _is_utf8(raw):
            return raw.decode()
    raise ConfigError(f"{what} in the connection URL is not percent-encoded UTF-8")


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:  # it holds the text, so it must not become the context of another error
        return False
    return True
