"""Durations in text: Go's notation, such as `1m30s` or `500ms`, and plain numbers of seconds. Pure."""

import re
from collections.abc import Mapping
from typing import Final

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


def parse_duration(text: str) -> float | None:
    """The seconds of a duration, never negative; None if the text is not a duration."""
    if _PLAIN.fullmatch(text):
        return float(text)
    if not _WHOLE.fullmatch(text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
