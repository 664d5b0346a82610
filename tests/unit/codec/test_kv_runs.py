"""codec/kv_runs.py, codec/accelerated_runs.py: which layouts the guess reads, and where a run ends."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import pytest

from etcd_aio import codec, pb
from etcd_aio.codec.accelerated_runs import AcceleratedReader
from etcd_aio.codec.codegen import function_of
from etcd_aio.codec.decoder import Decoder
from etcd_aio.codec.kv_runs import EventsReader, KeyValuesReader
from etcd_aio.codec.speedups import Accelerator
from etcd_aio.codec.targets import target_of
from etcd_aio.codec.wire import WireFormatError
from etcd_aio.errors import MalformedReplyError
from etcd_aio.types import Event, EventType, KeyValue
from tests.support.codec_backends import NAMES, accelerator_of

TAG = 18
PADDING = b"\x20\x05" + bytes(300)  # another field, and far enough from the end to guess
COST = 128


Reader: TypeAlias = KeyValuesReader | AcceleratedReader


@pytest.fixture(autouse=True, params=NAMES, scope="module")
def accelerator(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test runs with each back end's readers."""
    Spied.accelerator = accelerator_of(request.param)
    yield
    Spied.accelerator = None


class Spied:
    """The reader, with a count of what it left to the decoder of one."""

    accelerator: ClassVar[Accelerator | None] = None

    def __init__(self, unit: Reader | None = None) -> None:
        unit = unit or key_values_reader(self.accelerator)
        self._reader = unit.name
        self._names: dict[str, Any] = unit.namespace()
        unit.source().compile("a spied reader", self._names)
        one = function_of(unit.general)
        self.left = 0

        def spied(*arguments: Any) -> Any:
            self.left += 1
            return one(*arguments)

        self._names[unit.general.name] = spied

    def read(
        self, data: bytes, *, end: int | None = None, pause: int = 1 << 30, tag: int = TAG
    ) -> tuple[int, list[Any]]:
        found: list[Any] = []
        at = self._names[self._reader](data, 0, len(data) if end is None else end, pause, tag, found, 2)
        return at, found

    def is_guess_that_left(self, count: int) -> bool:
        """Whether the guess left so many items. What the accelerator leaves is its own affair."""
        return self.accelerator is not None or self.left == count


def key_values_reader(accelerator: Accelerator | None) -> Reader:
    general = Decoder(target_of(KeyValue), accelerator=accelerator)
    if accelerator is None:
        return KeyValuesReader(general, COST)
    return AcceleratedReader(general, COST, accelerator.read_key_values, "read_key_values")


def written(*kvs: pb.KeyValue) -> bytes:
    return codec.encode(pb.RangeResponse(kvs=list(kvs)))


def stored(**fields: Any) -> pb.KeyValue:
    return pb.KeyValue(
        **{"key": b"key", "value": b"value", "create_revision": 7, "mod_revision": 9, "version": 2, **fields}
    )


def plain(kv: pb.KeyValue) -> KeyValue:
    return KeyValue(kv.key, kv.value, kv.create_revision, kv.mod_revision, kv.version, kv.lease)


REVISIONS = [1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455, 268_435_456, (1 << 35) - 1]


@pytest.mark.parametrize("create", REVISIONS)
def test_revisions_of_every_width(create: int) -> None:
    for mod in REVISIONS:
        kv = stored(create_revision=create, mod_revision=max(create, mod))
        spied = Spied()
        assert spied.read(written(kv) + PADDING) == (len(written(kv)), [plain(kv)])
        assert spied.is_guess_that_left(0)


@pytest.mark.parametrize("key", [0, 1, 127])
@pytest.mark.parametrize("value", [0, 1, 127, 128, 16_383, 16_384, 3_000_000])
def test_every_usual_key_value_is_guessed(key: int, value: int) -> None:
    for version, lease in itertools.product([1, 127, 128, 16_383], [0, 1, (1 << 63) - 1, -1]):
        kv = stored(key=b"k" * key, value=b"v" * value, version=version, lease=lease)
        spied = Spied()
        assert spied.read(written(kv) + PADDING) == (len(written(kv)), [plain(kv)])
        assert spied.is_guess_that_left(int(key == 0))  # etcd has no empty keys, and writes no empty field


