"""Dataclass: settings as a plain dataclass, from nested data, with the types checked. Pure.

It knows the types that JSON has, and those that settings are made of: unions, literals, enums, lists, tuples, sets,
mappings and other dataclasses. Names that the dataclass does not have are passed over, as by pydantic and msgspec.
"""

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

from etcd_aio.contrib.config.hints import fields_of, members

T = TypeVar("T")


class MismatchError(Exception):
    """A setting that does not fit its type.

    Args:
        path: of the setting.
        reason: what is wrong, without its value.
    """

    def __init__(self, path: tuple[str, ...], reason: str) -> None:
        super().__init__(f"{'.'.join(path)}: {reason}")
        self.path = path
        self.reason = reason


def convert(model: type[T], data: Mapping[str, Any], path: tuple[str, ...] = ()) -> T:
    """Make a dataclass of nested data.

    Raises:
        MismatchError: a setting is missing, or does not fit.
    """
    hints = fields_of(model)
    found: dict[str, Any] = {}
    for field in dataclasses.fields(model):  # type: ignore[arg-type] # the caller has looked
        if not field.init:
            continue
        if field.name in data:
            found[field.name] = _value(hints[field.name], data[field.name], (*path, field.name))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise MismatchError((*path, field.name), "missing")
    try:
        return model(**found)
    except (TypeError, ValueError) as error:  # of `__post_init__`; its text may have the value
        raise MismatchError(path, type(error).__name__) from None


def _value(hint: Any, value: Any, path: tuple[str, ...]) -> Any:
    alternatives = members(hint)
    if type(value) in alternatives:  # of `int | str` not the first that may be made of it
        return value
    mismatch: MismatchError | None = None
    for one in alternatives:
        try:
            return _one(one, value, path)
        except MismatchError as error:
            if mismatch is None or len(error.path) > len(mismatch.path):
                mismatch = error
    raise mismatch or MismatchError(path, "of no type")


def _one(hint: Any, value: Any, path: tuple[str, ...]) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    kind: Any = origin or hint
    if hint is Any or hint is object:
        return value
    if hint is None or hint is NoneType:
        if value is None:
            return None
    elif origin is Literal:
        if any(value == choice and type(value) is type(choice) for choice in arguments):
            return value
    elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if isinstance(value, Mapping):
            return convert(hint, value, path)
    elif isinstance(kind, type):
        return _of_class(kind, arguments, value, path)
    raise MismatchError(path, f"expected {_shown(hint)}, got {type(value).__name__}")


def _of_class(kind: type, arguments: tuple[Any, ...], value: Any, path: tuple[str, ...]) -> Any:
    if issubclass(kind, Enum):
        if any(member.value == value for member in kind):
            return kind(value)
    elif kind is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif kind in {int, bool, str}:
        if type(value) is kind:
            return value
    elif issubclass(kind, Mapping) or kind is Mapping:
        if isinstance(value, Mapping):
            of = arguments[1] if arguments else Any
            return {name: _value(of, one, (*path, str(name))) for name, one in value.items()}
    elif kind is tuple and arguments and arguments[-1] is not Ellipsis:
        if isinstance(value, list) and len(value) == len(arguments):
            pairs = enumerate(zip(arguments, value, strict=True))
            return tuple(_value(of, one, (*path, str(index))) for index, (of, one) in pairs)
    elif isinstance(value, list):
        of = arguments[0] if arguments else Any
        found = [_value(of, one, (*path, str(index))) for index, one in enumerate(value)]
        if kind in {tuple, set, frozenset}:
            return kind(found)
        if isinstance(found, kind):
            return found
    elif isinstance(value, str):
        try:
            of_text: Callable[[str], Any] = kind
            return of_text(value)  # such as Path, UUID and Decimal, which are made of their texts
        except Exception as error:  # the type is the application's
            raise MismatchError(path, f"no {kind.__name__}: {type(error).__name__}") from None
    raise MismatchError(path, f"expected {kind.__name__}, got {type(value).__name__}")


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)
