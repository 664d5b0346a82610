"""The format `pretty-json`: JSON for people and for `jq`, which etcdctl does not have. Pure.

Ids are strings in hexadecimal, since 64 bits do not fit the numbers of JavaScript and `jq`. Revisions are numbers.
Keys and values are text if they are UTF-8, else `{"base64": ...}`; with `--hex` they are `{"hex": ...}`. Values
that are JSON may be parsed, and those of Kubernetes decoded: `{"kubernetes": ...}`. Every field is there, also if it
is zero.
"""

import json
import re
from base64 import b64encode
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final

from etcd_aio.cli.results import Shown
from etcd_aio.cli.style import Style

_CONTROLS: Final = re.compile("[\x7f-\x9f\u2028\u2029]")  # what JSON may have as it is, and a terminal obeys
_IDS: Final = frozenset({"cluster_id", "member_id", "id", "lease", "leader"})


def pretty(result: Shown, style: Style) -> str | None:
    """The result as indented JSON."""
    text = json.dumps(_value(result, style), ensure_ascii=False, indent=2)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def _value(value: object, style: Style, name: str = "") -> object:
    match value:
        case Enum():
            return value.value
        case bytes():
            return _bytes(value, style, is_value=name == "value")
        case int() if name in _IDS and not isinstance(value, bool):
            return f"{value & 2**64 - 1:x}"
        case None | bool() | int() | str():
            return value
        case tuple():
            return [_value(item, style) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        shown = (field.name for field in fields(value) if field.repr)
        names = (field for field in shown if field not in ("text", "has_fields"))
        return {field: _value(getattr(value, field), style, field) for field in names}
    return f"{value}"


def _bytes(raw: bytes, style: Style, *, is_value: bool) -> object:
    if is_value and style.decodes and raw:
        from etcd_aio.cli.kubernetes import value_json  # few commands decode

        return {"kubernetes": value_json(raw)}
    if style.is_hex:
        return {"hex": raw.hex()}
    if is_value and style.parses_values:
        try:
            found: object = json.loads(raw, parse_constant=_refuse)
            json.dumps(found, ensure_ascii=False).encode()
        except (ValueError, RecursionError):  # no JSON, too deep, or half a character, which nothing can print
            pass
        else:
            return found
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(raw).decode()}


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not in JSON")
