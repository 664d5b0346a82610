"""Chooses, at import, what reads runs of key-values and events: the compiled accelerator, or generated Python.

The accelerator is optional, and changes only the speed: it reads what is laid out as etcd writes it, and leaves every
other item to the generated decoders. It is not used if `ETCD_AIO_PURE_PYTHON` is set to anything but 0, if the
installed package has none (PyPy, free-threaded builds, machines without a compiler), or if it cannot make correct
objects here.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeAlias

from etcd_aio.types import Event, EventType, KeyValue

ReadRun: TypeAlias = Callable[[bytes, int, int, int, int, int, list[Any]], int]
"""`read(data, at, end, pause, cost, tag, items)` appends items while they begin with `tag` and at or before `pause`,
which each item moves back by `cost`. Returns the position of the first item that it did not read."""

MoveItems: TypeAlias = Callable[[list[Any], list[tuple[Any, ...]], int], int]
"""`move_items(items, made, most)` moves items from the end of a list into the tuple that it puts into `made`. Returns
how many are left."""

_TAG: Final = 10
_KEY_VALUE: Final = b"\x0a\x01k\x10\x02\x18\x03\x20\x04\x2a\x01v\x30\x05"
_SAMPLE_KEY_VALUE: Final = KeyValue(b"k", b"v", 2, 3, 4, 5)
_SLOTS: Final[Mapping[type, frozenset[str]]] = {
    KeyValue: frozenset({"key", "value", "create_revision", "mod_revision", "version", "lease"}),
    Event: frozenset({"type", "kv", "prev_kv"}),
}  # that the accelerator fills


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The compiled readers, which were checked."""

    read_key_values: ReadRun
    read_events: ReadRun
    move_items: MoveItems


class UnusableError(Exception):
    """The accelerator is not used; the text says why. Never leaves the codec."""


def load(environ: Mapping[str, str] = os.environ) -> Accelerator:
    """Import the accelerator and check it.

    Raises:
        UnusableError: it is turned off, not there, or does not fit.
    """
    if environ.get("ETCD_AIO_PURE_PYTHON", "0") not in {"", "0"}:
        raise UnusableError("ETCD_AIO_PURE_PYTHON is set")
    if "t" in getattr(sys, "abiflags", ""):  # importing it would turn the interpreter's lock on
        raise UnusableError("this Python is free-threaded")
    try:
        module = import_module("etcd_aio.codec._speedups")
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        raise UnusableError("not installed" if is_missing else f"it cannot be loaded: {error}") from None
    return check(module)


def check(module: ModuleType) -> Accelerator:
    """Have a module write every slot of the results, and read them all.

    Raises:
        UnusableError: a function is missing, or an object differs from one that its class makes.
    """
    try:
        for result_class, names in _SLOTS.items():
            if set(result_class.__dict__["__slots__"]) != names or result_class.__dictoffset__:
                raise UnusableError(f"{result_class.__name__} has other slots")
        module.set_classes(KeyValue, Event, EventType.PUT, EventType.DELETE)
        found = Accelerator(module.read_key_values, module.read_events, module.move_items)
        put, delete = b"\x12\x0e" + _KEY_VALUE, b"\x08\x01\x12\x0e" + _KEY_VALUE + b"\x1a\x0e" + _KEY_VALUE
        events = [
            Event(EventType.PUT, _SAMPLE_KEY_VALUE),
            Event(EventType.DELETE, _SAMPLE_KEY_VALUE, _SAMPLE_KEY_VALUE),
        ]
        _compare(found.read_key_values, [_KEY_VALUE, b""], [_SAMPLE_KEY_VALUE, KeyValue(b"")])
        _compare(found.read_events, [put, delete], events)
        items, made = [*events, *events], list[tuple[Any, ...]]()
        if [found.move_items(items, made, 3) for _ in range(2)] != [1, 0] or items or made != [(*events, *events)]:
            raise UnusableError("it does not fit: it moves something else")
    except (AttributeError, TypeError, ValueError) as error:
        raise UnusableError(f"it does not fit: {error}") from None
    return found


def _compare(read: ReadRun, contents: list[bytes], expected: list[Any]) -> None:
    data = b"".join(bytes((_TAG, len(content))) + content for content in contents)
    items: list[Any] = []
    if read(data, 0, len(data), len(data), 0, _TAG, items) != len(data):
        raise UnusableError("it does not fit: it does not read what etcd writes")
    if items != expected or list(map(type, items)) != list(map(type, expected)):
        raise UnusableError("it does not fit: it reads something else")


def _load() -> tuple[Accelerator | None, str]:
    try:
        return load(), "accelerated"
    except UnusableError as error:
        return None, f"pure Python ({error})"


_CHOSEN: Final = _load()
ACCELERATOR: Final = _CHOSEN[0]
"""The accelerator; None means generated Python only."""
BACKEND: Final = _CHOSEN[1]
"""`accelerated`, or `pure Python` with the reason, for people who read a bug report."""
