"""The messages of Kubernetes: the fields of each, from a table that is loaded when it is used first.

`messages.txt` is made by `proto/kubernetes`. A line with `=` has the message of a kind in one version of an API, as in
`apps/v1 Deployment=apps.Deployment`. Each other line is a message: its name, a colon, and its fields with number,
name, options and type. The options are those of the JSON of Go: `?` leaves out what is empty, `!` what is zero, `*`
may be absent, `<` has its JSON in that of the message around it. The type is a word for a scalar or a special form, or
the name of a message; `[` stands before the type of the elements of a list, `{` before that of the values of a map.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from etcd_aio.dataclass import dataclass

_FIELD: Final = re.compile(r"([0-9]+) ([^ ]*?)([?!<*]*) ([\[{]?)(.+)")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message.

    Attributes:
        number: its number in protobuf.
        name: its name in JSON.
        omits_empty: JSON does not have it if it is empty.
        omits_zero: JSON does not have it if it is zero, as a time.
        may_be_absent: it may have no value.
        is_inline: its JSON is part of that of the message around it.
        is_list: it has any number of elements.
        is_map: it has values by their names.
        type: the word for its type, or for that of its elements or values.
    """

    number: int
    name: str
    omits_empty: bool
    omits_zero: bool
    may_be_absent: bool
    is_inline: bool
    is_list: bool
    is_map: bool
    type: str


@cache
def _table() -> tuple[Mapping[tuple[str, str], str], Mapping[str, str]]:
    """The messages of kinds, by version and kind; and the fields of messages, as text."""
    kinds: dict[tuple[str, str], str] = {}
    messages: dict[str, str] = {}
    for line in (Path(__file__).parent / "messages.txt").read_text(encoding="utf-8").splitlines():
        name, is_message, fields = line.partition(":")
        if is_message:
            messages[name] = fields
        else:
            version, _, kind = line.partition(" ")
            kind, _, message = kind.partition("=")
            kinds[version, kind] = message
    return kinds, messages


def message_of_kind(api_version: str, kind: str) -> str | None:
    """The name of the message of a kind, if it is known."""
    return _table()[0].get((api_version, kind))


def is_message(word: str) -> bool:
    """Whether the word for a type is the name of a message."""
    return word in _table()[1]


@cache
def fields(message: str) -> tuple[Field, ...]:
    """The fields of a message, in the order of its JSON."""
    found = []
    for text in filter(None, _table()[1][message].split(",")):
        parts = _FIELD.fullmatch(text)
        if parts is None:
            raise ValueError(f"messages.txt has a field that is none: {text!r}")
        number, name, options, many, word = parts.groups()
        marks = ("?" in options, "!" in options, "*" in options, "<" in options)
        found.append(Field(int(number), name, *marks, many == "[", many == "{", word))
    return tuple(found)
