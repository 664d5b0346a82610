"""Hints: the type of a setting, found by its path in a model. Pure.

Models are known by their attributes, so nothing is imported for them: pydantic's `model_fields`, msgspec's
`__struct_fields__`, and the annotations of dataclasses and typed dicts.
"""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID
from weakref import WeakKeyDictionary

_TEXTS = (str, bytes, PurePath, UUID)
_fields: WeakKeyDictionary[type, Mapping[str, Any]] = WeakKeyDictionary()


def members(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a type: those of a union, without what annotates them."""
    if type(hint) is type:  # most are plain classes
        return (hint,)
    if get_origin(hint) is Annotated:
        return members(get_args(hint)[0])
    if get_origin(hint) in {Union, UnionType}:
        return tuple(one for part in get_args(hint) for one in members(part))
    for attribute in ("__supertype__", "__value__"):  # of NewType, and of the statement `type`
        if hasattr(hint, attribute) and not isinstance(hint, type):
            return members(getattr(hint, attribute))
    return (hint,)


def child(hint: Any, name: str) -> Any:
    """The type of what a type has under a name; None if that is unknown."""
    for one in members(hint):
        found = _child(one, name)
        if found is not None:
            return found
    return None


def _child(hint: Any, name: str) -> Any:
    origin = get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return get_args(hint)[1]
    return fields_of(hint).get(name) if isinstance(hint, type) else None


def fields_of(model: type) -> Mapping[str, Any]:
    """The types of the fields of a model, by the names that they may have in data; empty if it is no model.

    They are looked up once for each model: to evaluate its annotations takes longer than to read the settings.
    """
    known = _fields.get(model)
    if known is not None:
        return known
    found, is_final = _fields_of(model)
    if is_final:
        _fields[model] = found
    return found


def _fields_of(model: Any) -> tuple[Mapping[str, Any], bool]:
    """The fields, and whether they are so forever: pydantic may not know some types yet."""
    if hasattr(model, "model_fields"):  # pydantic
        if not getattr(model, "__pydantic_complete__", True):  # it names types that were defined after it
            model.model_rebuild(raise_errors=False)
        found: dict[str, Any] = {}
        for field, info in model.model_fields.items():
            for name in (field, info.alias, *_names(info.validation_alias)):
                if isinstance(name, str):
                    found.setdefault(name, info.annotation)
        return found, bool(getattr(model, "__pydantic_complete__", False))
    if hasattr(model, "__struct_fields__"):  # msgspec
        hints = get_type_hints(model, include_extras=True)
        pairs = zip(model.__struct_encode_fields__, model.__struct_fields__, strict=True)
        return hints | {encoded: hints[field] for encoded, field in pairs}, True
    if dataclasses.is_dataclass(model) or is_typeddict(model):
        return get_type_hints(model, include_extras=True), True
    return {}, False


def _names(alias: Any) -> tuple[Any, ...]:
    """The names of an alias of pydantic; of several choices each. A path into other data is none."""
    return tuple(getattr(alias, "choices", (alias,)))


def takes_text(hint: Any) -> bool:
    """Whether a setting of this type has the text of its key, and not what the text is in JSON."""
    return any(_takes_text(one) for one in members(hint))


def _takes_text(hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return any(isinstance(value, str) for value in get_args(hint))
    if not isinstance(hint, type):
        return False
    if issubclass(hint, Enum):
        return any(isinstance(member.value, str) for member in hint)
    return issubclass(hint, _TEXTS) or hasattr(hint, "get_secret_value")  # pydantic's SecretStr