@pytest.mark.parametrize(
    "kv",
    [
        pb.KeyValue(),
        pb.KeyValue(key=b"k"),
        pb.KeyValue(value=b"v"),
        stored(key=b"k" * 128),
        stored(create_revision=0),
        stored(mod_revision=0),
        stored(version=0),
        stored(version=16_384),
        stored(version=-1),
        stored(create_revision=200),
        stored(create_revision=1 << 35, mod_revision=1 << 35),
        stored(create_revision=-1),
    ],
)
def test_key_values_with_another_layout_are_decoded_too(kv: pb.KeyValue) -> None:
    spied = Spied()
    data = written(stored(), kv, stored())
    assert spied.read(data + PADDING) == (len(data), [plain(stored()), plain(kv), plain(stored())])
    assert spied.is_guess_that_left(1)


# Fields that follow a short key-value look like its own.
@pytest.mark.parametrize(
    "behind",
    [b"\x18\x01", b"\x20\x05", b"\x18\x01\x20\x05\x2a\x01v", b"\x10\x01\x18\x01\x20\x01\x2a\x01v", b"\x30\x07"],
)
def test_the_bytes_of_the_next_item_are_not_read_as_fields(behind: bytes) -> None:
    for fields in (
        b"",
        b"\x0a\x00",
        b"\x0a\x01k",
        b"\x0a\x01k\x10\x01",
        b"\x0a\x01k\x10\x01\x18\x01",
        b"\x0a\x01k\x10\x01\x18\x01\x20\x01",
    ):
        data = b"\x12" + bytes([len(fields)]) + fields
        assert Spied().read(data + behind + PADDING) == (len(data), [codec.decode(KeyValue, fields)])


def test_unusual_fields_are_left_to_the_general_decoder() -> None:
    first = b"\x0a\x01k\x10\x01\x18\x01\x20\x01"
    for fields in (first + b"\x0a\x01x", b"\x20\x01" + first, first + b"\xf8\x07\x05", first + b"\x2a\x01v\x2a\x01w"):
        data = b"\x12" + bytes([len(fields)]) + fields
        assert Spied().read(data + PADDING)[1] == [codec.decode(KeyValue, fields)]
    with pytest.raises(WireFormatError):
        Spied().read(b"\x12\x0b\x0a\x01k\x10\x01\x18\x01\x20\x01\x2a\x05" + PADDING)


@pytest.mark.parametrize(
    "fields",
    [
        # A modification that is shorter than the creation, and a version that comes twice: 5, 3 and then 4.
        b"\x10\x80\x80\x01" + b"\x18\x05" + b"\x20\x03" + b"\x20\x04",
        # A version of three bytes, of which the last is a value's tag, before a value whose tag would be its length.
        b"\x10\x01\x18\x01" + b"\x20\x80\x80\x2a" + b"\x2a\x29" + b"v" * 41,
    ],
    ids=["mod_revision", "version"],
)
def test_a_guess_that_fits_by_chance_is_not_taken(fields: bytes) -> None:
    data = b"\x0a\x01k" + fields
    spied = Spied()
    assert spied.read(b"\x12" + bytes([len(data)]) + data + PADDING)[1] == [codec.decode(KeyValue, data)]
    assert spied.is_guess_that_left(1)


@pytest.mark.slow
def test_a_run_stops_before_an_incomplete_key_value() -> None:
    one = written(stored(value=bytes(300)))
    for end in range(len(one), 2 * len(one)):
        data = (one * 2)[:end]
        assert Spied().read(data)[0] == len(one)
        assert Spied().read(data + PADDING, end=end)[0] == len(one)
    assert Spied().read(one[:-1]) == (0, [])
    assert Spied().read(b"\x12") == (0, [])


def test_a_run_of_a_message_that_claims_to_end_behind_the_data_is_cut_short() -> None:
    with pytest.raises(IndexError):  # one of the decoder's own failures
        Spied().read(written(stored(value=bytes(300))) * 3, end=10_000)


def test_a_run_stops_when_the_step_is_over_but_reads_at_least_one() -> None:
    one = written(stored())
    data = one * 100
    assert len(Spied().read(data, pause=0)[1]) == 1
    at, kvs = Spied().read(data, pause=10 * COST)
    assert at == len(one) * len(kvs)
    assert 5 <= len(kvs) <= 11
    large = written(stored(value=bytes(1000)))
    assert len(Spied().read(large * 10, pause=3000)[1]) == 3


def test_a_key_value_with_a_key_only_takes_nothing_from_the_one_before() -> None:
    data = written(stored()) + b"\x12\x02\x0a\x00"
    assert Spied().read(data + PADDING) == (len(data), [plain(stored()), KeyValue(b"")])


# Events.

EVENTS_TAG = 90


def spied_events() -> Spied:
    accelerator = Spied.accelerator
    general = Decoder(target_of(Event), accelerator=accelerator)
    if accelerator is None:
        return Spied(EventsReader(general, COST))
    return Spied(AcceleratedReader(general, COST, accelerator.read_events, "read_events"))


