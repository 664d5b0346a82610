"""codec/speedups.py: the choice of the accelerator, and what makes its objects sound."""

import gc
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import fields
from types import ModuleType, SimpleNamespace
from typing import Any, Final, cast, get_type_hints

import pytest

from etcd_aio import codec, pb
from etcd_aio.base.accelerator import UnusableError
from etcd_aio.codec import speedups
from etcd_aio.codec.speedups import Accelerator, check
from etcd_aio.errors import MalformedReplyError
from etcd_aio.types import Event, EventType, Header, KeyValue, PutResult, RangeResult, TxnResult, WatchReply
from tests.support.codec_backends import accelerator_of
from tests.support.reference_counts import mortal

HEADER = pb.ResponseHeader(cluster_id=1 << 63, member_id=2, revision=1 << 40, raft_term=3)
KV = pb.KeyValue(key=b"key" * 10, value=b"value" * 20, create_revision=1 << 40, mod_revision=1 << 41, version=300)
RANGE = codec.encode(pb.RangeResponse(header=HEADER, kvs=[KV, KV], more=True, count=3))
PUT = codec.encode(pb.PutResponse(header=HEADER, prev_kv=KV))
ATOMS = {bytes, int, EventType}


@pytest.fixture(scope="module")
def accelerator() -> Accelerator:
    found = accelerator_of("accelerated")
    assert found is not None
    return found


# The choice.


def test_the_backend_says_which_it_is() -> None:
    if speedups.ACCELERATOR is not None:
        assert speedups.BACKEND == "accelerated"
    else:
        assert speedups.BACKEND.startswith("pure Python (")


class PythonModule:
    """What an accelerator does, in Python, with a fault if a test wants one."""

    def __init__(self, fault: str = "") -> None:
        self._fault = fault

    def set_classes(self, *classes: object) -> None:
        if self._fault == "classes":
            raise TypeError("key is not a slot")

    def read_key_values(self, data: bytes, at: int, end: int, pause: int, cost: int, tag: int, items: list[Any]) -> int:
        return self._read(KeyValue, data, at, end, items)

    def read_events(self, data: bytes, at: int, end: int, pause: int, cost: int, tag: int, items: list[Any]) -> int:
        return self._read(Event, data, at, end, items)

    def move_items(self, items: list[Any], made: list[tuple[Any, ...]], most: int) -> int:
        if self._fault != "moved":
            made[:] = [(*items[-most:], *(made[0] if made else ()))]
        del items[-most:]
        return len(items)

    def read_range(self, data: bytes, at: int, end: int) -> RangeResult | None:
        found = codec.decode(RangeResult, data[at:end])
        return found if self._fault != "reply" else RangeResult(found.header, found.kvs)

    def read_put(self, data: bytes, at: int, end: int) -> PutResult | None:
        return codec.decode(PutResult, data[at:end]) if self._fault != "no reply" else None

    def _read(self, result_class: Any, data: bytes, at: int, end: int, items: list[Any]) -> int:
        while at < end:
            stop = at + 2 + data[at + 1]
            item: Any = codec.decode(result_class, data[at + 2 : stop])
            if self._fault == "slot" and result_class is KeyValue:
                item = KeyValue.__new__(KeyValue)  # every slot is empty
            if self._fault == "swapped" and result_class is KeyValue:
                item = KeyValue(item.key, item.value, item.mod_revision, item.create_revision, item.version, item.lease)
            if self._fault == "class" and result_class is Event:
                item = SimpleNamespace(type=item.type, kv=item.kv, prev_kv=item.prev_kv)
            items.append(item)
            at = stop
        return at - (self._fault == "position")


def test_a_sound_module_passes() -> None:
    assert check(cast("ModuleType", PythonModule())).read_events is not None


@pytest.mark.parametrize(
    ("fault", "error"),
    [("classes", TypeError), ("slot", AttributeError)],
)
def test_a_module_that_cannot_use_the_classes_is_not_used(fault: str, error: type[Exception]) -> None:
    with pytest.raises(error):  # which `load` takes for an accelerator that does not fit
        check(cast("ModuleType", PythonModule(fault)))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("reply", "another RangeResult"),
        ("no reply", "another PutResult"),
        ("swapped", "something else"),
        ("class", "something else"),
        ("position", "does not read"),
        ("moved", "moves something else"),
    ],
)
def test_a_module_that_makes_other_objects_is_not_used(fault: str, reason: str) -> None:
    with pytest.raises(UnusableError, match=reason):
        check(cast("ModuleType", PythonModule(fault)))


def test_a_module_of_another_version_is_not_used() -> None:
    with pytest.raises(AttributeError, match="set_classes"):
        check(ModuleType("empty"))


