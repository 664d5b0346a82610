"""Creates frozen dataclass instances quickly.

A frozen dataclass sets each field of a new object by a call of `object.__setattr__`, which takes as long as reading a
key-value off the wire. Its mutable twin is the same class with plain attributes: make a twin, set its attributes, and
assign `__class__`. Both classes have the same layout, so nothing is copied and nothing of the twin remains.

The constructors that `etcd_aio.dataclass` makes do that too.
"""

from typing import Any, TypeVar

_T = TypeVar("_T")


def filled(frozen_class: type[_T], *values: object) -> _T:
    """Make an instance of a slotted dataclass from the values of its slots, without any of its methods.

    For a constant: the class is not completed, see `etcd_aio.dataclass`.
    """
    made = object.__new__(frozen_class)
    for name, value in zip(vars(frozen_class)["__slots__"], values, strict=True):
        object.__setattr__(made, name, value)
    return made


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
