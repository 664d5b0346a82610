"""Values of options in text: durations in Go's notation or in seconds, flags, sizes, words. Pure.

Each reader gets the name that its error shows, and the text. The error, a `ConfigError`, does not repeat the text.
"""

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from etcd_aio.errors import ConfigError

PREFIX: Final = "ETCDCTL_"
RECONNECT_VARIABLE: Final = "ETCD_AIO_TLS_RECONNECT"
PROXY: Final = "ETCD_PROXY"
"""The variable of the option `proxy`."""

Value: TypeAlias = str | bool | int | float | None

_SECONDS: Final[Mapping[str, float]] = {
    "ns": 1e-9,
    "us": 1e-6,
    "\u00b5s": 1e-6,  # the micro sign
    "\u03bcs": 1e-6,  # the Greek letter
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_NUMBER: Final = r"(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})"
_PART: Final = re.compile(f"({_NUMBER})({'|'.join(_SECONDS)})")
_WHOLE: Final = re.compile(f"(?:{_NUMBER}(?:{'|'.join(_SECONDS)}))+")
_PLAIN: Final = re.compile(_NUMBER)


def read_seconds(name: str, text: str) -> float:
    """The seconds of a duration such as `1m30s` or `500ms`, or of a plain number; never negative."""
    if _PLAIN.fullmatch(text):
        return float(text)
    if not _WHOLE.fullmatch(text):
        raise ConfigError(f"{name} must be a duration such as 3s, 500ms or 1m30s, or a number of seconds")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def read_seconds_or_none(name: str, text: str) -> float | None:
    """The seconds of a duration, or None for `none`."""
    return None if text == "none" else read_seconds(name, text)


def read_flag(name: str, text: str) -> bool:
    """True or False, in every spelling that Go accepts, and in mixed case."""
    found = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(text.lower())
    if found is None:
        raise ConfigError(f"{name} must be true or false")
    return found


def read_size(name: str, text: str) -> int:
    """A number of bytes."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ConfigError(f"{name} must be a number of bytes")
    return int(text)


def read_word(name: str, text: str) -> str:
    """The text itself, which must not be empty."""
    if not text:
        raise ConfigError(f"{name} must not be empty")
    return text