def reply_with(*events: pb.Event) -> bytes:
    return codec.encode(pb.WatchResponse(events=list(events)))


def put(kv: pb.KeyValue) -> Event:
    return Event(EventType.PUT, plain(kv))


# The sizes next to those at which the length of the event, or of the key-value in it, takes one byte more.
SIZES = [[0, 1, 300], range(90, 130), range(16_360, 16_384), [16_384, 100_000]]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("lease", [0, 1 << 62])
def test_puts_of_every_size_are_read(sizes: Sequence[int], lease: int) -> None:
    for value in sizes:
        kv = stored(value=b"v" * value, lease=lease)
        data = reply_with(pb.Event(kv=kv))
        spied = spied_events()
        assert spied.read(data * 3 + PADDING, tag=EVENTS_TAG) == (len(data) * 3, [put(kv)] * 3)
        size = len(codec.encode(kv))
        # One byte of length within, two without; or three, where the value is so large that a guess saves nothing.
        assert spied.is_guess_that_left(3 if size in {126, 127} or size > 16_380 else 0), value


def test_events_that_are_no_plain_puts_are_decoded_too() -> None:
    kv, deleted = stored(), pb.KeyValue(key=b"key", mod_revision=9)
    others = [
        pb.Event(type=pb.EventEventType.DELETE, kv=deleted),
        pb.Event(type=pb.EventEventType.DELETE, kv=deleted, prev_kv=kv),
        pb.Event(kv=kv, prev_kv=kv),
        pb.Event(kv=stored(value=bytes(500)), prev_kv=stored(value=bytes(500))),
        pb.Event(kv=stored(value=bytes(500)), prev_kv=stored(value=bytes(20))),
        pb.Event(kv=pb.KeyValue()),
        pb.Event(prev_kv=kv),
        pb.Event(),
    ]
    for other in others:
        data = reply_with(pb.Event(kv=kv), other, pb.Event(kv=kv))
        spied = spied_events()
        one = codec.decode(Event, codec.encode(other))
        assert spied.read(data + PADDING, tag=EVENTS_TAG) == (len(data), [put(kv), one, put(kv)])
        assert spied.is_guess_that_left(1)


@pytest.mark.parametrize("fields", [b"", b"\x12\x00", b"\x12\x02\x0a\x00", b"\x12\x03\x0a\x01k", b"\x08\x00"])
@pytest.mark.parametrize("behind", [b"\x0a\x01k\x10\x01\x18\x01\x20\x01", b"\x10\x01\x18\x01\x20\x01"])
def test_the_bytes_after_a_short_event_are_not_read_as_its_fields(fields: bytes, behind: bytes) -> None:
    before = reply_with(pb.Event(kv=stored()))
    data = before + bytes([EVENTS_TAG, len(fields)]) + fields
    expected = [put(stored()), codec.decode(Event, fields)]
    assert spied_events().read(data + behind + PADDING, tag=EVENTS_TAG) == (len(data), expected)


def test_an_event_that_fits_by_chance_is_not_taken() -> None:
    # So short that its length takes one byte, but the bytes behind that look like a longer one's.
    fields = b"\x20\x12\x89\x00" + b"\x0a\x01" + b"\x10\x01\x18\x01\x20\x01"
    spied = spied_events()
    with pytest.raises(WireFormatError):
        spied.read(bytes([EVENTS_TAG, len(fields)]) + fields + PADDING, tag=EVENTS_TAG)
    assert spied.is_guess_that_left(1)
    with pytest.raises(MalformedReplyError):
        codec.decode(Event, fields)


def test_a_key_value_that_ends_behind_its_event_is_refused() -> None:
    one = codec.encode(stored())
    for outer, inner in ((len(one) + 2, len(one) + 1), (len(one) + 1, len(one))):
        data = bytes([EVENTS_TAG, outer, TAG, inner]) + one
        with pytest.raises((WireFormatError, IndexError)):
            spied_events().read(data + PADDING, tag=EVENTS_TAG)


@pytest.mark.slow
def test_a_run_of_events_stops_before_an_incomplete_one() -> None:
    one = reply_with(pb.Event(kv=stored(value=bytes(300))))
    for end in range(len(one), 2 * len(one)):
        data = (one * 2)[:end]
        assert spied_events().read(data, tag=EVENTS_TAG)[0] == len(one)
        assert spied_events().read(data + PADDING, end=end, tag=EVENTS_TAG)[0] == len(one)
    assert spied_events().read(one[:-1], tag=EVENTS_TAG) == (0, [])
