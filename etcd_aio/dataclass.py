"""`dataclass` as that of the standard library, completed at the first use of the class.

Of the time that an import takes, dataclasses are the largest part: the methods of each are compiled from text, 0.3 to
0.6 ms for one class, and a program uses few of them. Here a class gets its slots at once, in 0.04 ms. The methods, and
all else that makes it a dataclass, are placeholders. The first one that is asked for, by whatever way, replaces all of
them by those that the standard library makes, and from then on nothing of this is on the way.

Many programs need only the constructor of a class, so that is made alone, in 0.1 ms. That of a frozen class fills its
mutable twin, see `fast_frozen.py`: it then takes 0.2 us instead of 0.5 us for six fields.
"""

import dataclasses
import sys
import threading
from typing import TYPE_CHECKING, Any, ClassVar, Final

from etcd_aio.fast_frozen import mutable_twin

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass

_ALWAYS: Final = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_OF_OPTIONS: Final = {
    "init": ("__init__",),
    "repr": ("__repr__",),
    "eq": ("__eq__",),
    "order": ("__lt__", "__le__", "__gt__", "__ge__"),
    "frozen": ("__setattr__", "__delattr__", "__getstate__", "__setstate__"),
}
_DEFAULTS: Final = {"init": True, "repr": True, "eq": True, "order": False, "frozen": False}
_OF_CLASSES: Final = frozenset({"__dict__", "__weakref__"})  # what a new class has of its own
_incomplete: Final[dict[type, tuple[type, dict[str, bool]]]] = {}  # with the class that the decorator was given
_lock: Final = threading.RLock()


class _Placeholder:
    """An attribute of a class that is not complete."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: type, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if self._name != "__init__" or not _construct(self._owner):
            _complete(self._owner)
        found = vars(self._owner)[self._name]
        bind = getattr(type(found), "__get__", None)
        return found if bind is None else bind(found, instance, owner)


def _construct(incomplete: type) -> bool:
    """Make the constructor of a class alone; False if it is not a usual one: each field an argument, with its value."""
    with _lock:
        if incomplete not in _incomplete:
            return False
        given, options = _incomplete[incomplete]
        annotations = {name: kind for name, kind in _own_annotations(given).items() if _is_field(kind)}
        defaults: dict[str, object] = {}
        for name in annotations:
            default = vars(given).get(name, dataclasses.MISSING)
            if isinstance(default, dataclasses.Field):
                if not default.init or default.kw_only is True or default.default_factory is not dataclasses.MISSING:
                    return False
                default = default.default
            if default is not dataclasses.MISSING:
                defaults[name] = default
        inherits = any("__dataclass_fields__" in vars(ancestor) for ancestor in given.__mro__[1:])
        if inherits or options.get("kw_only") or not annotations:
            return False
        made: Any = incomplete
        made.__init__ = _initializer(incomplete, annotations, defaults, is_frozen=options.get("frozen", False))
        return True


def _initializer(
    of: type, annotations: dict[str, object], defaults: dict[str, object], *, is_frozen: bool
) -> "Callable[..., None]":
    arguments = [f"{name}=defaults[{name!r}]" if name in defaults else name for name in annotations]
    lines = [f"self.{name} = {name}" for name in annotations]
    if is_frozen:  # a subclass may have another layout than the twin
        others = ["else:", *(f"    assign(self, {name!r}, {name})" for name in annotations)]
        filled = [
            "    assign(self, '__class__', twin)",
            *(f"    {line}" for line in lines),
            "    self.__class__ = owner",
        ]
        lines = ["if self.__class__ is owner:", *filled, *others]
    if hasattr(of, "__post_init__"):
        lines.append("self.__post_init__()")
    source = "\n    ".join([f"def __init__(self, {', '.join(arguments)}):", *lines])
    namespace: dict[str, Any] = {"assign": object.__setattr__, "defaults": defaults, "owner": of}
    if is_frozen:
        namespace["twin"] = mutable_twin(of)
    exec(source, namespace)  # noqa: S102 - generated from this package's own classes
    made: Any = namespace["__init__"]
    made.__qualname__ = f"{of.__qualname__}.__init__"
    made.__module__ = of.__module__
    made.__annotations__ = {**annotations, "return": None}
    return made  # type: ignore[no-any-return] # functions made by exec have no types


def _complete(incomplete: type) -> None:
    with _lock:
        if incomplete not in _incomplete:  # another thread was faster
            return
        given, options = _incomplete[incomplete]
        made = vars(dataclasses.dataclass(**options)(given))
        for name, value in vars(incomplete).copy().items():
            if isinstance(value, _Placeholder):
                setattr(incomplete, name, made[name])
        del _incomplete[incomplete]


def _is_field(annotation: object) -> bool:
    if isinstance(annotation, str):
        return not annotation.startswith("ClassVar")
    return getattr(annotation, "__origin__", annotation) is not ClassVar


def _own_annotations(given: type) -> dict[str, object]:
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(given, format=Format.FORWARDREF)
    found: dict[str, object] = vars(given).get("__annotations__", {})
    return found


def _with_slots(given: type, options: dict[str, bool]) -> type:
    chosen = _DEFAULTS | options
    inherited = {slot for ancestor in given.__mro__[1:-1] for slot in vars(ancestor).get("__slots__", ())}
    fields = [name for name, annotation in _own_annotations(given).items() if _is_field(annotation)]
    left_out = _OF_CLASSES.union(fields)
    namespace = {name: value for name, value in vars(given).items() if name not in left_out}
    namespace["__slots__"] = tuple(name for name in fields if name not in inherited)
    late = [*_ALWAYS, *(name for option, names in _OF_OPTIONS.items() if chosen[option] for name in names)]
    if chosen["eq"]:
        if chosen["frozen"]:
            late.append("__hash__")
        else:
            namespace.setdefault("__hash__", None)
    if sys.version_info >= (3, 13):
        late.append("__replace__")
    made = type(given)(given.__name__, given.__bases__, namespace)
    made.__qualname__ = given.__qualname__
    for name in late:
        if name not in namespace:
            setattr(made, name, _Placeholder(made, name))
    _incomplete[made] = given, options
    return made


if not TYPE_CHECKING:

    def dataclass(**options: bool) -> "Callable[[type], type]":
        """Make a class with slots that becomes a dataclass at its first use; `options` as of `dataclasses`."""
        return lambda given: _with_slots(given, options)
