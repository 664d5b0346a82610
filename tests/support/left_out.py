"""Fields that an answer may not have: the library must not read them, on any release, in any test.

A read of keys only has no values, and in etcd 3.7 no leases either. What is left out reads as zero, which is also what
a key without a lease has, so code that reads it is wrong on one release and right on another. Here it is wrong on each:
a test fails in which a module of the library reads such a field, of whichever release the server or the fake is.
What only hands a result on may read it: the types themselves, and what prints or translates answers.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

from etcd_aio import KeyValue
from etcd_aio.kv import op, operations

_HANDS_ON: Final = (
    *("etcd_aio.types.", "etcd_aio.cli.", "etcd_aio.compat."),
    *("etcd_aio.views.prefix", "etcd_aio.views.translate"),
)

LEFT_OUT: Final = frozenset({"value", "lease"})


_seen: Final[list[str]] = []


def seen() -> list[str]:
    """Which modules of the library have read such a field since the last call."""
    found = list(dict.fromkeys(_seen))
    _seen.clear()
    return found


class KeyOnly(KeyValue):
    """A key of a read with `keys_only`."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in LEFT_OUT:
            reader = sys._getframe(1).f_globals.get("__name__", "")
            if reader.startswith("etcd_aio.") and not reader.startswith(_HANDS_ON):
                _seen.append(f"{reader} has read .{name} of a read of keys only")  # raised here, a task may end unseen
        if name == "__class__":  # two key-values are equal if they are of one class
            return KeyValue
        return object.__getattribute__(self, name)


def _mark(kvs: Iterable[KeyValue]) -> None:
    for kv in kvs:
        if type(kv) is KeyValue:
            object.__setattr__(kv, "__class__", KeyOnly)


def install() -> Callable[[], None]:
    """Guard the fields from now on. Returns a function that ends it."""
    get, ranged, inner = op.GetOp.result, op.RangeOp.result, operations._inner_result

    def marked(operation: Any, reply: Any) -> None:
        if getattr(operation, "keys_only", False) and hasattr(reply, "kvs"):
            _mark(reply.kvs)

    def get_result(self: Any, reply: Any) -> Any:
        marked(self, reply)
        return get(self, reply)

    def range_result(self: Any, reply: Any) -> Any:
        marked(self, reply)
        return ranged(self, reply)

    def inner_result(operation: Any, response: Any, outer: Any) -> Any:
        marked(operation, response)
        return inner(operation, response, outer)

    op.GetOp.result, op.RangeOp.result = get_result, range_result  # type: ignore[method-assign]
    operations._inner_result = inner_result

    def end() -> None:
        op.GetOp.result, op.RangeOp.result = get, ranged  # type: ignore[method-assign]
        operations._inner_result = inner

    return end