def test_results_with_other_slots_are_not_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast("Any", speedups._SLOTS), KeyValue, frozenset({"key"}))
    with pytest.raises(UnusableError, match="KeyValue has other slots"):
        check(cast("ModuleType", PythonModule()))


# What makes it sound that the cycle collector does not know the objects.


def test_results_hold_nothing_that_could_be_in_a_cycle() -> None:
    allowed: dict[Any, set[Any]] = {
        KeyValue: ATOMS,
        Event: ATOMS | {KeyValue, KeyValue | None},
        Header: ATOMS,
        RangeResult: ATOMS | {bool, Header, tuple[KeyValue, ...]},
        PutResult: {Header, KeyValue | None},
    }
    assert set(allowed) == set(speedups._SLOTS)
    for result_class, types in allowed.items():
        hints = get_type_hints(result_class)
        for field in fields(cast("Any", result_class)):
            assert hints[field.name] in types, f"{result_class.__name__}.{field.name}: see codec/_speedups.c"
        assert result_class.__dictoffset__ == result_class.__weakrefoffset__ == 0


def decoded() -> Iterator[object]:
    yield from codec.decode(RangeResult, codec.encode(pb.RangeResponse(kvs=[KV] * 3))).kvs
    for reply in (codec.decode(RangeResult, RANGE), codec.decode(PutResult, PUT)):
        yield from (reply, reply.header)
    event = pb.Event(kv=KV, prev_kv=KV)
    for found in codec.decode(WatchReply, codec.encode(pb.WatchResponse(events=[event] * 3))).events:
        yield from (found, found.kv, found.prev_kv)


@pytest.mark.usefixtures("accelerator")
def test_the_cycle_collector_is_not_shown_them() -> None:
    found = list(decoded())
    assert len(found) == 16
    assert not any(map(gc.is_tracked, found))


@pytest.mark.usefixtures("accelerator")
def test_the_cycle_collector_is_not_shown_the_tuple_of_a_large_reply() -> None:
    decoder = codec.IncrementalDecoder(RangeResult)
    decoder.feed(codec.encode(pb.RangeResponse(kvs=[KV] * 3)))
    assert not gc.is_tracked(decoder.finish().kvs)


# Moving items into a tuple.


@pytest.mark.parametrize("most", [1, 2, 3, 6, 7, 1 << 40])
def test_items_are_moved_from_the_end_in_steps(accelerator: Accelerator, most: int) -> None:
    items: list[object] = [object() for _ in range(7)]
    whole, made = tuple(items), list[tuple[object, ...]]()
    for left in range(7 - most, 0, -most):
        assert accelerator.move_items(items, made, most) == left == len(items)
    assert accelerator.move_items(items, made, most) == 0
    assert (items, made) == ([], [whole])


def test_a_tuple_that_others_have_is_not_written_to(accelerator: Accelerator) -> None:
    mine = (None, None)
    for made in ([mine], [(None,)], [[1, 2]], [None]):
        with pytest.raises((SystemError, IndexError)):
            accelerator.move_items([1, 2], cast("Any", made), 2)
    assert mine == (None, None)


@pytest.mark.parametrize("arguments", [(), ([], []), ((), [], 1), ([], (), 1), ([], [], "1")])
def test_only_lists_are_moved(accelerator: Accelerator, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        cast("Any", accelerator.move_items)(*arguments)


@pytest.mark.parametrize("most", [0, -1])
def test_a_step_moves_something(accelerator: Accelerator, most: int) -> None:
    with pytest.raises(ValueError, match="no items"):
        accelerator.move_items([1], [], most)


# Counts of references, and memory.

EVENT = pb.Event(type=pb.EventEventType.DELETE, kv=KV, prev_kv=KV)
SOUND = codec.encode(pb.RangeResponse(kvs=[KV, KV])), codec.encode(pb.WatchResponse(events=[EVENT, pb.Event(kv=KV)]))
# Of each half is read, until something else comes, and is given up.
UNUSUAL = b"\x12\x06\x0a\x01k\x10\x01\x0a", b"\x5a\x0c\x12\x03\x0a\x01k\x1a\x05\x0a\x01k\x10\xff"
COUNTED: Final = mortal(
    KeyValue,
    Event,
    Header,
    RangeResult,
    PutResult,
    EventType.PUT,
    EventType.DELETE,
    None,
    b"",
)


def read_once(accelerator: Accelerator) -> None:
    for kind, read in enumerate((accelerator.read_key_values, accelerator.read_events)):
        for data in (SOUND[kind], UNUSUAL[kind]):
            items: list[Any] = []
            read(data, 0, len(data), len(data), 128, data[0], items)
            accelerator.move_items(items, [], 1)
    for read_reply, data in ((accelerator.read_range, RANGE), (accelerator.read_put, PUT)):
        for end in range(len(data) + 1):  # each cut is read, or given up somewhere
            read_reply(data, 0, end)


def test_a_thousand_rounds_leave_no_reference_and_no_memory(accelerator: Accelerator) -> None:
    for _ in range(10):
        read_once(accelerator)
    tracemalloc.start()
    try:
        gc.collect()
        counts = [sys.getrefcount(one) for one in COUNTED]
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(1_000):
            read_once(accelerator)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        grown = [sys.getrefcount(one) - count for one, count in zip(COUNTED, counts, strict=True)]
    finally:
        tracemalloc.stop()
    assert max(map(abs, grown)) < 100, grown
    assert after - before < 10_000


# Arguments that no decoder passes.


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (b"", 0, 0, 0, 0, 18),
        (bytearray(b""), 0, 0, 0, 0, 18, []),
        (b"", 0, 0, 0, 0, 18, ()),
        (b"", "0", 0, 0, 0, 18, []),
    ],
    ids=["none", "six", "bytearray", "tuple", "text"],
)
def test_other_arguments_are_refused(accelerator: Accelerator, arguments: tuple[Any, ...]) -> None:
    for read in (accelerator.read_key_values, accelerator.read_events):
        with pytest.raises(TypeError):
            cast("Any", read)(*arguments)


