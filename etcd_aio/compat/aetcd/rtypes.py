"""Results of the calls, in the shapes of aetcd."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Final


class _Shown:
    """A result whose `repr` has all its attributes."""

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__}[{values}]"


class ResponseHeader(_Shown):
    """Which member answered, and at which revision.

    Args:
        header: anything with these four attributes.
    """

    def __init__(self, header: Any) -> None:
        self.cluster_id: int = header.cluster_id
        self.member_id: int = header.member_id
        self.revision: int = header.revision
        self.raft_term: int = header.raft_term


class KeyValue(_Shown):
    """A key with its value and history.

    Args:
        keyvalue: anything with these six attributes.
    """

    def __init__(self, keyvalue: Any) -> None:
        self.key: bytes = keyvalue.key
        self.value: bytes = keyvalue.value
        self.create_revision: int = keyvalue.create_revision
        self.mod_revision: int = keyvalue.mod_revision
        self.version: int = keyvalue.version
        self.lease: int = keyvalue.lease


def _key_value(keyvalue: Any) -> KeyValue | None:
    return None if keyvalue is None else KeyValue(keyvalue)


class Get(KeyValue):
    """A key that was read, with the metadata of the response."""

    def __init__(self, header: Any, keyvalue: Any) -> None:
        self.header = ResponseHeader(header)
        super().__init__(keyvalue)


class _KeyValues:
    """Key-values that are made as they are looked at."""

    def __init__(self, kvs: Sequence[Any]) -> None:
        self._kvs = kvs

    def __len__(self) -> int:
        return len(self._kvs)

    def __iter__(self) -> Iterator[KeyValue]:
        return map(KeyValue, self._kvs)

    def __getitem__(self, index: int) -> KeyValue:
        return KeyValue(self._kvs[index])


class GetRange(_KeyValues):
    """The keys of a range; true if there are any.

    Attributes:
        header: the metadata of the response.
        kvs: the keys.
        more: whether a limit left out some.
        count: how many keys the range has.
    """

    def __init__(self, header: Any, kvs: Sequence[Any], more: bool, count: int) -> None:
        super().__init__(kvs)
        self.header = ResponseHeader(header)
        self.kvs = kvs
        self.more = more
        self.count = count

    def __bool__(self) -> bool:
        return self.count > 0

    def __repr__(self) -> str:
        return f"GetRange[header={self.header!r}, more={self.more!r}, count={self.count!r}]"


class Put(_Shown):
    """A put.

    Attributes:
        header: the metadata of the response.
        prev_kv: the key as it was before, if requested.
    """

    def __init__(self, header: Any, prev_kv: Any = None) -> None:
        self.header = ResponseHeader(header)
        self.prev_kv = _key_value(prev_kv)


class Delete(_Shown):
    """A delete of one key.

    Attributes:
        header: the metadata of the response.
        deleted: how many keys were deleted.
        prev_kv: the key as it was, if requested.
    """

    def __init__(self, header: Any, deleted: int, prev_kv: Any = None) -> None:
        self.header = ResponseHeader(header)
        self.deleted = deleted
        self.prev_kv = _key_value(prev_kv)


class DeleteRange(_KeyValues):
    """A delete of a range; true if there was anything. It has the deleted keys, if requested.

    Attributes:
        header: the metadata of the response.
        deleted: how many keys were deleted.
        prev_kvs: the keys as they were, if requested.
    """

    def __init__(self, header: Any, deleted: int, prev_kvs: Sequence[Any]) -> None:
        super().__init__(prev_kvs)
        self.header = ResponseHeader(header)
        self.deleted = deleted
        self.prev_kvs = prev_kvs

    def __bool__(self) -> bool:
        return self.deleted > 0

    def __repr__(self) -> str:
        return f"DeleteRange[header={self.header!r}, deleted={self.deleted!r}]"


class EventKind(str, Enum):  # noqa: UP042 - its str() is that of aetcd
    """The kind of an event."""

    PUT = "PUT"
    DELETE = "DELETE"


_KINDS: Final = ("PUT", "DELETE")


class Event(_Shown):
    """An event of a watch.

    Args:
        kind: etcd's number of the kind.
        kv: the key after the change.
        prev_kv: the key before it, if requested.

    Attributes:
        kind: the text of an `EventKind`.
    """

    def __init__(self, kind: int, kv: Any, prev_kv: Any = None) -> None:
        self.kind: str = _KINDS[kind]
        self.kv = KeyValue(kv)
        self.prev_kv = _key_value(prev_kv)


class Watch:
    """A watch: `async for event in watch`, and `await watch.cancel()`, also within the loop, which ends it.

    Args:
        iterator: returns an iterator over the events.
        cancel_func: cancels the watch.
        watch_id: its number.
    """

    def __init__(
        self, iterator: Callable[[], AsyncIterator[Event]], cancel_func: Callable[[], Awaitable[None]], watch_id: int
    ) -> None:
        self._iterator = iterator
        self._cancel = cancel_func
        self.watch_id = watch_id

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._iterator()

    async def cancel(self) -> None:
        """End the watch. Events that were not delivered are forgotten."""
        await self._cancel()

    def __repr__(self) -> str:
        return f"Watch[watch_id={self.watch_id!r}]"
