"""Peer URLs: where a member is to be reached by the others, checked before anything is sent.

Knows: the forms that etcd accepts. Never knows: whether anybody is there. Pure.

    http://host:port     https://host:port     unix://path     unixs://path

etcd checks the same, but a wrong host or port is only found when the member does not come up, with a cluster that has
one vote more to reach.
"""

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from etcd_aio.errors import InvalidRequestError

_HOST: Final = re.compile(r"[A-Za-z0-9._-]+")
_PORT: Final = re.compile(r"[0-9]{1,5}")


def peer_urls(given: str | Iterable[str]) -> list[str]:
    """The URLs as they are sent: a list of them, or one comma-separated text; repeated ones count once.

    Raises:
        InvalidRequestError: there is none, or one of them is wrong. The message does not repeat credentials.
        TypeError: one of them is no str.
    """
    texts = given.split(",") if isinstance(given, str) else list(given)
    if not texts:
        raise InvalidRequestError("a member needs at least one peer URL")
    return list(dict.fromkeys(_checked(text) for text in texts))


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a peer URL must be str, got {type(text).__name__}")
    url = text.strip()
    if not url:
        raise InvalidRequestError("a peer URL must not be empty")
    if not url.isprintable() or any(character.isspace() for character in url):
        raise InvalidRequestError("a peer URL must not contain white space or control characters")
    scheme, separator, rest = url.partition("://")
    match scheme.lower() if separator else "":
        case "unix" | "unixs":
            if not rest.strip("/"):
                raise InvalidRequestError(f"peer URL {url!r} has no path")
        case "http" | "https":
            if "@" in rest:
                raise InvalidRequestError("a peer URL must not carry credentials")
            if any(mark in rest for mark in "/?#"):
                raise InvalidRequestError(f"peer URL {url!r} has more than host and port")
            _check_place(url, rest)
        case _:
            raise InvalidRequestError("a peer URL begins with http://, https://, unix:// or unixs://")
    return url


def _check_place(url: str, place: str) -> None:
    if place.startswith("["):
        host, _, tail = place[1:].partition("]")
        try:
            IPv6Address(host)
        except AddressValueError:
            raise InvalidRequestError(f"peer URL {url!r} has a malformed [IPv6] address") from None
        colon, port = tail[:1], tail[1:]
    else:
        host, colon, port = place.partition(":")
        if not _HOST.fullmatch(host):
            raise InvalidRequestError(f"peer URL {url!r} has no host, or one that cannot be (IPv6 in brackets)")
    if colon != ":" or not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise InvalidRequestError(f"peer URL {url!r} has no port between 1 and 65535")
