"""Creates frozen dataclass instances quickly.

A frozen dataclass sets each field of a new object by a call of `object.__setattr__`, which takes as long as reading a
key-value off the wire. Its mutable twin is the same class with plain attributes: make a twin, set its attributes, and
assign `__class__`. Both classes have the same layout, so nothing is copied and nothing of the twin remains.

`fast_init` lets the constructor of a class do that: it then takes 0.2 us instead of 0.5 us for six fields.
"""

import functools
from dataclasses import MISSING, fields
from typing import Any, TypeVar

_T = TypeVar("_T")


def fast_init(frozen_class: type[_T]) -> type[_T]:
    """Give a frozen, slotted dataclass a constructor that fills its twin. Each field is an argument of it."""
    made: Any = frozen_class
    defaults = {field.name: field.default for field in fields(made)}
    arguments = [name if default is MISSING else f"{name}=defaults[{name!r}]" for name, default in defaults.items()]
    lines = [
        f"def __init__(self, {', '.join(arguments)}):",
        "    kind = self.__class__",
        "    assign(self, '__class__', twin)",
        *[f"    self.{name} = {name}" for name in defaults],
        "    self.__class__ = kind",
    ]
    if hasattr(frozen_class, "__post_init__"):
        lines.append("    self.__post_init__()")
    namespace: dict[str, Any] = {"assign": object.__setattr__, "defaults": defaults, "twin": mutable_twin(frozen_class)}
    exec("\n".join(lines), namespace)  # noqa: S102 - generated from this package's own classes
    made.__init__ = functools.wraps(made.__init__)(namespace["__init__"])
    return frozen_class


def mutable_twin(frozen_class: type) -> type[Any]:
    """Make the twin of a frozen, slotted dataclass. It is created without arguments, and its attributes can be set.

        twin = mutable_twin(Header)()
        twin.revision = 7  # and every other field: none has a value yet
        twin.__class__ = Header  # frozen from here on

    The `__init__` and `__post_init__` of the dataclass do not run.
    """
    metaclass: Any = type(frozen_class)
    namespace = {
        "__slots__": (),
        "__init__": object.__init__,
        # Both, or CPython looks up the method for each attribute that is set.
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
        # Of a twin whose attributes are not all set: reporters of errors show the local variables of every frame.
        "__repr__": lambda twin: f"<{frozen_class.__name__} not constructed>",
        "__module__": frozen_class.__module__,
        "__doc__": f"A {frozen_class.__name__} whose attributes can still be set.",
    }
    twin: type[Any] = metaclass(f"Mutable{frozen_class.__name__}", (frozen_class,), namespace)
    return twin
