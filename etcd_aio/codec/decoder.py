"""Generates the functions that decode messages.

A function decodes `data` from `at` to `end`, for instance (shortened)

    def decode_KeyValue_result(data, at, end, depth):
        key = value = b""
        ...
        while at < end:
            tag = data[at]
            if tag == 10:  # key
                stop = data[at + 1]
                ...
                key = data[at:stop]
                at = stop
                if at >= end:
                    break
                tag = data[at]
            if tag == 16:  # create_revision
                ...
            if tag in {10, 16, 24, 32, 42, 48}:
                continue
            at = skip_unknown(data, at, end, (1, 2, 3, 4, 5, 6))
        if at > end:
            raise WireFormatError("a field is cut short")
        ...

The fields are tested in the order of their numbers. etcd writes them in this order, so one pass through the loop reads
the whole message; any other order takes more passes. Fields are not checked against `end` one by one: a slice cannot
reach behind the data, an index that does raises IndexError, and `at > end` after the loop shows a field that is too
long.

A stepwise decoder is a generator, for messages that may be large. Its input may end anywhere; it decodes the fields
that are complete. It yields None at the end of a step. When it has read its input, it yields its position and the
number of missing bytes, and is then sent more as `data, at, end, is_whole`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from etcd_aio import pb
from etcd_aio.codec.accelerated_runs import AcceleratedReader
from etcd_aio.codec.codegen import GeneratedFunction, Source, local_name
from etcd_aio.codec.fields import Field
from etcd_aio.codec.kv_runs import EventsReader, KeyValuesReader
from etcd_aio.codec.speedups import ACCELERATOR, Accelerator, ReadReply, ReadRun
from etcd_aio.codec.targets import RESULT_ENUMS, SIZE, DecodeTarget, Unwrapped
from etcd_aio.codec.wire import (
    CUT_SHORT,
    LENGTH,
    LONGEST,
    MAX_DEPTH,
    VARINT,
    WireFormatError,
    behind_field,
    enum_reader,
    long_signed,
    long_unsigned,
    read_packed,
    read_tag,
    read_varint,
    skip_unknown,
)
from etcd_aio.dataclass import dataclass
from etcd_aio.fast_frozen import mutable_twin
from etcd_aio.types import Header, KeyValue, Member, PutResult

STEP: Final = 1 << 19
"""Bytes that one step decodes. Each field counts for `ITEM` more, and a message that is decoded in steps itself for
`_WITHIN` times its size, so that a step has about 2 000 of the shortest key-values: 2 ms. The accelerator reads 10 000
in that time."""
ITEM: Final = 1 << 8
ACCELERATED_ITEM: Final = 1 << 5
_WITHIN: Final = 16
FREED: Final = 1 << 15
"""Items of a list that are freed, or moved into a tuple, in one step, which takes 0.3 ms and more."""

_LENGTH_BYTES: Final = 3  # read inline: up to 2 MiB, etcd's limit for a message
_NUMBER_BYTES: Final = 5  # read inline: up to 34 thousand million revisions
_RESERVED: Final = frozenset(
    {
        *("data", "at", "end", "depth", "tag", "stop", "b", "c", "d", "e"),
        *("number", "start", "unknown", "pause", "is_whole", "before", "message", "result", "new", "read", "made"),
    }
)
_INLINE: Final = "bcde"
_ABSENT: Final = {
    "header": ("NO_HEADER", Header()),
    "kv": ("NO_KV", KeyValue(b"")),
    "member": ("NO_MEMBER", Member()),
}  # values of a result for absent messages
_RUNS: Final[Mapping[object, type[KeyValuesReader]]] = {pb.KeyValue: KeyValuesReader, pb.Event: EventsReader}
_SHARED: Final = (
    WireFormatError,
    behind_field,
    long_signed,
    long_unsigned,
    read_packed,
    read_tag,
    read_varint,
    skip_unknown,
)


@dataclass(frozen=True, slots=True)
class Decoder:
    """Generates the function that decodes one target.

    Attributes:
        target: the message, and the class to decode it into.
        in_steps: generate a stepwise decoder.
        accelerator: reads runs of key-values and events; None is generated Python.
    """

    target: DecodeTarget
    in_steps: bool = False
    accelerator: Accelerator | None = ACCELERATOR

    @property
    def name(self) -> str:
        is_accelerated = self.accelerator is not None and self.target.result_class is not None
        return (
            f"decode_{self.target.name}{'_in_steps' if self.in_steps else ''}{'_accelerated' if is_accelerated else ''}"
        )

    def source(self) -> Source:
        return _Writing(self).done()

    def namespace(self) -> dict[str, object]:
        names: dict[str, object] = {function.__name__: function for function in _SHARED}
        result_class = self.target.result_class
        for field in self.target.fields.values():
            if field.enum_class is not None:
                convert: Callable[[int], object] = field.enum_class
                if result_class is not None:
                    convert = enum_reader(field.number, RESULT_ENUMS[field.enum_class])
                names |= {field.enum_variable: convert, f"{field.enum_variable}_0": convert(0)}
        if result_class is None:
            names |= {"new": object.__new__, self.target.message_class.__name__: self.target.message_class}
        elif result_class is not Unwrapped:
            names |= {result_class.__name__: result_class, **dict(_ABSENT.values())}
            names[f"Mutable{result_class.__name__}"] = mutable_twin(result_class)
            if self.native_reply is not None:
                names[_reply_name(result_class)] = self.native_reply
            for field in self.target.fields.values():
                read = self.native_run(field)
                if read is not None and self.accelerator is not None:
                    names[_native_name(field)] = read
                    names["move_items"] = self.accelerator.move_items
        return names

    def callees(self) -> Iterator[GeneratedFunction]:
        for field in self.target.fields.values():
            if field.message_class is not None:
                yield self.run_of(field) or self.inner(field)

    def inner(self, field: Field) -> "Decoder":
        """The decoder of a field that contains a message."""
        target = self.target.inner(field)
        return Decoder(target, self.in_steps and target.is_endless, self.accelerator)

    def run_of(self, field: Field) -> KeyValuesReader | AcceleratedReader | None:
        """The fast reader for the items of a repeated field, if there is one: for stepwise decoders."""
        if not self.in_steps or not self._is_run(field):
            return None
        general, native = self.inner(field), self.native_run(field)
        if native is None:
            return _RUNS[field.message_class](general, ITEM)
        return AcceleratedReader(general, ACCELERATED_ITEM, native, _native_name(field))

    def native_run(self, field: Field) -> ReadRun | None:
        """The accelerator's function for the items of a repeated field, if there is one."""
        if self.accelerator is None or not self._is_run(field):
            return None
        return self.accelerator.read_events if field.message_class is pb.Event else self.accelerator.read_key_values

    @property
    def native_reply(self) -> ReadReply | None:
        """The accelerator's function for whole replies of this kind, if there is one."""
        if self.accelerator is None or self.in_steps:
            return None
        return self.accelerator.reply_reader(self.target.result_class)

    def _is_run(self, field: Field) -> bool:
        return self.target.result_class is not None and field.repeated and field.message_class in _RUNS


