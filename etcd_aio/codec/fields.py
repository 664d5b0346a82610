"""The fields of a message class, as betterproto2 describes them."""

import functools
from collections.abc import Mapping
from typing import Final, TypeAlias

import betterproto2 as bp

from etcd_aio.codec.wire import LENGTH, VARINT
from etcd_aio.dataclass import dataclass
from etcd_aio.pb import Message

# The range of each integer type. An enum is an int32, but betterproto2 reads and writes all 64 bits of unknown values.
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
        name: its name, and the name of the attribute.
        number: its number.
        proto_type: protobuf's name of its type, such as "int64".
        repeated: whether it is a list.
        oneof: the oneof it belongs to, if any.
        message_class: the class of its messages, if it contains messages.
        enum_class: the class of its enum, if it is one.
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
        """Whether None means "not set"; other fields always have a value."""
        return self.oneof is not None or self.message_class is not None

    @property
    def is_integer(self) -> bool:
        """Whether the field is a number, an enum or a bool."""
        return self.proto_type in INTEGERS

    @property
    def enum_variable(self) -> str:
        """The name of its enum class in generated functions."""
        return f"enum_{self.name}"

    def allows(self, wire_type: int) -> bool:
        """Whether the field may have this wire type."""
        if self.is_integer:
            # Repeated numbers are packed or not; decoders must accept both.
            return wire_type == VARINT or (wire_type == LENGTH and self.repeated)
        return wire_type == LENGTH


@functools.cache
def fields_of(message_class: type[Message]) -> Mapping[FieldNumber, Field]:
    """The fields of `message_class` by number, in the order of the .proto file.

    Raises:
        NotImplementedError: a field has a type that etcd does not use: float, fixed width, zigzag or map.
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
