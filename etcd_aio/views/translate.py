r"""Translation: operations into a namespace, results and events out of it. Pure.

A namespace of `ns` is the keys that are longer than `ns` and begin with it; its users see them without it. So the order
of keys stays what it is, and an interval becomes an interval:

    user's form                    KeyRange               in the store
    key "k"                        "k", ""                ns + "k", ""
    key "a", range_end "b"         "a", "b"               ns + "a", ns + "b"
    prefix "p"                     "p", "q"               ns + "p", ns + "q"
    prefix of 0xff bytes only      "\xff", "\0"           ns + "\xff", the end of ns
    from_key "k"                   "k", "\0"              ns + "k", the end of ns
    all_keys, or an empty prefix   "\0", "\0"             ns + "\0", the end of ns

The end of a namespace is that of the prefix: its last byte increased, behind those that are 0xff; "\0", no end, if all
are. The key `ns` itself is outside, since etcd has no empty key that could stand for it.

Results and events are new objects, since those beneath may be shared; a result without keys is returned as it is.
Cutting a long result is a generator that yields from time to time, so that its caller can let other tasks run.
"""

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import repeat, starmap
from typing import Any, Final

from etcd_aio import (
    Compare,
    DeleteResult,
    Event,
    InvalidRequestError,
    KeyRange,
    KeyValue,
    PutResult,
    RangeResult,
    TxnResult,
    WatchBatch,
    op,
)
from etcd_aio.arguments import encode_key
from etcd_aio.errors import EmptyKeyError
from etcd_aio.fast_frozen import mutable_twin
from etcd_aio.types import NO_END, LeaseTimeToLiveResult, OpResult, prefix_end, shown_key, shown_keys

STEP: Final = 8192
"""Key-values or events that are cut at once: a few milliseconds."""

# Key-values and events are cut by the thousand, and filling a twin takes a quarter of the time of a frozen constructor:
# 0.19 ms for a thousand events, instead of 0.8 ms.
_MutableKeyValue: Final = mutable_twin(KeyValue)
_MutableEvent: Final = mutable_twin(Event)

# Endless new objects: an iterator of the standard library makes one in two thirds of the time of a call.
_NEW_EVENTS: Final = starmap(_MutableEvent, repeat(()))
_NEW_KEY_VALUES: Final = starmap(_MutableKeyValue, repeat(()))


