"""types/fast_frozen.py: mutable twins of frozen dataclasses, and constructors that fill them."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Collection, Iterator
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from etcd_aio import Client, op
from etcd_aio.types import KeyRange, fast_init, mutable_twin


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2


@dataclass(frozen=True, slots=True)
class Bag(Collection[int]):
    items: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[int]:
        return iter(self.items)

    def __contains__(self, item: object) -> bool:
        return item in self.items


def test_a_twin_becomes_an_instance_of_the_frozen_class() -> None:
    twin = mutable_twin(Point)()
    twin.x, twin.y = 1, 2
    twin.x = 3
    twin.__class__ = Point
    became: object = twin
    assert type(became) is Point
    assert became == Point(3, 2)
    assert repr(became) == repr(Point(3, 2))
    with pytest.raises(FrozenInstanceError):
        became.x = 4  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        delattr(became, "x")
    assert not hasattr(became, "__dict__")


def test_an_instance_that_was_a_twin_is_hashed_copied_and_pickled_as_any_other() -> None:
    twin = mutable_twin(Point)()
    twin.x, twin.y = 1, 2
    twin.__class__ = Point
    became: Point = twin
    assert hash(became) == hash(Point(1, 2))
    assert copy.copy(became) == Point(1, 2)
    assert pickle.loads(pickle.dumps(became)) == Point(1, 2)
    assert dataclasses.replace(became, y=5) == Point(1, 5)


def test_a_twin_of_an_abstract_class_becomes_one_too() -> None:
    twin = mutable_twin(Bag)()
    twin.items = (1, 2)
    twin.__class__ = Bag
    assert twin == Bag((1, 2))
    assert list(twin) == [1, 2]


def test_a_twin_that_is_not_complete_can_be_shown() -> None:
    twin = mutable_twin(Point)()
    assert repr(twin) == "<Point not constructed>"
    twin.x, twin.y = 1, 2
    twin.__class__ = Point
    assert repr(twin).endswith("Point(x=1, y=2)")


def below(kind: type) -> Iterator[type]:
    each: type
    for each in type.__subclasses__(kind):
        yield each
        yield from below(each)


def test_every_twin_of_the_library_can_be_shown_at_once() -> None:
    classes = (kind for kind in below(object) if kind.__name__.startswith("Mutable"))
    twins = [kind for kind in classes if str(kind.__module__).startswith("etcd_aio")]
    assert Client is not None  # whose modules make them
    assert len(twins) >= 3
    for twin in twins:
        assert repr(twin()).endswith("not constructed>")


@fast_init
@dataclass(frozen=True, slots=True)
class Interval:
    first: int
    last: int = 9

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise ValueError("ends before it begins")


class NamedInterval(Interval):
    __slots__ = ()


def test_a_fast_constructor_makes_what_that_of_the_dataclass_makes() -> None:
    assert Interval(1) == Interval(first=1, last=9)
    assert repr(Interval(1, 2)) == "Interval(first=1, last=2)"
    assert dataclasses.replace(Interval(1), last=3) == Interval(1, 3)
    assert str(inspect.signature(Interval)) == "(first: int, last: int = 9) -> None"
    with pytest.raises(FrozenInstanceError):
        Interval(1).first = 2  # type: ignore[misc]
    with pytest.raises(ValueError, match="ends before"):
        Interval(3, 2)
    with pytest.raises(TypeError, match=r"Interval.__init__\(\) missing 1 required positional argument: 'first'"):
        Interval()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def test_a_fast_constructor_keeps_a_subclass() -> None:
    made = NamedInterval(1)
    assert type(made) is NamedInterval
    with pytest.raises(FrozenInstanceError):
        made.first = 2  # type: ignore[misc]


@pytest.mark.parametrize("made", [KeyRange, op.PutOp, op.GetOp, op.RangeOp])
def test_what_each_call_makes_has_a_fast_constructor(made: Any) -> None:
    assert "kind" in made.__init__.__code__.co_varnames
