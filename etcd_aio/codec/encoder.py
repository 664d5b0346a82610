"""Generates two functions for each message class that encode it.

`write_X` takes the fields as arguments, inner messages as their bytes, and trusts them. `encode_X` takes a message,
checks the type and the range of every field, and calls `write_X`.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from etcd_aio.codec.codegen import GeneratedFunction, Source, local_name
from etcd_aio.codec.fields import INTEGERS, Field, fields_of
from etcd_aio.codec.wire import MAX_DEPTH, VARINT, VARINT_BYTES
from etcd_aio.dataclass import dataclass
from etcd_aio.errors import InvalidRequestError
from etcd_aio.pb import Message

_RESERVED: Final = frozenset({"depth", "item", "message", "packed", "parts", "text", "unknown"})
_TYPES: Final = {"bytes": "bytes", "string": "str"}


@dataclass(frozen=True, slots=True)
class Writer:
    """Generates `write_X`, which encodes a message given by its fields."""

    message_class: type[Message]

    @property
    def name(self) -> str:
        return f"write_{self.message_class.__name__}"

    def source(self) -> Source:
        source = Source()
        fields = fields_of(self.message_class).values()
        arguments = ", ".join(f"{argument_name(field)}: {_annotation(field)} = {_default(field)}" for field in fields)
        with source.block(f"def {self.name}({arguments}) -> bytes:"):
            source.line("parts: list[bytes] = []")
            for field in fields:
                _write_field(source, field)
            source.line('return b"".join(parts)')
        return source

    def namespace(self) -> dict[str, object]:
        return {"VARINT_BYTES": VARINT_BYTES, "Collection": Collection}

    def callees(self) -> Iterable[GeneratedFunction]:
        return ()  # inner messages are passed as bytes


@dataclass(frozen=True, slots=True)
class Encoder:
    """Generates `encode_X`, which encodes a message."""

    message_class: type[Message]

    @property
    def name(self) -> str:
        return f"encode_{self.message_class.__name__}"

    def source(self) -> Source:
        source = Source()
        fields = fields_of(self.message_class).values()
        with source.block(f"def {self.name}(message, depth):"):
            name = self.message_class.__name__
            with source.block(f"if not isinstance(message, {name}):"):
                _reject(source, f"a message is not {name}")
            with source.block(f"if depth > {MAX_DEPTH}:"):
                _reject(source, f"{name}: messages nest more than {MAX_DEPTH} deep")
            for field in fields:
                source.line(f"{argument_name(field)} = message.{field.name}")
                _check_field(source, name, field)
            _check_oneofs(source, name, list(fields))
            source.line(f"written = {Writer(self.message_class).name}({', '.join(map(argument_name, fields))})")
            source.line("unknown = message._unknown_fields")
            source.line("return written + unknown if unknown else written")
        return source

    def namespace(self) -> dict[str, object]:
        return {"InvalidRequestError": InvalidRequestError, self.message_class.__name__: self.message_class}

    def callees(self) -> Iterator[GeneratedFunction]:
        yield Writer(self.message_class)
        for field in fields_of(self.message_class).values():
            if field.message_class is not None:
                yield Encoder(field.message_class)


def argument_name(field: Field) -> str:
    """The name of a field among the arguments of `write_X`."""
    return local_name(field.name, _RESERVED)


def _annotation(field: Field) -> str:
    contained = _TYPES.get(field.proto_type, "int" if field.is_integer else "bytes")
    if field.repeated:
        return f"Collection[{contained}]"
    return f"{contained} | None" if field.may_be_none else contained


def _default(field: Field) -> str:
    if field.repeated:
        return "()"
    if field.may_be_none:
        return "None"
    return {"bytes": 'b""', "string": '""', "bool": "False"}.get(field.proto_type, "0")


# --- from fields to bytes ---


def _write_field(source: Source, field: Field) -> None:
    line, block = source.line, source.block
    name = argument_name(field)
    tag = repr(VARINT_BYTES[field.number << 3 | (VARINT if field.allows(VARINT) and not field.repeated else 2)])
    if field.repeated and field.is_integer:
        with block(f"if {name}:"):
            line(f'packed = b"".join([VARINT_BYTES[item] for item in {name}])')
            line(f"parts += {tag}, VARINT_BYTES[len(packed)], packed")
    elif field.repeated:
        with block(f"for item in {name}:"):
            _write_contained(source, field, tag, "item")
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


def _check_field(source: Source, owner: str, field: Field) -> None:
    line, block = source.line, source.block
    name = argument_name(field)
    wrong = f"{owner}.{field.name} has the wrong type, or is out of range"
    if field.repeated:
        with block(f"if not isinstance({name}, list):"):
            _reject(source, wrong)
        if field.message_class is not None:
            line(f"{name} = [{Encoder(field.message_class).name}(item, depth + 1) for item in {name}]")
            return
        with block(f"for item in {name}:"), block(f"if {_is_invalid(field, 'item')}:"):
            _reject(source, wrong)
    elif field.message_class is not None:
        with block(f"if {name} is not None:"):
            line(f"{name} = {Encoder(field.message_class).name}({name}, depth + 1)")
    else:
        absent = f"{name} is not None and " if field.may_be_none else ""
        invalid = _is_invalid(field, name)
        with block(f"if {absent}({invalid}):" if absent else f"if {invalid}:"):
            _reject(source, wrong)


def _is_invalid(field: Field, name: str) -> str:
    if field.proto_type in _TYPES:
        return f"not isinstance({name}, {_TYPES[field.proto_type]})"
    low, high = INTEGERS[field.proto_type]
    return f"not isinstance({name}, int) or not {low} <= {name} <= {high}"


def _check_oneofs(source: Source, owner: str, fields: list[Field]) -> None:
    for oneof in sorted({field.oneof for field in fields if field.oneof}):
        names = [argument_name(field) for field in fields if field.oneof == oneof]
        with source.block(f"if ({', '.join(names)}).count(None) < {len(names) - 1}:"):
            _reject(source, f"{owner}: more than one member of {oneof} is set")


def _reject(source: Source, reason: str) -> None:
    source.line(f"raise InvalidRequestError({reason!r})")
