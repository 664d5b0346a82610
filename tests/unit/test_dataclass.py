"""dataclass.py: a class is a dataclass like those of the standard library, whatever asks for it first."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import pytest

from etcd_aio import op
from etcd_aio.dataclass import _incomplete
from etcd_aio.types import KeyRange

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from etcd_aio.dataclass import dataclass

T = TypeVar("T")


def point() -> type[Any]:
    """A class that was not used yet."""

    @dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 0
        tags: tuple[str, ...] = dataclasses.field(default=(), repr=False)
        origin: ClassVar[str] = "here"

        @property
        def total(self) -> int:
            return self.x + self.y

    assert Point in _incomplete
    return Point


USES: dict[str, Callable[[type[Any]], object]] = {
    "construct": lambda found: found(1),
    "fields": lambda found: [field.name for field in dataclasses.fields(found)],
    "is_dataclass": dataclasses.is_dataclass,
    "signature": inspect.signature,
    "match_args": lambda found: found.__match_args__,
    "params": lambda found: found.__dataclass_params__.frozen,
    "hash of a twin": lambda found: hash(filled(found)),
    "repr of a twin": lambda found: repr(filled(found)),
    "equality of a twin": lambda found: filled(found) == filled(found),
    "state of a twin": lambda found: filled(found).__getstate__(),
    "copy of a twin": lambda found: copy.copy(filled(found)),
}


def filled(found: type[Any]) -> Any:
    """An instance that no `__init__` has made, as the codec makes them."""
    made = object.__new__(found)
    for name, value in (("x", 1), ("y", 2), ("tags", ())):
        object.__setattr__(made, name, value)
    return made


@pytest.mark.parametrize("use", USES)
def test_any_use_completes_the_class(use: str) -> None:
    found, like = point(), standard()
    assert str(USES[use](found)).replace("point", "standard") == str(USES[use](like))
    assert found(1, 2) == filled(found)
    assert found not in _incomplete
    assert found(3, y=4).total == 7
    assert repr(found(1)) == "point.<locals>.Point(x=1, y=0)"
    assert hash(found(1)) == hash(found(1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found(1).x = 2
    assert dataclasses.replace(found(1), y=5) == found(1, 5)


def standard() -> type[Any]:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 0
        tags: tuple[str, ...] = dataclasses.field(default=(), repr=False)
        origin: ClassVar[str] = "here"

    return Point


def test_before_the_first_use_it_is_frozen_and_has_slots_already() -> None:
    found = point()
    assert found.__slots__ == ("x", "y", "tags")
    assert found.origin == "here"
    made = filled(found)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.x = 2
    assert not hasattr(made, "__dict__")


def test_after_the_first_use_nothing_is_left_of_it() -> None:
    found, like = point(), standard()
    dataclasses.fields(found)
    assert {*vars(found)} - {"total"} == {*vars(like)}
    assert inspect.signature(found) == inspect.signature(like)


def test_a_mutable_class_has_no_hash_and_can_be_set() -> None:
    @dataclass(slots=True)
    class Mutable:
        items: list[int] = dataclasses.field(default_factory=list)

    assert Mutable.__hash__ is None
    assert Mutable() == Mutable([])
    made = Mutable()
    made.items = [1]
    assert made != Mutable()


def test_what_a_class_defines_itself_stays() -> None:
    @dataclass(frozen=True, slots=True, eq=False)
    class Own(Sequence[int]):
        size: int

        def __repr__(self) -> str:
            return "own"

        def __len__(self) -> int:
            return self.size

        def __getitem__(self, at: Any) -> Any:
            return at

    assert Own(2)[5] == 5
    assert len(Own(2)) == 2
    assert repr(Own(2)) == "own"
    assert Own(2) != Own(2)
    assert isinstance(Own(2), Sequence)


def test_a_class_inherits_the_fields_of_one_that_is_not_complete() -> None:
    @dataclass(frozen=True, slots=True)
    class Base(Generic[T]):
        value: T
        more: int = 0

    @dataclass(frozen=True, slots=True)
    class Derived(Base[T]):
        last: str = ""

    assert vars(Derived)["__slots__"] == ("last",)
    assert [field.name for field in dataclasses.fields(Derived)] == ["value", "more", "last"]
    assert Derived("v", last="x").value == "v"


def test_to_construct_objects_makes_the_constructor_alone() -> None:
    found = point()
    assert [found(1), found(2, 3, ("t",))][1].tags == ("t",)
    assert found in _incomplete
    assert repr(found(1)) == "point.<locals>.Point(x=1, y=0)"
    assert found not in _incomplete


def test_an_unusual_constructor_is_that_of_the_standard_library() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class ByName:
        x: int

    @dataclass(frozen=True, slots=True)
    class Computed:
        x: int
        double: int = dataclasses.field(init=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "double", 2 * self.x)

    assert ByName(x=1).x == 1
    with pytest.raises(TypeError):
        ByName(1)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    assert Computed(2).double == 4


@dataclass(frozen=True, slots=True)
class Interval:
    first: int
    last: int = 9

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise ValueError("ends before it begins")


class NamedInterval(Interval):
    __slots__ = ()


class NotedInterval(Interval):
    """Its objects have a `__dict__`, unlike those of its base class."""


def test_a_fast_constructor_makes_what_that_of_the_dataclass_makes() -> None:
    assert Interval(1) == Interval(first=1, last=9)
    assert repr(Interval(1, 2)) == "Interval(first=1, last=2)"
    assert dataclasses.replace(Interval(1), last=3) == Interval(1, 3)
    assert str(inspect.signature(Interval)) == "(first: int, last: int = 9) -> None"
    with pytest.raises(dataclasses.FrozenInstanceError):
        Interval(1).first = 2  # type: ignore[misc]
    with pytest.raises(ValueError, match="ends before"):
        Interval(3, 2)
    with pytest.raises(TypeError, match=r"Interval.__init__\(\) missing 1 required positional argument: 'first'"):
        Interval()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("kind", [NamedInterval, NotedInterval])
def test_a_fast_constructor_keeps_a_subclass(kind: type[Interval]) -> None:
    made = kind(1)
    assert type(made) is kind
    assert (made.first, made.last) == (1, 9)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.first = 2  # type: ignore[misc]


@pytest.mark.parametrize("made", [KeyRange, op.PutOp, op.GetOp, op.RangeOp])
def test_what_each_call_makes_has_a_fast_constructor(made: Any) -> None:
    assert "twin" in made.__init__.__code__.co_names


def test_threads_that_use_a_class_for_the_first_time_see_it_complete() -> None:
    for _ in range(20):
        found = point()
        made: list[Any] = []
        threads = [threading.Thread(target=lambda: made.append(found(1, 2))) for _ in range(4)]  # noqa: B023
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [filled(found)] * 4


def test_results_are_dataclasses_for_users() -> None:
    code = (
        "import pickle, dataclasses\n"
        "from etcd_aio import Header, KeyValue, RangeResult\n"
        "from etcd_aio.dataclass import _incomplete\n"
        "assert KeyValue in _incomplete\n"
        "assert [field.name for field in dataclasses.fields(KeyValue)][:2] == ['key', 'value']\n"
        "found = RangeResult(Header(revision=3), (KeyValue(b'k', b'v'),), count=1)\n"
        "assert pickle.loads(pickle.dumps(found)) == found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_class_of_this_module_pickles() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1))) == Pickled(1)


@dataclass(frozen=True, slots=True)
class Pickled:
    """At the top level, where pickle finds it."""

    x: int
