"""Compiler: functions are made once, with all that they need, though they need each other."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from etcd_aio.codec import compiler
from etcd_aio.codec.compiler import Unit, function
from etcd_aio.codec.source import Source


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

    def needs(self) -> Iterator[Unit]:
        if self.other is not None:
            yield self.other


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_functions", {})


def test_units_that_need_each_other_are_linked_and_compiled_once() -> None:
    odd, even = Countdown("odd"), Countdown("even")
    odd.other, even.other = even, odd
    assert function(even)(4) == "even"
    assert function(even)(5) == "odd"
    assert function(odd)(5) == "even"
    assert (odd.compiled, even.compiled) == (1, 1)


def test_what_failed_to_compile_is_not_there_the_next_time() -> None:
    class Broken(Countdown):
        def source(self) -> Source:
            raise RecursionError

    outer = Countdown("outer", Broken("inner"))
    with pytest.raises(RecursionError):
        function(outer)
    outer.other = Countdown("inner", outer)
    assert function(outer)(1) == "inner"
