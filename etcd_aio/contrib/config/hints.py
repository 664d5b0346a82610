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

_TEXTS = (str, bytes, PurePath, UUID)


def members(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a type: those of a union, without what annotates them."""
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
    if hasattr(hint, "model_fields"):  # pydantic
        for field, info in hint.model_fields.items():
            if name in {field, info.alias, info.validation_alias}:
                return info.annotation
        return None
    if hasattr(hint, "__struct_fields__"):  # msgspec
        fields = dict(zip(hint.__struct_encode_fields__, hint.__struct_fields__, strict=True))
        return get_type_hints(hint, include_extras=True).get(fields.get(name, name))
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or is_typeddict(hint)):
        return get_type_hints(hint, include_extras=True).get(name)
    return None


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
