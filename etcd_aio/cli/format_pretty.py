"""The format `pretty-json`: JSON for people and for `jq`, which etcdctl does not have. Pure.

Ids are strings in hexadecimal, since 64 bits do not fit the numbers of JavaScript and `jq`. Revisions are numbers.
Keys and values are text if they are UTF-8, else `{"base64": ...}`. Every field is there, also if it is zero.
"""

import json
from base64 import b64encode
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final

from etcd_aio.cli.results import Shown, Style

_IDS: Final = frozenset({"cluster_id", "member_id", "id", "lease", "leader"})


def pretty(result: Shown, style: Style) -> str | None:
    """The result as indented JSON."""
    return json.dumps(_value(result), ensure_ascii=False, indent=2) + "\n"


def _value(value: object, name: str = "") -> object:
    match value:
        case Enum():
            return value.value
        case bytes():
            return _text(value)
        case int() if name in _IDS and not isinstance(value, bool):
            return f"{value & 2**64 - 1:x}"
        case None | bool() | int() | str():
            return value
        case tuple():
            return [_value(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        shown = (field.name for field in fields(value) if field.repr)
        return {field: _value(getattr(value, field), field) for field in shown if field not in ("text", "has_fields")}
    return f"{value}"


def _text(raw: bytes) -> object:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(raw).decode()}
