from collections.abc import Coroutine
from typing import Any

from etcd_aio.types import Event, KeyValue

class EventSource:
    _batch: tuple[Event, ...]
    _at: int
    def __anext__(self) -> Coroutine[Any, Any, Event]: ...

def set_classes(event: type[Event], key_value: type[KeyValue], /) -> None: ...
def count_inside(events: tuple[Event, ...], first: bytes, end: bytes, /) -> int: ...
