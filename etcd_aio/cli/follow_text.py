"""The lines of `watch --follow`: what changed, when, from which value to which. Pure.

    12:01:07.312 r812 PUT app/mode "blue" -> "green"
    12:01:07.312 r812 PUT app/limits {"max": 10 -> 20}
    12:01:11.498 r815 DEL app/old

Values that are JSON objects before and after are shown as the difference of their fields.
"""

import json
from typing import Final

from etcd_aio import Event
from etcd_aio.cli.go_text import quoted

_RESET: Final = "\x1b[0m"
_COLOURS: Final = {"PUT": "\x1b[32m", "DEL": "\x1b[31m"}
_DIM: Final = "\x1b[2m"
_NOTHING: Final = object()


def line_of(event: Event, stamp: str, *, is_coloured: bool = False) -> str:
    """The line of an event.

    Args:
        event: with the key as it was before, if it existed.
        stamp: the time.
        is_coloured: with escape sequences for a terminal.
    """
    kind = "PUT" if event.is_put else "DEL"
    place = f"{stamp} r{event.revision}"
    if is_coloured:
        kind, place = f"{_COLOURS[kind]}{kind}{_RESET}", f"{_DIM}{place}{_RESET}"
    lease = f" (lease {event.kv.lease & 2**64 - 1:x})" if event.kv.lease else ""
    return f"{place} {kind} {shown_key(event.key)}{lease}{_values(event)}"


def shown_key(key: bytes) -> str:
    """A key as it is, or quoted if it has characters that a line cannot show."""
    text = quoted(key)
    return text[1:-1] if text[1:-1].encode("utf-8", "surrogateescape") == key and " " not in text else text


def _values(event: Event) -> str:
    if event.is_delete:
        return ""
    before = None if event.prev_kv is None else event.prev_kv.value
    if before is None:
        return f" {_shown(event.value)}"
    if before == event.value:
        return f" {_shown(before)} (as before)"
    return f" {_difference(before, event.value)}"


def _difference(before: bytes, after: bytes) -> str:
    old, new = _parsed(before), _parsed(after)
    if isinstance(old, dict) and isinstance(new, dict):
        return _fields(old, new)
    return f"{_shown(before)} -> {_shown(after)}"


def _fields(old: dict[str, object], new: dict[str, object]) -> str:
    parts: list[str] = []
    for name in old | new:
        one, other = old.get(name, _NOTHING), new.get(name, _NOTHING)
        if one == other and type(one) is type(other):
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            shown = _fields(one, other)
        elif one is _NOTHING:
            shown = f"+{_json(other)}"
        elif other is _NOTHING:
            shown = f"-{_json(one)}"
        else:
            shown = f"{_json(one)} -> {_json(other)}"
        parts.append(f"{_json(name)}: {shown}")
    return "{" + ", ".join(parts) + "}"


def _shown(value: bytes) -> str:
    parsed = _parsed(value)
    return _json(parsed) if isinstance(parsed, dict | list) else quoted(value)


def _parsed(value: bytes) -> object:
    try:
        return json.loads(value) if value[:1] in (b"{", b"[") else None
    except (ValueError, RecursionError):
        return None


def _json(value: object) -> str:
    return quoted(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=True)
