"""exports.py: the names of values are public, and those of modules are not."""

from etcd_aio import errors, exports, types
from etcd_aio.exports import public_names


def test_the_names_of_values_are_public_and_those_of_modules_are_not() -> None:
    assert public_names({"b": 1, "A": int, "errors": errors, "_private": 2}) == ["A", "b"]


def test_what_computes_the_names_is_not_public() -> None:
    assert public_names(vars(exports) | {"TYPE_CHECKING": False}) == ["Final", "Mapping", "ModuleType"]
    assert "KeyValue" in public_names(vars(types))
