"""Encoding: writes the Python functions that write one kind of message.

Knows: protobuf's encoding, and how to say it in Python that runs fast. Never knows: what a message is for.

There are two for each message class. `write_X` takes the fields as arguments, inner messages as their bytes, and trusts
them. `encode_X` takes a message, makes sure that each field holds exactly what it should, and hands the fields to
`write_X`; anything else, be it right or wrong, is `Unusual`, and for slower code to judge.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from etcd_aio.codec.compiler import Unit
from etcd_aio.codec.fields import INTEGERS, MAX_DEPTH, VARINT, Field, fields_of
from etcd_aio.codec.source import Source, local_name
from etcd_aio.codec.wire import VARINT_BYTES
from etcd_aio.pb import Message

_RESERVED: Final = frozenset({"depth", "message", "one", "packed", "parts", "text", "unknown"})
_TYPES: Final = {"bytes": "bytes", "string": "str", "bool": "bool"}


class Unusual(Exception):  # noqa: N818 - never leaves the codec
    """A message that is not what the fast way expects."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The unit of a function that writes a message from its fields."""

    message_class: type[Message]

    @property
    def name(self) -> str:
        """What the function is called."""
        return f"write_{self.message_class.__name__}"

    def source(self) -> Source:
        """The function, written down."""
        source = Source()
        fields = fields_of(self.message_class).values()
        arguments = ", ".join(f"{_name(field)}={_default(field)}" for field in fields)
        with source.block(f"def {self.name}({arguments}):"):
            source.line("parts = []")
            for field in fields:
                _write_field(source, field)
            source.line('return b"".join(parts)')
        return source

    def namespace(self) -> dict[str, object]:
        """The bytes of numbers."""
        return {"VARINT_BYTES": VARINT_BYTES}

    def needs(self) -> Iterable[Unit]:
        """Nothing: messages within are bytes."""
        return ()


@dataclass(frozen=True, slots=True)
class Encoder:
    """The unit of a function that encodes a message."""

    message_class: type[Message]

    @property
    def name(self) -> str:
        """What the function is called."""
        return f"encode_{self.message_class.__name__}"

    def source(self) -> Source:
        """The function, written down."""
        source = Source()
        fields = fields_of(self.message_class).values()
        with source.block(f"def {self.name}(message, depth):"):
            with source.block(f"if type(message) is not {self.message_class.__name__} or depth > {MAX_DEPTH}:"):
                source.line("raise Unusual")
            for field in fields:
                source.line(f"{_name(field)} = message.{field.name}")
                _check_field(source, field)
            _check_oneofs(source, list(fields))
            source.line(f"written = {Writer(self.message_class).name}({', '.join(map(_name, fields))})")
            source.line("unknown = message._unknown_fields")
            source.line("return written + unknown if unknown else written")
        return source

    def namespace(self) -> dict[str, object]:
        """The class, the enums of its fields, and how to give up."""
        fields = fields_of(self.message_class).values()
        enums = {field.enum_variable: field.enum_class for field in fields if field.enum_class}
        return {"Unusual": Unusual, self.message_class.__name__: self.message_class, **enums}

    def needs(self) -> Iterator[Unit]:
        """The writer, and the encoders of what is within."""
        yield Writer(self.message_class)
        for field in fields_of(self.message_class).values():
            if field.message_class is not None:
                yield Encoder(field.message_class)


def _name(field: Field) -> str:
    return local_name(field.name, _RESERVED)


def _default(field: Field) -> str:
    if field.repeated:
        return "()"
    if field.may_be_none:
        return "None"
    return {"bytes": 'b""', "string": '""', "bool": "False"}.get(field.proto_type, "0")


# --- from fields to bytes ---


def _write_field(source: Source, field: Field) -> None:
    line, block = source.line, source.block
    name = _name(field)
    tag = repr(VARINT_BYTES[field.number << 3 | (VARINT if field.allows(VARINT) and not field.repeated else 2)])
    if field.repeated and field.is_integer:
        with block(f"if {name}:"):
            line(f'packed = b"".join([VARINT_BYTES[one] for one in {name}])')
            line(f"parts += {tag}, VARINT_BYTES[len(packed)], packed")
    elif field.repeated:
        with block(f"for one in {name}:"):
            _write_contained(source, field, tag, "one")
    else:
        # Protobuf leaves out what is 0 or empty, unless it can also be absent.
        with block(f"if {name} is not None:" if field.may_be_none else f"if {name}:"):
            if field.proto_type == "bool" and not field.may_be_none:
                line(f"parts.append({VARINT_BYTES[field.number << 3] + VARINT_BYTES[1]!r})")
            elif field.is_integer:
                line(f"parts += {tag}, VARINT_BYTES[{name}]")
            else:
                _write_contained(source, field, tag, name)


def _write_contained(source: Source, field: Field, tag: str, name: str) -> None:
    if field.proto_type == "string":
        source.line(f"text = {name}.encode()")
        name = "text"
    source.line(f"parts += {tag}, VARINT_BYTES[len({name})], {name}")


# --- from a message to fields ---


def _check_field(source: Source, field: Field) -> None:
    line, block = source.line, source.block
    name = _name(field)
    if field.repeated:
        with block(f"if type({name}) is not list:"):
            line("raise Unusual")
        if field.message_class is not None:
            line(f"{name} = [{Encoder(field.message_class).name}(one, depth + 1) for one in {name}]")
            return
        with block(f"for one in {name}:"), block(f"if {_is_unusual(field, 'one')}:"):
            line("raise Unusual")
    elif field.message_class is not None:
        with block(f"if {name} is not None:"):
            line(f"{name} = {Encoder(field.message_class).name}({name}, depth + 1)")
    else:
        absent = f"{name} is not None and " if field.may_be_none else ""
        unusual = _is_unusual(field, name)
        with block(f"if {absent}({unusual}):" if absent else f"if {unusual}:"):
            line("raise Unusual")


def _is_unusual(field: Field, name: str) -> str:
    if field.proto_type in _TYPES:
        return f"type({name}) is not {_TYPES[field.proto_type]}"
    low, high = INTEGERS[field.proto_type]
    expected = "int" if field.enum_class is None else field.enum_variable
    return f"type({name}) is not {expected} or not {low} <= {name} <= {high}"


def _check_oneofs(source: Source, fields: list[Field]) -> None:
    for oneof in sorted({field.oneof for field in fields if field.oneof}):
        names = [_name(field) for field in fields if field.oneof == oneof]
        with source.block(f"if ({', '.join(names)}).count(None) < {len(names) - 1}:"):
            source.line("raise Unusual")
