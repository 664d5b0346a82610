"""Generates fast readers for runs of key-values in a large range, and of events in a watch reply.

Decoding byte by byte is slow. etcd lays out key-values predictably, so these readers guess: a key of less than 128
bytes, then the revisions and the version, unpacked at once by one struct, then perhaps a value and a lease. The guess
was right if every field starts where the previous one ended, and the last one ends with the key-value. After a wrong
guess the general decoder reads that key-value again, so the guess affects only the speed.

Measured with CPython 3.11: 1 000 key-values of 256 bytes are decoded in steps in 1.9 ms instead of 3.3 ms, and 1 000
events in 2.4 ms instead of 4.1 ms.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from etcd_aio.codec.codegen import GeneratedFunction, Source
from etcd_aio.codec.wire import long_signed, read_length
from etcd_aio.dataclass import dataclass
from etcd_aio.fast_frozen import mutable_twin
from etcd_aio.types import Event, EventType, KeyValue

_LONGEST_REVISION: Final = 5  # bytes: 34 thousand million revisions
_HEAD: Final = 5  # the tag, two bytes of length, the key's tag and its length
_NUMBERS: Final = 2 * (1 + _LONGEST_REVISION) + 2 + 3  # both revisions, the version, the value's tag and its length
_REACH: Final = 160  # more than the structs look ahead from where a key-value begins: head, key, numbers


@dataclass(frozen=True, slots=True)
class KeyValuesReader:
    """Generates `read_key_values(data, at, end, pause, tag, kvs, depth)`.

    The function appends to `kvs` until the step is over, and returns the position after the last key-value: `at` itself
    if not even the first one is complete.

    Attributes:
        general: the decoder for key-values with another layout.
        cost: how many bytes of a step a key-value counts for.
    """

    general: GeneratedFunction
    cost: int

    @property
    def name(self) -> str:
        return "read_key_values"

    def namespace(self) -> dict[str, object]:
        return {
            "KeyValue": KeyValue,
            "Mutable": mutable_twin(KeyValue),
            "head_of_kv": Struct(f"{_HEAD}B").unpack_from,
            "numbers": Struct(f"{_NUMBERS}B").unpack_from,
            "long_signed": long_signed,
            "read_length": read_length,
        }

    def callees(self) -> Iterator[GeneratedFunction]:
        yield self.general

    def source(self) -> Source:
        source = Source()
        line, block = source.line, source.block
        with block(f"def {self.name}(data, at, end, pause, tag, kvs, depth):"):
            line("append = kvs.append")
            # An inner message that is malformed may claim to end behind the data.
            line(f"far = min(min(end, len(data)) - {_REACH}, pause)")
            with block(f"for _ in range((pause - at) // {self.cost} + 1):"):
                self._begin(source)
                with block("if field == 10 and size < 128:  # key"):
                    line("behind = at + 2 + size")
                    line("key = data[at + 2 : behind]")
                    line(f"{', '.join(map(_number, range(_NUMBERS)))} = numbers(data, behind)")
                    self._revisions(source)
                    self._rest(source)
                with block("if at == stop > start:"):
                    line("kv = Mutable()")
                    for name in ("key", "create_revision", "mod_revision", "version", "value", "lease"):
                        line(f"kv.{name} = {name}")
                    line("kv.__class__ = KeyValue  # frozen from here on")
                    self._take(source)
                with block("else:"):
                    line(f"append({self.general.name}(data, start, stop, depth))")
                    line("at = stop")
            line("return at")
        return source

    def _begin(self, source: Source) -> None:
        """Find start and end of the key-value. Near the end of the data, decode it without a guess."""
        line, block = source.line, source.block
        with block("if at > far:"):
            with block("if at > pause or at >= end or data[at] != tag:"):
                line("return at")
            line("stop, start = read_length(data, at + 1, end)")
            with block("if stop > end:"):
                line("return at")
            line(f"append({self.general.name}(data, start, stop, depth))")
            line("at = stop")
            line("continue")
        self._open(source)

    def _open(self, source: Source) -> None:
        """Set `start` and `stop`, and for a guess `at` to the first field, `field` and `size` to its tag and length.

        `at` advances only as far as the guess is right.
        """
        source.line("first, low, high, field, size = head_of_kv(data, at)")
        _read_bounds(source, short="size, field = field, high", long="field, size = data[start], data[start + 1]")
        source.line("at = start")

    def _take(self, source: Source) -> None:
        """Append a decoded `kv`."""
        source.line("append(kv)")

    def _revisions(self, source: Source) -> None:
        """Read both revisions and the version's first byte, for all widths; the second is never the smaller one.

        On success `at` is set behind them, and `field`, `low` and `high` are the next three bytes.
        """
        line, block = source.line, source.block
        widths = range(1, _LONGEST_REVISION + 1)
        with block("if n0 == 16:  # create_revision"):
            for first in widths:
                with block(f"{'el' if first > 1 else ''}if n{first} < 128:"):
                    mod = first + 1
                    longer = "".join(f" and n{mod + place} > 127" for place in range(1, first))
                    with block(f"if n{mod} == 24{longer}:  # mod_revision"):
                        for second in widths[first - 1 :]:
                            version = mod + second + 1
                            with (
                                block(f"{'el' if second > first else ''}if n{mod + second} < 128:"),
                                block(f"if n{version} == 32:  # version"),
                            ):
                                line(f"create_revision = {_varint(1, first)}")
                                line(f"mod_revision = {_varint(mod + 1, second)}")
                                behind = ", ".join(_number(version + place) for place in range(1, 5))
                                line(f"version, field, low, high = {behind}")
                                line(f"at = behind + {version + 2}")

    def _rest(self, source: Source) -> None:
        """Read the rest of the version, the value and the lease."""
        line, block = source.line, source.block
        with block("if at > behind:"):
            with block("if version > 127:"):
                line("version += field * 128 - 128")
                line("at = at + 1 if field < 128 else start")
                line("field, low, high = data[at], data[at + 1], data[at + 2]")
            with block("if at < stop and field == 42:  # value"):
                _read_length(source, "at", "behind")
                line("value = data[at:behind]")
                line("at = behind")
            with block("else:"):
                line('value = b""')
            with block("if at < stop and data[at] == 48:  # lease"):
                line("lease, size = long_signed(data[at + 1 : at + 11])")
                line("at += size + 1")
            with block("else:"):
                line("lease = 0")


class EventsReader(KeyValuesReader):
    """Generates `read_events(data, at, end, pause, tag, events, depth)`, which works like `read_key_values`.

    The guess is a put without a previous key-value: the event contains nothing but its key-value.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        return "read_events"

    def namespace(self) -> dict[str, object]:
        names = {"Event": Event, "MutableEvent": mutable_twin(Event), "PUT": EventType.PUT}
        return super().namespace() | names | {"head_of_event": Struct("8B").unpack_from}

    def _open(self, source: Source) -> None:
        line, block = source.line, source.block
        line("first, low, high, within, inner, outer, field, size = head_of_event(data, at)")
        _read_bounds(source)
        with block("if high == 18 and 0 < within == low - 2 < 126:  # kv"):
            line("at = start + 2")
            line("field, size = inner, outer")
        fits = "start + inner + outer * 128 == stop + 125"  # each of the two lengths takes two bytes
        with block(f"elif within == 18 and outer < 128 <= inner and high < 128 <= low and {fits}:  # kv"):
            line("at = start + 3")
        with block("else:"):
            line("field = 0  # no guess")

    def _take(self, source: Source) -> None:
        for text in (
            "event = MutableEvent()",
            "event.type = PUT",
            "event.kv = kv",
            "event.prev_kv = None",
            "event.__class__ = Event",
            "append(event)",
        ):
            source.line(text)


