"""Frozen: building frozen dataclasses without paying for the frost.

Knows: Python's object layout. Never knows: which values are built.

A frozen dataclass sets each field of a new object by a call of `object.__setattr__`: building a key-value that way
takes as long as reading it off the wire. Its twin is the same class with plain attributes: whoever builds values by the
thousand makes a twin, sets what is in it, and turns it into the real class by assigning `__class__`. Both have the same
layout, so nothing is copied, and nothing of the twin is left.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def thawed(frozen_class: type) -> type[Any]:
    """The twin of a frozen, slotted dataclass: its objects are made without arguments and may be set.

    twin = thawed(Header)()
    twin.revision = 7  # and every other field: none has a value yet
    twin.__class__ = Header  # frozen from here on
    """
    metaclass: Any = type(frozen_class)
    namespace = {
        "__slots__": (),
        "__init__": object.__init__,
        # Both, or CPython looks the method up for every attribute that is set.
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
        "__module__": frozen_class.__module__,
        "__doc__": f"A {frozen_class.__name__} that is still being built.",
    }
    twin: type[Any] = metaclass(f"Thawed{frozen_class.__name__}", (frozen_class,), namespace)
    return twin


def constructor(frozen_class: Callable[_P, _T]) -> Callable[_P, _T]:
    """A function that takes and makes what a frozen, slotted dataclass does, in a third of the time.

    Only for classes whose defaults are plain values, and that do nothing after the fields are set.
    """
    made: Any = frozen_class
    fields = dataclasses.fields(made)
    namespace: dict[str, Any] = {made.__name__: made, "Thawed": thawed(made)}
    arguments = []
    for field in fields:
        if field.default_factory is not dataclasses.MISSING or hasattr(made, "__post_init__"):
            raise TypeError(f"{made.__name__} has to be built by its own constructor")
        has_default = field.default is not dataclasses.MISSING
        arguments.append(f"{field.name}=default_{field.name}" if has_default else field.name)
        namespace[f"default_{field.name}"] = field.default
    lines = [
        f"def new({', '.join(arguments)}):",
        "    new = Thawed()",
        *(f"    new.{field.name} = {field.name}" for field in fields),
        f"    new.__class__ = {made.__name__}",
        "    return new",
    ]
    exec("\n".join(lines), namespace)  # noqa: S102 - as dataclasses does, from nothing but names of fields
    found: Callable[_P, _T] = namespace["new"]
    return found
