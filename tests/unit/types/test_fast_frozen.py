"""Frozen: what is built fast is what is built slowly."""

import copy
import dataclasses
import pickle
from collections.abc import Collection, Iterator
from dataclasses import FrozenInstanceError, dataclass, field

import pytest

from etcd_aio.types import constructor, thawed


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


def test_a_twin_becomes_the_real_thing() -> None:
    twin = thawed(Point)()
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


def test_a_twin_of_an_abstract_family_does_too() -> None:
    twin = thawed(Bag)()
    twin.items = (1, 2)
    twin.__class__ = Bag
    assert twin == Bag((1, 2))
    assert list(twin) == [1, 2]


new_point = constructor(Point)
new_bag = constructor(Bag)


@pytest.mark.parametrize(
    ("fast", "slow"),
    [(new_point(1), Point(1)), (new_point(1, 3), Point(1, 3)), (new_point(y=3, x=1), Point(1, 3)), (new_bag(), Bag())],
)
def test_a_constructor_makes_what_the_class_makes(fast: object, slow: object) -> None:
    assert type(fast) is type(slow)
    assert fast == slow
    assert hash(fast) == hash(slow)
    assert repr(fast) == repr(slow)
    assert copy.copy(fast) == slow
    assert pickle.loads(pickle.dumps(fast)) == slow
    with pytest.raises(FrozenInstanceError):
        setattr(fast, next(iter(type(fast).__dataclass_fields__)), 4)  # type: ignore[attr-defined]


def test_a_constructor_takes_what_the_class_takes() -> None:
    with pytest.raises(TypeError, match="'x'"):
        new_point()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        new_point(1, 2, 3)  # type: ignore[call-arg]
    assert dataclasses.replace(new_point(1), y=5) == Point(1, 5)


@dataclass(frozen=True, slots=True)
class WithFactory:
    items: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WithChecks:
    x: int

    def __post_init__(self) -> None:
        assert self.x


@pytest.mark.parametrize("refused", [WithFactory, WithChecks])
def test_a_class_that_does_more_than_set_fields_is_refused(refused: type) -> None:
    with pytest.raises(TypeError, match="has to be built by its own constructor"):
        constructor(refused)
