"""Document: nested data from the keys of a prefix. Pure.

A key is a path: `limits/max` is the setting `max` in `limits`. Its value is JSON, or text where the setting is one.
What is no JSON is text too, and the model decides. A key may also have a whole object, whose settings other keys
replace: `limits` with `{"max": 1, "min": 0}`, and `limits/max` with 2.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from etcd_aio.contrib.config.hints import child, takes_text

SEPARATOR: Final = "/"


class UnusableKeyError(Exception):
    """A key that fits no document.

    Args:
        key: the key, without the prefix.
        reason: why not, without its value.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


def nested(entries: Mapping[str, bytes], model: object) -> dict[str, Any]:
    """Make nested data of keys and values.

    Args:
        entries: the values, by keys without their prefix. The empty key, which is the prefix itself, is passed over.
        model: a type, which tells where a value is text.

    Raises:
        UnusableKeyError: a value is not text, or a key is within one that is no object.
    """
    document: dict[str, Any] = {}
    for key in sorted(entries):
        if key:
            _put(document, key, entries[key], model)
    return document


def _put(document: dict[str, Any], key: str, value: bytes, model: object) -> None:
    *path, last = key.split(SEPARATOR)
    place, hint = document, model
    for name in path:
        inner = place.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UnusableKeyError(key, f"{name!r} is a single setting, not an object")
        place, hint = inner, child(hint, name)
    hint = child(hint, last)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise UnusableKeyError(key, "it is not UTF-8 text") from None
    place[last] = text if takes_text(hint) else _json_or_text(text)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def parsed(key: str, value: bytes) -> dict[str, Any]:
    """The object that one key has as JSON.

    Raises:
        UnusableKeyError: it is none.
    """
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        raise UnusableKeyError(key, "it is not JSON") from None
    if not isinstance(found, dict):
        raise UnusableKeyError(key, "it is not a JSON object")
    return found