class Translation:
    """The translation of one namespace.

    Args:
        name: the prefix that the keys of the namespace have in the store.

    Raises:
        EmptyKeyError: it is empty.
    """

    __slots__ = ("_end", "_size", "name")

    def __init__(self, name: bytes) -> None:
        self.name = encode_key(name, "the namespace")
        self._size = len(self.name)
        self._end = prefix_end(self.name)

    # Into the namespace.

    def keys(self, keys: KeyRange) -> KeyRange:
        """The range in the store.

        Raises:
            EmptyKeyError: its first key is empty, which only a range that was made elsewhere can be.
            InvalidRequestError: it ends before its first key.
            TypeError: it is not of bytes.
        """
        key, end = _checked(keys.key), keys.range_end
        if not end:
            return KeyRange(self.name + key)
        if end == NO_END:
            return KeyRange(self.name + key, self._end)
        if _checked(end) < key:
            raise InvalidRequestError(f"range_end {shown_key(end)} is before the first key {shown_key(key)}")
        return KeyRange(self.name + key, self.name + end)

    def operation(self, operation: op.Op) -> op.Op:
        """The operation in the store.

        Raises:
            EmptyKeyError, InvalidRequestError: its keys are refused; see `keys`.
            DuplicateKeyError: a branch of a txn would end the members of etcd.
            TypeError: it is not an operation, or its keys are not bytes.
        """
        into = _INTO.get(type(operation))
        if into is None:
            raise TypeError(f'do() takes an operation such as op.put("k", "v"), got {type(operation).__name__}')
        translated: op.Op = into(self, operation)
        return translated

    def _get(self, get: op.GetOp) -> op.GetOp:
        return op.GetOp(self.name + _checked(get.key), get.revision, get.serializable, get.keys_only)

    def _put(self, put: op.PutOp) -> op.PutOp:
        key = self.name + _checked(put.key)
        return op.PutOp(key, put.value, put.lease, put.prev_kv, put.ignore_value, put.ignore_lease)

    def _range(self, asked: op.RangeOp) -> op.RangeOp:
        return replace(asked, keys=self.keys(asked.keys))

    def _delete(self, delete: op.DeleteOp) -> op.DeleteOp:
        return op.DeleteOp(self.keys(delete.keys), delete.prev_kv)

    def _txn(self, txn: op.TxnOp) -> op.TxnOp:
        if self._end == NO_END and txn.has_endless_delete:
            txn.extent()  # it is refused here, where its keys are those of the user
        return op.TxnOp(
            tuple([self._compare(compare) for compare in txn.when]),
            tuple([self.operation(operation) for operation in txn.then]),
            tuple([self.operation(operation) for operation in txn.otherwise]),
        )

    def _compare(self, compare: Compare) -> Compare:
        return Compare(self.keys(compare.keys), compare.target, compare.operator, compare.operand)

    # Out of the namespace.

    def result(self, operation: op.Op, result: OpResult) -> Generator[None, None, OpResult]:
        """Cut the result of an operation, in steps."""
        match result:
            case KeyValue():
                return self._cut(result)
            case RangeResult():
                return RangeResult(result.header, (yield from self.key_values(result.kvs)), result.more, result.count)
            case PutResult(prev_kv=KeyValue() as prev_kv):
                return type(result)(result.header, self._cut(prev_kv))
            case DeleteResult(prev_kvs=(_, *_)):
                return type(result)(result.header, result.deleted, (yield from self.key_values(result.prev_kvs)))
            case TxnResult() if isinstance(operation, op.TxnOp):
                operations = operation.then if result.succeeded else operation.otherwise
                responses = []
                for inner, response in zip(operations, result.responses, strict=True):
                    responses.append((yield from self.result(inner, response)))
                return type(result)(result.succeeded, result.header, tuple(responses), operations if responses else ())
            case _:
                return result

    def key_values(self, kvs: tuple[KeyValue, ...]) -> Generator[None, None, tuple[KeyValue, ...]]:
        """Cut key-values, in steps."""
        cut: list[KeyValue] = []
        for start in range(0, len(kvs), STEP):
            if start:
                yield
            cut += map(self._cut, kvs[start : start + STEP])
        return tuple(cut)

    def short_batch(self, batch: WatchBatch) -> WatchBatch:
        """Cut a batch of at most `STEP` events."""
        events = batch.events
        return WatchBatch(tuple(self._cut_events(events)), batch.revision) if events else batch

    def batch(self, batch: WatchBatch) -> Generator[None, None, WatchBatch]:
        """Cut a batch of events, in steps."""
        events = batch.events
        cut: list[Event] = []
        for start in range(0, len(events), STEP):
            if start:
                yield
            cut += self._cut_events(events[start : start + STEP])
        return WatchBatch(tuple(cut), batch.revision)

    def lease(self, lease: LeaseTimeToLiveResult) -> LeaseTimeToLiveResult:
        """A lease with those of its keys that are in the namespace, cut."""
        if not lease.keys:
            return lease
        name, size = self.name, self._size
        keys = tuple([key[size:] for key in lease.keys if key.startswith(name) and key != name])
        return LeaseTimeToLiveResult(lease.header, lease.id, lease.ttl, lease.granted_ttl, keys)

    def _cut(self, kv: KeyValue) -> KeyValue:
        cut: Any = _MutableKeyValue()
        cut.key = kv.key[self._size :]
        cut.value = kv.value
        cut.create_revision = kv.create_revision
        cut.mod_revision = kv.mod_revision
        cut.version = kv.version
        cut.lease = kv.lease
        cut.__class__ = KeyValue
        return cut  # type: ignore[no-any-return] # a KeyValue by now

    def _cut_events(self, events: tuple[Event, ...]) -> list[Event]:
        # The path of every event: `_cut` is written out, since a call takes as long as half of it.
        size, cuts = self._size, []
        for event, cut, cut_kv in zip(events, _NEW_EVENTS, _NEW_KEY_VALUES, strict=False):
            kv, prev_kv = event.kv, event.prev_kv
            cut_kv.key = kv.key[size:]
            cut_kv.value = kv.value
            cut_kv.create_revision = kv.create_revision
            cut_kv.mod_revision = kv.mod_revision
            cut_kv.version = kv.version
            cut_kv.lease = kv.lease
            cut_kv.__class__ = KeyValue
            cut.type = event.type
            cut.kv = cut_kv
            cut.prev_kv = None if prev_kv is None else self._cut(prev_kv)
            cut.__class__ = type(event)  # an event of a resync is of another class
            cuts.append(cut)
        return cuts

    # Errors.

    def names(self, operation: op.Op) -> Mapping[str, str]:
        """The keys of an operation: as errors of the store show them, and as its user wrote them."""
        return self.names_of_ranges(_ranges(operation))

    def names_of_ranges(self, ranges: Iterable[KeyRange]) -> Mapping[str, str]:
        """The names of ranges, as `names`."""
        pairs = ((self.keys(keys), keys) for keys in ranges)
        return {shown_keys(inner.key, inner.range_end): shown_keys(keys.key, keys.range_end) for inner, keys in pairs}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Replace names in a text, the longest first; a name that has replaced another is not replaced again."""
    if not names:
        return text
    pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(pattern, lambda found: names[found[0]], text)


def _checked(key: bytes) -> bytes:
    if type(key) is not bytes:
        raise TypeError(f"a key of an operation must be bytes, got {type(key).__name__}")
    if not key:
        raise EmptyKeyError("key is empty, and etcd has no empty key")
    return key


def _ranges(operation: op.Op) -> Iterator[KeyRange]:
    match operation:
        case op.GetOp() | op.PutOp():
            yield KeyRange(operation.key)
        case op.RangeOp() | op.DeleteOp():
            yield operation.keys
        case op.TxnOp():
            for compare in operation.when:
                yield compare.keys
                yield KeyRange(compare.keys.key)  # a txn without operations is sent with a count of it
            for inner in operation.then + operation.otherwise:
                yield from _ranges(inner)


_INTO: Final[Mapping[type, Callable[[Translation, Any], Any]]] = {
    op.GetOp: Translation._get,
    op.PutOp: Translation._put,
    op.RangeOp: Translation._range,
    op.DeleteOp: Translation._delete,
    op.TxnOp: Translation._txn,
}
