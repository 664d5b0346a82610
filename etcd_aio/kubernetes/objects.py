"""Messages of Kubernetes as JSON: what `json.Marshal` of Go writes for the same object.

Depth and number of the messages are bounded: a value of etcd may have been written by anything.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from etcd_aio.kubernetes.messages import Field, fields
from etcd_aio.kubernetes.special import SPECIAL, last_bytes, last_number, text_of
from etcd_aio.kubernetes.wire import Found, MalformedMessageError, fields_of

_DEEPEST: Final = 100
_MOST_MESSAGES: Final = 250_000
_SCHEMA: Final = "apiextensions.JSONSchemaProps"
_MOST_UNKNOWN: Final = 20  # that are told


class Objects:
    """Reads messages.

    Attributes:
        unknown: the fields that the table does not have, each with its path.
        left_out: the number of such fields besides these.
    """

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.left_out = 0
        self._messages = 0

    def read(self, message: str, data: bytes, path: str = "", depth: int = 0) -> dict[str, Any]:
        """The JSON of a message.

        Raises:
            MalformedMessageError: it is another message, or too deep or too large.
        """
        self._messages += 1
        if depth > _DEEPEST or self._messages > _MOST_MESSAGES:
            raise MalformedMessageError("it has too many messages, or they are nested too deep")
        found = fields_of(data)
        shown: dict[str, Any] = {}
        for field in fields(message):
            contents = found.pop(field.number, None)
            value = self._field(field, contents, f"{path}.{field.name}" if field.name else path, depth)
            if field.is_inline:
                shown.update(value or {})
            elif not _is_left_out(field, contents, value):
                shown[field.name] = value
        for number, unread in found.items():
            if len(self.unknown) < _MOST_UNKNOWN:
                size = sum(len(one) for one in unread if isinstance(one, bytes))
                self.unknown.append(f"{path.removeprefix('.') or message} field {number} ({size} bytes)")
            else:
                self.left_out += 1
        return shown

    def _field(self, field: Field, contents: list[Found] | None, path: str, depth: int) -> Any:
        if field.is_list:
            return None if contents is None else [self._value(field.type, [one], path, depth) for one in contents]
        if field.is_map:
            return None if contents is None else self._map(field.type, contents, path, depth)
        if contents is None and (field.may_be_absent or field.type == "bytes"):
            return None
        return self._value(field.type, contents or [], path, depth)

    def _map(self, word: str, entries: list[Found], path: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for entry in entries:
            if not isinstance(entry, bytes):
                raise MalformedMessageError(f"{path} is no map")
            found = fields_of(entry)
            name = text_of(last_bytes(found, 1) or b"")
            made[name] = self._value(word, found.get(2, []), f"{path}.{name}", depth)
        return dict(sorted(made.items(), key=lambda item: item[0].encode("utf-8", "replace")))

    def _value(self, word: str, contents: list[Found], path: str, depth: int) -> Any:
        """The JSON of a value, of which there may be several pieces or none."""
        match word:
            case "int":
                return last_number({0: contents} if contents else {}, 0)
            case "bool":
                return bool(last_number({0: contents} if contents else {}, 0))
            case "double":
                return _double(contents)
        pieces = [one for one in contents if isinstance(one, bytes)]
        if len(pieces) != len(contents):
            raise MalformedMessageError(f"{path.removeprefix('.')} is of another type")
        match word:
            case "string":
                return text_of(pieces[-1] if pieces else b"")
            case "bytes":
                return b64encode(pieces[-1] if pieces else b"").decode()
            case "propsorarray" | "propsorbool" | "propsorstrings":
                return self._alternative(word, fields_of(b"".join(pieces)), path, depth)
        data = b"".join(pieces)  # pieces of one message are merged so
        special = SPECIAL.get(word)
        return self.read(word, data, path, depth + 1) if special is None else special(data)

    def _alternative(self, word: str, found: Mapping[int, list[Found]], path: str, depth: int) -> Any:
        """The forms of a JSON schema that may be a schema or something else."""
        if word == "propsorbool":
            schema = last_bytes(found, 2)
            return bool(last_number(found, 1)) if schema is None else self.read(_SCHEMA, schema, path, depth + 1)
        if 2 in found:
            kind = "string" if word == "propsorstrings" else _SCHEMA
            return [self._value(kind, [one], path, depth) for one in found[2]]
        schema = last_bytes(found, 1)
        return None if schema is None else self.read(_SCHEMA, schema, path, depth + 1)


def _double(contents: list[Found]) -> float | int:
    found = contents[-1] if contents else 0.0
    if not isinstance(found, float):
        raise MalformedMessageError("a number is of another type")
    if found != found or found in (float("inf"), float("-inf")):
        raise MalformedMessageError("it has a number that is not in JSON")
    return int(found) if found.is_integer() and abs(found) < 1e21 else found


def _is_left_out(field: Field, contents: list[Found] | None, value: Any) -> bool:
    """Whether JSON does not have the field."""
    if field.omits_zero and value is None:
        return True
    if not field.omits_empty:
        return False
    if field.may_be_absent:
        return contents is None
    is_plain = field.is_list or field.is_map or field.type in ("string", "int", "bool", "double", "bytes")
    return is_plain and not value