_Fields: TypeAlias = list[tuple[Field, list[int]]]
"""Fields with their possible tags."""


class _Writing:
    """Writes the source of a decoder."""

    def __init__(self, decoder: Decoder) -> None:
        self._source = Source()
        self._decoder = decoder
        self._target = target = decoder.target
        self._fields = [target.fields[number] for number in sorted(target.fields)]
        self._oneofs = sorted({field.oneof for field in self._fields if field.oneof})
        self._keeps_unknown = target.result_class is None

    def done(self) -> Source:
        """The complete source."""
        line, block = self._source.line, self._source.block
        with block(f"def {self._decoder.name}(data, at, end, depth{', is_whole' if self._decoder.in_steps else ''}):"):
            if self._decoder.native_reply is not None:
                self._reply()
            self._begin()
            tags_of = [(field, self._tags(field)) for field in self._fields]
            short = [(field, tags) for field, tags in tags_of if tags[0] < 0x80]
            long = [(field, tags) for field, tags in tags_of if tags[0] > 0x7F]
            if self._decoder.in_steps:
                self._loop_in_steps(short, long)
            else:
                self._loop(short, long)
            with block("if at > end:"):
                line(f"raise WireFormatError({CUT_SHORT!r})")
            self._finish()
        return self._source

    def _loop(self, short: _Fields, long: _Fields) -> None:
        line, block = self._source.line, self._source.block
        with block("while at < end:"):
            line("tag = data[at]")
            for field, tags in short:
                self._field(field, tags)
            if short:
                with block(f"if tag in {{{', '.join(str(tag) for _, tags in short for tag in tags)}}}:"):
                    line("continue  # out of order")
            self._rest(long)

    def _loop_in_steps(self, short: _Fields, long: _Fields) -> None:
        line, block = self._source.line, self._source.block
        line(f"pause = at + {STEP}")
        with block("while True:"):
            with block("while at < end:"):
                line(f"pause -= {ITEM}")
                with block("if at > pause:"):
                    line("yield")
                    line(f"pause = at + {STEP}")
                with block("if not is_whole and behind_field(data, at, end) > end:"):
                    line("break")
                line("tag = data[at]")
                for field, tags in short:
                    with block(f"if tag {_is_one_of(tags)}:  # {field.name}"):
                        self._content_in_steps(field, tags)
                        line("continue")
                self._rest(long)
            with block("if is_whole:"):
                line("break")
            if self._target.has_size:
                line("read += at")
            line("data, at, end, is_whole = yield at, behind_field(data, at, end) - end")
            if self._target.has_size:
                line("read -= at")
            line(f"pause = at + {STEP}")

    def _reply(self) -> None:
        """Have the accelerator read the whole reply. One with another layout is read as if there were none."""
        line, block = self._source.line, self._source.block
        with block(f"if depth < {MAX_DEPTH}:"):
            line(f"made = {_reply_name(self._target.result_class)}(data, at, end)")
            with block("if made is not None:"):
                line("return made")

    # The variables.

    def _begin(self) -> None:
        line = self._source.line
        for field in self._fields:
            line(f"{self._name(field)} = {self._default(field)}")
        for oneof in self._oneofs:
            line(f"which_{oneof} = 0")
        if self._keeps_unknown:
            line("unknown = []")
        if self._target.has_size:
            line("read = -at")

    def _name(self, field: Field) -> str:
        return local_name(field.name, _RESERVED)

    def _default(self, field: Field) -> str:
        if field.repeated:
            return "[]"
        if field.name in _ABSENT and self._target.result_class is not None:
            return _ABSENT[field.name][0]
        if field.may_be_none:
            return "None"
        if field.enum_class is not None:
            return f"{field.enum_variable}_0"
        return {"bytes": 'b""', "string": '""', "bool": "False"}.get(field.proto_type, "0")

    # The loop.

    def _tags(self, field: Field) -> list[int]:
        return [field.number << 3 | wire_type for wire_type in (VARINT, LENGTH) if field.allows(wire_type)]

    def _field(self, field: Field, tags: list[int]) -> None:
        line, block = self._source.line, self._source.block
        with block(f"{'while' if field.repeated else 'if'} tag {_is_one_of(tags)}:  # {field.name}"):
            if self._decoder.native_run(field) is not None:
                self._run(field, tags[0])
            self._content(field, tags)
            with block("if at >= end:"):
                line("break")
            line("tag = data[at]")
        if field.repeated:
            with block("if at >= end:"):
                line("break  # the loop over all fields")

    def _run(self, field: Field, tag: int) -> None:
        """Have the accelerator read items. `at` is then at the tag of an item that it left, or behind the run."""
        line, block = self._source.line, self._source.block
        with block(f"if depth < {MAX_DEPTH}:"):
            line(f"at = {_native_name(field)}(data, at, end, end, 0, tag, {self._name(field)})")
            with block("if at >= end:"):
                line("break")
            line("tag = data[at]")
            with block(f"if tag != {tag}:"):
                line("break")

    def _rest(self, long: _Fields) -> None:
        """Read fields with tags of two bytes, and unknown fields."""
        line, block = self._source.line, self._source.block
        line("start = at")
        if long:
            with block("if tag > 127:"):
                line("tag, at = read_tag(data, at)")
                for field, tags in long:
                    with block(f"if tag {_is_one_of(tags)}:  # {field.name}"):
                        self._content(field, tags)
                        line("continue")
        known = tuple(field.number for field in self._fields)
        line(f"at = skip_unknown(data, start, end, {known})")
        if self._keeps_unknown:
            line("unknown.append(data[start:at])")

    # One field; `at` is the last byte of its tag.

    def _content(self, field: Field, tags: list[int]) -> None:
        line, block = self._source.line, self._source.block
        if field.oneof is not None:
            # With protobuf the last one counts; no server sends that, and a message would keep both.
            with block(f"if which_{field.oneof} not in (0, {field.number}):"):
                line(f'raise WireFormatError("oneof {field.oneof} has two members")')
            line(f"which_{field.oneof} = {field.number}")
        if not field.is_integer:
            self._length()
            self._assign(field, self._contained(field))
            line("at = stop")
        elif not field.repeated:
            self._integer(field, self._name(field))
        else:
            with block(f"if tag == {tags[0]}:"):
                self._integer(field, "number")
                line(f"{self._name(field)}.append(number)")
            with block("else:"):
                self._length()
                packed = f"read_packed(data, at, stop, signed={_is_signed(field)})"
                line(f"{self._name(field)} += [{_converted(field, 'number')} for number in {packed}]")
                line("at = stop")

    def _content_in_steps(self, field: Field, tags: list[int]) -> None:
        line, block = self._source.line, self._source.block
        run = self._decoder.run_of(field)
        if run is None:
            self._content(field, tags)
            return
        name = self._name(field)
        self._check_depth()
        line(f"start, before = at, len({name})")
        line(f"at = {run.name}(data, at, end, pause, tag, {name}, depth + 1)")
        with block("if at == start:"):
            line(f"raise WireFormatError({CUT_SHORT!r})")
        line(f"pause -= (len({name}) - before) * {run.cost}")

    def _check_depth(self) -> None:
        with self._source.block(f"if depth >= {MAX_DEPTH}:"):
            self._source.line(f'raise WireFormatError("messages nest more than {MAX_DEPTH} deep")')

    def _assign(self, field: Field, expression: str) -> None:
        name = self._name(field)
        self._source.line(f"{name}.append({expression})" if field.repeated else f"{name} = {expression}")

    def _contained(self, field: Field) -> str:
        if field.message_class is None:
            return "data[at:stop]" if field.proto_type == "bytes" else 'data[at:stop].decode("utf-8")'
        self._check_depth()
        inner = self._decoder.inner(field)
        if not inner.in_steps:
            return f"{inner.name}(data, at, stop, depth + 1)"
        self._source.line(f"pause -= (stop - at) * {_WITHIN}")
        return f"(yield from {inner.name}(data, at, stop, depth + 1, True))"

    def _length(self) -> None:
        self._number("stop", _LENGTH_BYTES, None)
        self._source.line("stop += at")

    def _integer(self, field: Field, name: str) -> None:
        in_line = _NUMBER_BYTES if field.proto_type in {"int64", "uint64"} else 1
        self._number(name, in_line, "long_signed" if _is_signed(field) else "long_unsigned")
        converted = _converted(field, name)
        if converted != name:
            self._source.line(f"{name} = {converted}")

    def _number(self, name: str, in_line: int, cached: str | None) -> None:
        """Read a varint into a variable, and set `at` behind it. Up to `in_line` bytes are read inline.

        Longer ones are read by the function `cached`, or by `read_varint`.
        """
        line, block = self._source.line, self._source.block
        line(f"{name} = data[at + 1]")
        with block(f"if {name} < 128:"):
            line("at += 2")
        terms, excess = "", 0
        for place in range(1, in_line):
            # Each byte but the last is 128 too large: the flag that another byte follows.
            excess += 128 << 7 * (place - 1)
            terms += f"{' + ' if terms else ''}({_INLINE[place - 1]} << {7 * place})"
            with block(f"elif ({_INLINE[place - 1]} := data[at + {place + 1}]) < 128:"):
                line(f"{name} += {terms} - {excess}")
                line(f"at += {place + 2}")
        with block("else:"):
            if cached:
                line(f"{name}, stop = {cached}(data[at + 1 : at + {LONGEST + 1}])")
                line("at += stop + 1")
            else:
                line(f"{name}, at = read_varint(data, at + 1)")

    # The end.

    def _finish(self) -> None:
        target = self._target
        line, block = self._source.line, self._source.block
        if target.result_class is Unwrapped:
            for field in self._fields:
                with block(f"if {self._name(field)} is not None:"):
                    line(f"return {self._name(field)}")
            line("return None")
            return
        if target.result_class is None:
            line(f"message = new({target.message_class.__name__})")
            line('message._unknown_fields = b"".join(unknown)')
            for field in self._fields:
                line(f"message.{field.name} = {self._name(field)}")
            line("return message")
            return
        name = target.result_class.__name__
        runs = [field for field in self._fields if self._decoder.in_steps and self._decoder.run_of(field) is not None]
        for field in runs:
            with block(f"if len({self._name(field)}) > {FREED}:"):
                line("yield")
        line(f"result = Mutable{name}()")
        moved = [field for field in runs if self._decoder.native_run(field) is not None]
        for field in moved:
            line("made = []")
            with block(f"while {self._name(field)} and move_items({self._name(field)}, made, {FREED}):"):
                line("yield")
            line(f"result.{field.name} = made[0] if made else ()")
        for field in self._fields:
            if field not in moved:
                value = self._name(field)
                line(f"result.{field.name} = {f'tuple({value})' if field.repeated else value}")
        if target.has_size:
            line(f"result.{SIZE} = read + end")
        line(f"result.__class__ = {name}  # frozen from here on")
        for field in runs:
            # To free the list, every item is written to once more; so was it to make the tuple. What was moved is gone.
            with block(f"while len({self._name(field)}) > {FREED}:"):
                line("yield")
                line(f"del {self._name(field)}[-{FREED}:]")
        line("return result")


def _native_name(field: Field) -> str:
    """The variable for the accelerator's function that reads a run."""
    return "read_events" if field.message_class is pb.Event else "read_key_values"


def _reply_name(result_class: object) -> str:
    """The variable for the accelerator's function that reads a whole reply."""
    return "read_put" if result_class is PutResult else "read_range"


def _is_one_of(tags: list[int]) -> str:
    return f"== {tags[0]}" if len(tags) == 1 else f"in ({', '.join(map(str, tags))})"


def _is_signed(field: Field) -> bool:
    return field.proto_type in {"int32", "int64", "enum"}


def _converted(field: Field, name: str) -> str:
    """The expression for the value of a number that was read as 64 bits."""
    match field.proto_type:
        case "enum":
            return f"{field.enum_variable}({name})"
        case "bool":
            return f"{name} > 0"
        case "uint32":
            return f"{name} & 0xFFFFFFFF"
        case "int32":
            return f"({name} + 0x80000000 & 0xFFFFFFFF) - 0x80000000"
        case _:
            return name
