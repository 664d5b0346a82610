"""Source: it is indented, runs, shows its lines, and no field takes a name that means something."""

import linecache
from typing import Any

import pytest

from etcd_aio.codec.source import Source, local_name


def test_blocks_are_indented_and_it_runs() -> None:
    source = Source()
    with source.block("def double(number):"):
        with source.block("if number:"):
            source.line("return number * factor")
        source.line("return None")
    assert str(source) == ("def double(number):\n    if number:\n        return number * factor\n    return None\n")
    namespace: dict[str, Any] = {"factor": 2}
    source.compile("double", namespace)
    assert namespace["double"](21) == 42
    assert linecache.getline("<etcd_aio double>", 3) == "        return number * factor\n"


@pytest.mark.parametrize(
    ("field", "expected"), [("key", "key"), ("at", "at_"), ("type", "type_"), ("hash", "hash_"), ("class", "class_")]
)
def test_a_name_that_is_taken_gets_an_underscore(field: str, expected: str) -> None:
    assert local_name(field, frozenset({"at"})) == expected
