"""codec/fields.py: they match what the generated classes declare."""

import dataclasses

import pytest

from etcd_aio import pb
from etcd_aio.codec.fields import Field, fields_of
from etcd_aio.codec.wire import FIXED_64, LENGTH, VARINT

MESSAGE_CLASSES = [
    found
    for found in (*vars(pb).values(), *vars(pb.health).values())
    if isinstance(found, type) and issubclass(found, pb.Message) and found is not pb.Message
]


@pytest.mark.parametrize("message_class", MESSAGE_CLASSES, ids=lambda found: found.__name__)
def test_every_field_of_every_message_class_is_listed_by_number(message_class: type[pb.Message]) -> None:
    fields = fields_of(message_class)
    names = [field.name for field in fields.values()]
    assert names == [field.name for field in dataclasses.fields(message_class)]  # type: ignore[arg-type]
    assert all(number == field.number for number, field in fields.items())


def test_a_field_has_the_type_that_its_class_declares() -> None:
    assert fields_of(pb.TxnResponse) == {
        1: Field("header", 1, "message", False, None, pb.ResponseHeader, None),
        2: Field("succeeded", 2, "bool", False, None, None, None),
        3: Field("responses", 3, "message", True, None, pb.ResponseOp, None),
    }
    assert fields_of(pb.Compare)[5] == Field("create_revision", 5, "int64", False, "target_union", None, None)
    assert fields_of(pb.Event)[1].enum_class is pb.EventEventType


@pytest.mark.parametrize(
    ("field", "wire_types", "may_be_none"),
    [
        (fields_of(pb.PutRequest)[1], {LENGTH}, False),
        (fields_of(pb.PutRequest)[3], {VARINT}, False),
        (fields_of(pb.WatchCreateRequest)[5], {VARINT, LENGTH}, False),
        (fields_of(pb.Compare)[4], {VARINT}, True),
        (fields_of(pb.PutResponse)[1], {LENGTH}, True),
    ],
    ids=lambda one: one.name if isinstance(one, Field) else None,
)
def test_a_field_allows_its_wire_types_and_may_be_absent(field: Field, wire_types: set[int], may_be_none: bool) -> None:
    assert {one for one in (VARINT, FIXED_64, LENGTH) if field.allows(one)} == wire_types
    assert field.may_be_none is may_be_none