def _read_bounds(source: Source, *, short: str = "", long: str = "") -> None:
    """Set `start` and `stop` of the item at `at`; return if there is none, or it is not complete."""
    with source.block("if first != tag:"):
        source.line("return at")
    _read_length(source, "start", "stop", short, long)
    with source.block("if stop > end:"):
        source.line("return at")


def _read_length(source: Source, start: str, stop: str, short: str = "", long: str = "") -> None:
    """Set `start` and `stop` of the content at the tag `at`, whose length begins with the bytes `low` and `high`.

    `short` and `long` are lines to add where the length has one byte, and more than two.
    """
    line, block = source.line, source.block
    with block("if low < 128:"):
        line(f"{start} = at + 2")
        line(f"{stop} = {start} + low")
        if short:
            line(short)
    with block("elif high < 128:"):
        line(f"{start} = at + 3")
        line(f"{stop} = {start} + low + high * 128 - 128")
    with block("else:"):
        line(f"{stop}, {start} = read_length(data, at + 1, end)")
        if long:
            line(long)


def _number(place: int) -> str:
    return f"n{place}"


def _varint(place: int, width: int) -> str:
    """The expression for a varint of `width` bytes; each byte but the last is 128 too large."""
    terms = [f"n{place + index} * {1 << 7 * index}" if index else f"n{place}" for index in range(width)]
    excess = sum(128 << 7 * index for index in range(width - 1))
    return " + ".join(terms) + (f" - {excess}" if excess else "")
