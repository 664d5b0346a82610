"""Fields: what protobuf says about the fields of a message class.

Knows: betterproto2's description of a message class, and protobuf's wire types. Never knows: any bytes.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import betterproto2 as bp

from etcd_aio.pb import Message

MAX_DEPTH: Final = 100
"""How deep messages may nest, the outermost being 1: protobuf's own default in C++, Java and Python."""

MAX_FIELD_NUMBER: Final = (1 << 29) - 1

VARINT: Final = 0
FIXED_64: Final = 1
LENGTH: Final = 2
FIXED_32: Final = 5

# What an integer field can carry. An enum is an int32, but betterproto2 reads and writes all 64 bits of an unknown one.
INTEGERS: Final[Mapping[str, tuple[int, int]]] = {
    bp.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    bp.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    bp.TYPE_UINT32: (0, (1 << 32) - 1),
    bp.TYPE_UINT64: (0, (1 << 64) - 1),
    bp.TYPE_ENUM: (-(1 << 63), (1 << 63) - 1),
    bp.TYPE_BOOL: (0, 1),
}
_OTHERS: Final = frozenset({bp.TYPE_BYTES, bp.TYPE_STRING, bp.TYPE_MESSAGE})

FieldNumber: TypeAlias = int


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message class.

    Attributes:
        name: its name, which is also the attribute's.
        number: its number.
        proto_type: protobuf's word for its type, such as "int64".
        repeated: whether it holds a list.
        oneof: the oneof it belongs to, if any.
        message_class: what it holds, if that is a message.
        enum_class: what it holds, if that is an enum.
    """

    name: str
    number: FieldNumber
    proto_type: str
    repeated: bool
    oneof: str | None
    message_class: type[Message] | None
    enum_class: type[bp.Enum] | None

    @property
    def may_be_none(self) -> bool:
        """Whether None stands for "not set"; the other fields are always there."""
        return self.oneof is not None or self.message_class is not None

    @property
    def is_integer(self) -> bool:
        """Whether it holds numbers, enums and truth values being such."""
        return self.proto_type in INTEGERS

    @property
    def enum_variable(self) -> str:
        """By what name compiled functions know its enum."""
        return f"enum_{self.name}"

    def allows(self, wire_type: int) -> bool:
        """Whether this field's content may come in that wire type."""
        if self.is_integer:
            # Repeated numbers come packed or one by one, and a reader takes both.
            return wire_type == VARINT or (wire_type == LENGTH and self.repeated)
        return wire_type == LENGTH


@functools.cache
def fields_of(message_class: type[Message]) -> Mapping[FieldNumber, Field]:
    """The fields of `message_class` by number, in the order of the .proto file.

    Raises:
        NotImplementedError: it has a field of a kind that etcd has never used: float, fixed width, zigzag or map.
    """
    meta = message_class._betterproto  # type: ignore[arg-type] # how betterproto2 types its own class property
    fields: dict[FieldNumber, Field] = {}
    for name, field in meta.meta_by_field_name.items():
        if field.proto_type not in INTEGERS and field.proto_type not in _OTHERS:
            raise NotImplementedError(f"{message_class.__name__}.{name} is of type {field.proto_type}")
        held = meta.cls_by_field[name]
        fields[field.number] = Field(
            name,
            field.number,
            field.proto_type,
            bool(field.repeated),
            field.group,
            held if field.proto_type == bp.TYPE_MESSAGE else None,
            held if field.proto_type == bp.TYPE_ENUM else None,
        )
    return fields
