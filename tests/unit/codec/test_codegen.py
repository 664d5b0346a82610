"""codec/codegen.py: code generation: source text, names, and functions that call each other."""

import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from etcd_aio.codec import codegen
from etcd_aio.codec.codegen import GeneratedFunction, Source, function_of, local_name


def test_generated_source_is_indented_and_runs() -> None:
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


@dataclass
class Countdown:
    """Calls the other one with one less."""

    name: str
    other: "Countdown | None" = None
    compiled: int = 0

    def source(self) -> Source:
        self.compiled += 1
        source = Source()
        with source.block(f"def {self.name}(number):"):
            source.line(f"return {self.other.name if self.other else ''}(number - 1) if number else NAME")
        return source

    def namespace(self) -> dict[str, object]:
        return {"NAME": self.name}

    def callees(self) -> Iterator[GeneratedFunction]:
        if self.other is not None:
            yield self.other


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen, "_functions", {})


def test_functions_that_call_each_other_are_linked_and_compiled_once() -> None:
    odd, even = Countdown("odd"), Countdown("even")
    odd.other, even.other = even, odd
    assert function_of(even)(4) == "even"
    assert function_of(even)(5) == "odd"
    assert function_of(odd)(5) == "even"
    assert (odd.compiled, even.compiled) == (1, 1)


def test_a_function_that_failed_to_compile_is_not_kept() -> None:
    class Broken(Countdown):
        def source(self) -> Source:
            raise RecursionError

    outer = Countdown("outer", Broken("inner"))
    with pytest.raises(RecursionError):
        function_of(outer)
    outer.other = Countdown("inner", outer)
    assert function_of(outer)(1) == "inner"