def test_positions_out_of_the_data_are_harmless(accelerator: Accelerator) -> None:
    data = SOUND[0]
    with pytest.raises(ValueError, match="negative"):
        accelerator.read_key_values(data, -1, len(data), len(data), 0, 18, [])
    with pytest.raises(OverflowError):
        accelerator.read_key_values(data, 1 << 70, len(data), len(data), 0, 18, [])
    for at, end in ((0, -1), (len(data), len(data)), (1 << 40, len(data)), (1 << 40, 1 << 41)):
        assert accelerator.read_key_values(data, at, end, 1 << 50, 0, 18, []) == at
    for end in (1 << 40, 1 << 70):  # a wrong length in a message may be that large
        items: list[Any] = []
        assert accelerator.read_key_values(data, 0, end, end, 0, 18, items) == len(data)
        assert len(items) == 2
    assert accelerator.read_key_values(data, 0, -(1 << 70), 1 << 70, 0, 18, []) == 0


def test_classes_are_set_once(accelerator: Accelerator) -> None:
    from etcd_aio.codec import _speedups

    assert accelerator.read_events is _speedups.read_events
    with pytest.raises(ValueError, match="once"):
        _speedups.set_classes(EventType.PUT, EventType.DELETE, KeyValue, Event, Header, RangeResult, PutResult)


@pytest.mark.parametrize("arguments", [(), (RANGE,), (bytearray(RANGE), 0, 1), (RANGE, "0", 1), (RANGE, 0, 1, 1)])
def test_other_arguments_of_a_reply_are_refused(accelerator: Accelerator, arguments: tuple[Any, ...]) -> None:
    for read in (accelerator.read_range, accelerator.read_put):
        with pytest.raises(TypeError):
            cast("Any", read)(*arguments)


@pytest.mark.parametrize("size", [1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_length_larger_than_any_memory_is_malformed(size: int) -> None:
    length = b"".join(bytes([size >> shift & 0x7F | 0x80]) for shift in range(0, 63, 7)) + bytes([size >> 63])
    for tag in (b"\x0a", b"\x12"):
        reply = codec.encode(pb.TxnResponse(header=HEADER)) + b"\x1a" + bytes([1 + len(length)]) + tag + length
        with pytest.raises(MalformedReplyError):
            codec.decode(TxnResult, reply)


def test_the_tuple_of_items_can_be_read_at_any_time(accelerator: Accelerator) -> None:
    items, made = [1, 2, 3, 4, 5], list[tuple[object, ...]]()
    accelerator.move_items(items, made, 2)
    assert made == [(None, None, None, 4, 5)]


@pytest.mark.parametrize(("at", "end"), [(-1, 5), (5, 4), (0, len(RANGE) + 1), (1 << 40, 1 << 41)])
def test_positions_of_a_reply_out_of_the_data_are_harmless(accelerator: Accelerator, at: int, end: int) -> None:
    assert accelerator.read_range(RANGE, at, end) is None


def test_the_events_of_one_revision_share_its_number(accelerator: Accelerator) -> None:
    events = [pb.Event(kv=pb.KeyValue(key=b"k", create_revision=1 << 40, mod_revision=1 << 40)) for _ in range(3)]
    data, items = codec.encode(pb.WatchResponse(events=events)), list[Event]()
    accelerator.read_events(data, 0, len(data), len(data), 0, data[0], items)
    assert len({id(event.kv.mod_revision) for event in items} | {id(event.kv.create_revision) for event in items}) == 1
