"""Special forms: times, durations, quantities and others, whose JSON differs from that of their message. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from etcd_aio.base.durations import go_duration
from etcd_aio.kubernetes.wire import Found, MalformedMessageError, fields_of, signed

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND: Final = -62135596800  # of the year 1, which stands for no time
_DEEPEST_JSON: Final = 200  # arrays and objects; Python's own limit depends on its release and on the caller's stack


def last_number(found: Mapping[int, list[Found]], number: int) -> int:
    """The number that a field has; 0 if it has none."""
    content = found[number][-1] if number in found else 0
    if not isinstance(content, int):
        raise MalformedMessageError(f"field {number} is no number")
    return signed(content)


def last_bytes(found: Mapping[int, list[Found]], number: int) -> bytes | None:
    """The bytes that a field has; None if it has none."""
    content = found[number][-1] if number in found else None
    if content is not None and not isinstance(content, bytes):
        raise MalformedMessageError(f"field {number} has no length")
    return content


def text_of(raw: bytes) -> str:
    """Text, in which bytes that are no UTF-8 are replaced."""
    return raw.decode("utf-8", "replace")


def _time(data: bytes) -> str | None:
    return _moment(data, 0, "seconds")


def _micro_time(data: bytes) -> str | None:
    return _moment(data, last_number(fields_of(data), 2) // 1000, "microseconds")


def _moment(data: bytes, microseconds: int, digits: str) -> str | None:
    seconds = last_number(fields_of(data), 1)
    if not data or (seconds == _FIRST_SECOND and not microseconds):
        return None
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=microseconds)
    except OverflowError:
        return f"{seconds} seconds after 1970"
    return moment.replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def _duration(data: bytes) -> str:
    """A duration as Go prints it."""
    return go_duration(last_number(fields_of(data), 1))


def _quantity(data: bytes) -> str:
    return text_of(last_bytes(fields_of(data), 1) or b"0")


def _int_or_string(data: bytes) -> int | str:
    found = fields_of(data)
    return text_of(last_bytes(found, 3) or b"") if last_number(found, 1) else last_number(found, 2)


def _strings(data: bytes) -> list[str] | None:
    contents = fields_of(data).get(1)
    return None if contents is None else [text_of(one) for one in contents if isinstance(one, bytes)]


def _raw(data: bytes) -> Any:
    """JSON within the message."""
    raw = last_bytes(fields_of(data), 1)
    return json_of(raw) if raw else None


def json_of(raw: bytes) -> Any:
    """Parse JSON.

    Raises:
        MalformedMessageError: it is no JSON, or is nested too deep.
    """
    try:
        found = json.loads(raw, parse_constant=_refuse)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
        if not _is_deeper(found, _DEEPEST_JSON):
            return found
    except RecursionError:
        pass
    except ValueError:  # also half a character or a number without end, which cannot be printed
        raise MalformedMessageError("it has something that is no JSON") from None
    raise MalformedMessageError(f"it has JSON that is nested deeper than {_DEEPEST_JSON}")


def _is_deeper(found: Any, limit: int) -> bool:
    level = [found]
    for _ in range(limit + 1):
        level = [inner for one in level for inner in _inside(one)]
    return bool(level)


def _inside(found: Any) -> Iterable[Any]:
    return found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not in JSON")


SPECIAL: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "time": _time,
    "microtime": _micro_time,
    "duration": _duration,
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "strings": _strings,
    "raw": _raw,
}
"""The functions that make the JSON of a message, by the words for such types."""
