"""fast_frozen.py: mutable twins of frozen dataclasses."""

import copy
import dataclasses
import pickle
from collections.abc import Collection, Iterator
from dataclasses import FrozenInstanceError, dataclass

import pytest

from etcd_aio import Client
from etcd_aio.fast_frozen import mutable_twin


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
