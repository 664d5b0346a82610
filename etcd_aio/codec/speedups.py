"""Chooses, at import, what reads key-values, events and small replies: the compiled accelerator, or generated Python.

The accelerator reads what is laid out as etcd writes it, and leaves every other item to the generated decoders; see
`base/accelerator.py`.
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, TypeAlias

from etcd_aio.base.accelerator import UnusableError, load_if_usable
from etcd_aio.dataclass import dataclass
from etcd_aio.fast_frozen import filled
from etcd_aio.types import Event, EventType, Header, KeyValue, PutResult, RangeResult

ReadRun: TypeAlias = Callable[[bytes, int, int, int, int, int, list[Any]], int]
"""`read(data, at, end, pause, cost, tag, items)` appends items while they begin with `tag` and at or before `pause`,
which each item moves back by `cost`. Returns the position of the first item that it did not read."""

MoveItems: TypeAlias = Callable[[list[Any], list[tuple[Any, ...]], int], int]
"""`move_items(items, made, most)` moves items from the end of a list into the tuple that it puts into `made`. Returns
how many are left."""

ReadReply: TypeAlias = Callable[[bytes, int, int], Any]
"""`read(data, at, end)` returns the reply between these positions, or None if it is laid out in an unusual way."""

_TAG: Final = 10
_KEY_VALUE: Final = b"\x0a\x01k\x10\x02\x18\x03\x20\x04\x2a\x01v\x30\x05"
_SAMPLE_KEY_VALUE: Final = filled(KeyValue, b"k", b"v", 2, 3, 4, 5)
_SAMPLE_HEADER: Final = filled(Header, 1, 2, 3, 4)
_HEADER: Final = b"\x0a\x08\x08\x01\x10\x02\x18\x03\x20\x04"
_SAMPLE_REPLIES: Final = (
    (
        _HEADER + b"\x12\x0e" + _KEY_VALUE + b"\x18\x01\x20\x02",
        filled(RangeResult, _SAMPLE_HEADER, (_SAMPLE_KEY_VALUE,), True, 2),
    ),
    (_HEADER + b"\x12\x0e" + _KEY_VALUE, filled(PutResult, _SAMPLE_HEADER, _SAMPLE_KEY_VALUE)),
    (_HEADER, filled(PutResult, _SAMPLE_HEADER, None)),
)
_SLOTS: Final[Mapping[type, frozenset[str]]] = {
    KeyValue: frozenset({"key", "value", "create_revision", "mod_revision", "version", "lease"}),
    Event: frozenset({"type", "kv", "prev_kv"}),
    Header: frozenset({"cluster_id", "member_id", "revision", "raft_term"}),
    RangeResult: frozenset({"header", "kvs", "more", "count"}),
    PutResult: frozenset({"header", "prev_kv"}),
}  # that the accelerator fills, in the order in which it is given the classes


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The compiled readers, which were checked."""

    read_key_values: ReadRun
    read_events: ReadRun
    move_items: MoveItems
    read_range: ReadReply
    read_put: ReadReply

    def reply_reader(self, result_class: object) -> ReadReply | None:
        """The reader of whole replies of this kind, if there is one."""
        return self.read_range if result_class is RangeResult else self.read_put if result_class is PutResult else None


def check(module: ModuleType) -> Accelerator:
    """Have a module write every slot of the results, and read them all.

    Raises:
        UnusableError: an object differs from one that its class makes.
        AttributeError, TypeError, ValueError: a function or a class is another one.
    """
    for result_class, names in _SLOTS.items():
        if set(result_class.__dict__["__slots__"]) != names or result_class.__dictoffset__:
            raise UnusableError(f"{result_class.__name__} has other slots")
    module.set_classes(EventType.PUT, EventType.DELETE, *_SLOTS)
    found = Accelerator(
        module.read_key_values, module.read_events, module.move_items, module.read_range, module.read_put
    )
    put, delete = b"\x12\x0e" + _KEY_VALUE, b"\x08\x01\x12\x0e" + _KEY_VALUE + b"\x1a\x0e" + _KEY_VALUE
    events = [
        filled(Event, EventType.PUT, _SAMPLE_KEY_VALUE, None),
        filled(Event, EventType.DELETE, _SAMPLE_KEY_VALUE, _SAMPLE_KEY_VALUE),
    ]
    _compare(found.read_key_values, [_KEY_VALUE, b""], [_SAMPLE_KEY_VALUE, filled(KeyValue, b"", b"", 0, 0, 0, 0)])
    _compare(found.read_events, [put, delete], events)
    items, made = [*events, *events], list[tuple[Any, ...]]()
    if [found.move_items(items, made, 3) for _ in range(2)] != [1, 0] or items or made != [(*events, *events)]:
        raise UnusableError("it does not fit: it moves something else")
    for data, reply in _SAMPLE_REPLIES:
        read_reply = found.read_put if isinstance(reply, PutResult) else found.read_range
        read = read_reply(b"!" + data + b"!", 1, 1 + len(data))
        if _parts(read) != _parts(reply):
            raise UnusableError(f"it does not fit: it reads another {type(reply).__name__}")
    return found


def _compare(read: ReadRun, contents: list[bytes], expected: list[Any]) -> None:
    data = b"".join(bytes((_TAG, len(content))) + content for content in contents)
    items: list[Any] = []
    if read(data, 0, len(data), len(data), 0, _TAG, items) != len(data):
        raise UnusableError("it does not fit: it does not read what etcd writes")
    if _parts(items) != _parts(expected):
        raise UnusableError("it does not fit: it reads something else")


def _parts(value: Any) -> object:
    """The values in a result, with their types. To compare results themselves would complete their classes."""
    if isinstance(value, list | tuple):
        return type(value), *map(_parts, value)
    slots = _SLOTS.get(type(value))
    return (type(value), value) if slots is None else (type(value), *(_parts(getattr(value, name)) for name in slots))


_CHOSEN: Final = load_if_usable("codec", check)
ACCELERATOR: Final = _CHOSEN[0]
"""The accelerator; None means generated Python only."""
BACKEND: Final = _CHOSEN[1]
"""`accelerated`, or `pure Python` with the reason, for people who read a bug report."""
