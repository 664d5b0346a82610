"""URLs of proxies: `http://name:password@host:3128`. Pure.

The schemes are http, https, socks5 (names are resolved here) and socks5h (names are resolved by the proxy). Name and
password are percent-decoded. Errors repeat nothing of the URL, since it may have a password in any part.
"""

import re
from collections.abc import Mapping
from typing import Final

from etcd_aio.arguments import split_host_port
from etcd_aio.errors import ConfigError
from etcd_aio.transport import Proxy

_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}  # as in Go
_SCHEMES: Final = "http://, https://, socks5:// or socks5h://"
_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MOST_BYTES: Final = 255  # of a name or a password; SOCKS cannot send more
_FORM: Final = "name:password@host:port, with name and password percent-encoded"


def parse_proxy(text: str, option: str = "proxy") -> Proxy:
    """Parse the URL of a proxy. A proxy of scheme https still needs its TLS context.

    Args:
        text: the URL.
        option: the name that errors show.

    Raises:
        ConfigError: the URL is malformed.
    """
    if not text.isprintable() or any(character.isspace() for character in text):
        raise ConfigError(f"{option} must not contain white space or control characters: percent-encode them")
    scheme, separator, rest = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _PORTS:
        raise ConfigError(f"{option} must begin with {_SCHEMES}")
    rest = rest.removesuffix("/")
    if re.search(r"[/?#]", rest):
        raise ConfigError(f"{option} must be {scheme}://{_FORM}, and nothing after it")
    credentials, at, place = rest.rpartition("@")
    user, password = _credentials(credentials, option, scheme) if at else ("", "")
    host, port = _place(place, option)
    return Proxy(scheme, host, _PORTS[scheme] if port is None else port, user, password)


def _place(text: str, option: str) -> tuple[str, int | None]:
    try:
        return split_host_port(text)
    except ValueError:
        pass  # its text is the reason for nothing that is raised here
    raise ConfigError(f"{option} needs host, host:port or [IPv6]:port after its scheme")


def _credentials(text: str, option: str, scheme: str) -> tuple[str, str]:
    name, _, password = text.partition(":")
    if "@" in text or ":" in password:
        raise ConfigError(f"{option} must be {scheme}://{_FORM}")
    user, secret = _decoded(name, option), _decoded(password, option)
    if not user or (scheme.startswith("socks") and not secret):
        raise ConfigError(f"{option} needs {'both name and password' if user else 'a name'} before '@'")
    if ":" in user and not scheme.startswith("socks"):
        raise ConfigError(f"the name in {option} must not contain ':', which ends it in HTTP")
    return user, secret


def _decoded(text: str, option: str) -> str:
    from urllib.parse import unquote_to_bytes

    raw = b"" if _PERCENT.search(text) else unquote_to_bytes(text)
    decoded = raw.decode(errors="replace")
    is_whole = bool(raw) == bool(text) and decoded.encode() == raw
    if not is_whole or not (decoded.isprintable() and len(raw) <= _MOST_BYTES):
        raise ConfigError(f"a name or password in {option} must be percent-encoded text of at most {_MOST_BYTES} bytes")
    return decoded
