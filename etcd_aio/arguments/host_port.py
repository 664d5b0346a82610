"""The grammar of `host:port`, which endpoints, connection URLs and peer URLs share."""

import re
from typing import Final

_HOST: Final = re.compile(r"[a-z0-9._-]+")  # names as DNS and container networks have them, and IPv4 addresses
_PORT: Final = re.compile(r"[0-9]{1,5}")


def split_host_port(text: str) -> tuple[str, int | None]:
    """Host, in its canonical spelling, and port of `host`, `host:port`, `[IPv6]` or `[IPv6]:port`.

    Returns:
        The host without brackets; the port, None if there is none.

    Raises:
        ValueError: the text is something else. The message continues "<the text> ...", and repeats nothing of it.
    """
    if text.startswith("["):
        address, bracket, tail = text[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise ValueError("has an unfinished [IPv6] address")
        from ipaddress import AddressValueError, IPv6Address

        try:
            host = str(IPv6Address(address))
        except AddressValueError:
            raise ValueError("has a malformed [IPv6] address") from None
        has_port, port = bool(tail), tail[1:]
    else:
        if text.count(":") > 1:
            raise ValueError("has an IPv6 address without brackets: write [::1]:2379")
        name, colon, port = text.partition(":")
        host, has_port = name.lower(), bool(colon)
        if not host:
            raise ValueError("has no host")
        if not _HOST.fullmatch(host):
            raise ValueError("has a host with other characters than letters, digits, '-', '_' and '.' (IDN as xn--...)")
    if not has_port:
        return host, None
    if not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise ValueError("has no port between 1 and 65535")
    return host, int(port)


def join_host_port(host: str, port: int) -> str:
    """`host:port`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
