"""Chooses, at import, the source of single events of a watch: a compiled class, or one in Python.

A coroutine for each event of a large batch takes longer than all else that is done with it. The compiled class returns
an event that is there without one; see `base/accelerator.py`.
"""

from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from etcd_aio.base.accelerator import UnusableError, load_if_usable
from etcd_aio.types import NO_END, Event, EventType, KeyRange, KeyValue

CountInside: TypeAlias = Callable[[tuple[Event, ...], bytes, bytes], int]
"""`count_inside(events, first, end)` counts the events at the head whose keys are in the range. It may stop early."""


class PythonEventSource:
    """The base class of `Watcher`, which has `_next_event`, the coroutine that returns the next event.

    Attributes:
        _batch: the events that are iterated over singly.
        _at: the position of the next one.
    """

    __slots__ = ("_at", "_batch")

    _batch: tuple[Event, ...]
    _at: int

    def __anext__(self) -> Coroutine[Any, Any, Event]:
        return self._next_event()

    async def _next_event(self) -> Event:
        raise NotImplementedError  # in `Watcher`


def check(module: ModuleType) -> ModuleType:
    """Have a module check keys and return events, and compare them with what is expected.

    Raises:
        UnusableError: anything differs.
        AttributeError, TypeError, ValueError: a class is another one.
    """
    module.set_classes(Event, KeyValue)
    events = tuple(Event(EventType.PUT, KeyValue(key)) for key in (b"b", b"bb", b"c", b"a"))
    ranges = ((b"b", b""), (b"b", b"c"), (b"b", b"\0"), (b"c", b"d"))
    if [module.count_inside(events, *keys) for keys in ranges] != [1, 2, 3, 0]:
        raise UnusableError("it does not fit: it counts other events")

    async def next_event(source: Any) -> Event:
        source._batch, source._at = events[2:], 1
        return events[1]

    source: Any = type("Source", (module.EventSource,), {"__slots__": (), "_next_event": next_event})()
    source._batch, source._at = events[:1], 0
    found = []
    for _ in range(3):
        try:
            source.__anext__().send(None)
        except StopIteration as end:
            found.append(end.value)
    if found != [events[0], events[1], events[3]]:
        raise UnusableError("it does not fit: it returns other events")
    return module


_CHOSEN: Final = load_if_usable("watch", check)
BACKEND: Final = _CHOSEN[1]
"""`accelerated`, or `pure Python` with the reason."""
_COUNT_INSIDE: Final[CountInside | None] = None if _CHOSEN[0] is None else _CHOSEN[0].count_inside

if TYPE_CHECKING:
    EventSource = PythonEventSource
else:
    EventSource = PythonEventSource if _CHOSEN[0] is None else _CHOSEN[0].EventSource


def foreign_key(
    events: tuple[Event, ...], keys: KeyRange, count_inside: CountInside | None = _COUNT_INSIDE
) -> bytes | None:
    """The first key of these events that is not in a range; None if all are."""
    first, end = keys.key, keys.range_end
    if count_inside is not None:
        events = events[count_inside(events, first, end) :]
    for event in events:  # the path of every event, if nothing else has counted
        key = event.kv.key
        if key != first and not (end and first < key and (key < end or end == NO_END)):
            return key
    return None
