"""contrib/config/document.py, contrib/config/models.py, contrib/config/hints.py, contrib/config/dataclass.py: settings
from keys: nested data, types, models of each library, and errors without values.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, make_dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasChoices, AliasPath, BaseModel, Field, SecretStr, field_validator
from pydantic import dataclasses as pydantic_dataclasses

from etcd_aio.contrib.config import InvalidSettingsError
from etcd_aio.contrib.config.document import UnusableKeyError, nested, parsed
from etcd_aio.contrib.config.hints import child, takes_text
from etcd_aio.contrib.config.models import build

SECRET = "s3cr3t-value"
Name = NewType("Name", str)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Limits(BaseModel, frozen=True):
    max: int = 10
    names: dict[str, str] = Field(default_factory=dict)


class Model(BaseModel, frozen=True):
    debug: bool = False
    title: str = "none"
    limits: Limits = Limits()
    maybe: str | None = None
    colour: Colour = Colour.RED
    password: SecretStr = SecretStr("")
    hosts: tuple[str, ...] = ()
    other: int = Field(default=0, alias="anders")


@dataclass(frozen=True)
class PlainLimits:
    max: int = 10
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plain:
    debug: bool = False
    title: str = "none"
    limits: PlainLimits = field(default_factory=PlainLimits)
    ratio: float = 1.0
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    hosts: tuple[str, ...] = ()
    pair: tuple[int, str] = (1, "a")
    mode: Literal["fast", "slow"] = "fast"
    either: int | str = 0
    path: Path = Path()
    price: Decimal = Decimal(0)
    anything: Any = None
    tags: frozenset[str] = frozenset()


class StructLimits(msgspec.Struct, frozen=True):
    max: int = 10
    names: dict[str, str] = msgspec.field(default_factory=dict)


class Struct(msgspec.Struct, frozen=True, rename="camel"):
    debug: bool = False
    title: str = "none"
    limits: StructLimits = StructLimits()
    the_colour: Literal["red", "blue"] = "red"


class Typed(TypedDict):
    title: str


@pydantic_dataclasses.dataclass(frozen=True)
class Validated:
    title: str = "none"
    size: int = 0


def made(model: object, **entries: str) -> Any:
    keys = {key.replace("__", "/"): value.encode() for key, value in entries.items()}
    return build(model, lambda: nested(keys, model), 7)


# --- nested data ---


def test_a_key_is_a_path_and_its_value_is_json() -> None:
    entries = {"": b"the prefix itself", "a": b"1", "b/c": b"[1, 2]", "b/d/e": b"null", "f": b"no json", "g": b'"h"'}
    assert nested(entries, dict) == {"a": 1, "b": {"c": [1, 2], "d": {"e": None}}, "f": "no json", "g": "h"}


def test_a_longer_key_replaces_a_part_of_an_object() -> None:
    assert nested({"limits/max": b"2", "limits": b'{"max": 1, "min": 0}'}, dict) == {"limits": {"max": 2, "min": 0}}


@pytest.mark.parametrize(
    ("entries", "key"), [({"a": b"1", "a/b": b"2"}, "a/b"), ({"a": b"\xff"}, "a")], ids=["within", "bytes"]
)
def test_what_fits_no_document_is_named_without_its_value(entries: dict[str, bytes], key: str) -> None:
    with pytest.raises(UnusableKeyError) as raised:
        nested(entries, dict)
    assert raised.value.key == key


@pytest.mark.parametrize("text", ["1", '"a"', "[]", SECRET, "{", "[" * 100_000])
def test_a_document_is_a_json_object(text: str) -> None:
    with pytest.raises(UnusableKeyError) as raised:
        parsed("doc", text.encode())
    assert SECRET not in str(raised.value)
    assert parsed("doc", b'{"a": 1}') == {"a": 1}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1).filter(lambda name: "/" not in name), JSON, max_size=5))
def test_any_json_comes_back(data: dict[str, Any]) -> None:
    import json

    assert nested({key: json.dumps(value).encode() for key, value in data.items()}, dict) == data


@given(st.dictionaries(st.text(), st.binary(), max_size=6))
def test_any_keys_and_bytes_give_a_document_or_name_a_key(entries: dict[str, bytes]) -> None:
    key = next(iter(entries), "")
    try:
        nested(entries, Model)
    except UnusableKeyError as error:
        key = error.key
    assert not entries or key in entries


# --- types ---


@pytest.mark.parametrize(
    ("hint", "is_text"),
    [
        (str, True),
        (str | None, True),
        (Annotated[str, "note"], True),
        (Name, True),
        (Path, True),
        (SecretStr, True),
        (Colour, True),
        (Literal["a", "b"], True),
        (int, False),
        (Level, False),
        (Literal[1, 2], False),
        (list[str], False),
        (dict[str, str], False),
        (Limits, False),
        (Any, False),
        (None, False),
    ],
)
def test_which_types_take_text(hint: object, is_text: bool) -> None:
    assert takes_text(hint) is is_text


@pytest.mark.parametrize(
    ("model", "path", "hint"),
    [
        (Model, "limits/names/a", str),
        (Model, "anders", int),
        (Model, "nothing", None),
        (Plain, "limits/max", int),
        (Struct, "theColour", Literal["red", "blue"]),
        (Typed, "title", str),
        (dict, "a", None),
        (Limits | None, "max", int),
    ],
)
def test_the_type_of_a_setting_is_found_by_its_path(model: object, path: str, hint: object) -> None:
    for name in path.split("/"):
        model = child(model, name)
    assert model == hint


# --- models ---


@pytest.mark.parametrize("model", [Model, Plain, Struct])
def test_each_library_makes_the_same_settings(model: type) -> None:
    found = made(model, debug="true", title="123", limits__max="3", limits__names__a="1", unknown="0")
    assert (found.debug, found.title, found.limits.max, found.limits.names) == (True, "123", 3, {"a": "1"})
    assert made(model).limits.max == 10


def test_a_pydantic_dataclass_validates_itself() -> None:
    assert made(Validated, title="1", size="2") == Validated("1", 2)
    with pytest.raises(InvalidSettingsError, match="size: int_parsing"):
        made(Validated, size="x")


def test_secrets_and_aliases_of_pydantic() -> None:
    found = made(Model, password="123", anders="4", maybe="null", colour="red")
    assert found.password.get_secret_value() == "123"
    assert (found.other, found.maybe) == (4, "null")


class Renamed(BaseModel):
    title: str = Field(default="none", validation_alias=AliasChoices("name", "called", AliasPath("names", 0)))
    first: str = Field(default="none", validation_alias=AliasPath("all", 0))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ({"name": "1"}, ("1", "none")),
        ({"called": "2"}, ("2", "none")),
        ({"names": '["3"]'}, ("3", "none")),
        ({"all": '["4"]', "title": "unused"}, ("none", "4")),
    ],
)
def test_several_aliases_of_pydantic(entries: dict[str, str], expected: tuple[str, str]) -> None:
    found = made(Renamed, **entries)
    assert (found.title, found.first) == expected


class Later(BaseModel):
    inner: "Inner | None" = None


class Inner(BaseModel):
    title: str = ""


def test_a_type_that_pydantic_knows_later_is_found_then() -> None:
    assert made(Later, **{"inner/title": "1"}) == Later(inner=Inner(title="1"))
    assert made(Later, **{"inner/title": "2"}) == Later(inner=Inner(title="2"))


def calls_for(number: int) -> int:
    """How many functions are called to read the settings of a model with so many fields."""
    model = make_dataclass("Settings", [(f"field_{at}", int, field(default=0)) for at in range(number)])
    entries = {f"field_{at}": b"1" for at in range(number)}
    build(model, lambda: nested(entries, model), 0)
    count = 0

    def profile(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(profile)
    try:
        build(model, lambda: nested(entries, model), 0)
    finally:
        sys.setprofile(None)
    return count


def test_reading_settings_takes_no_longer_for_each_field_if_there_are_many() -> None:
    assert calls_for(400) < 5 * calls_for(100)


def test_all_types_of_a_plain_dataclass() -> None:
    found = made(
        Plain,
        ratio="2",
        colour="red",
        level="1",
        hosts='["a"]',
        pair='[2, "b"]',
        mode="slow",
        either="5",
        path="/tmp",
        price='"1.5"',
        anything="[{}]",
        tags='["x", "x"]',
    )
    assert found == Plain(
        ratio=2.0,
        hosts=("a",),
        pair=(2, "b"),
        mode="slow",
        either="5",  # a union with str takes the text
        path=Path("/tmp"),
        price=Decimal("1.5"),
        anything=[{}],
        tags=frozenset("x"),
    )
    assert type(found.ratio) is float
    assert type(found.level) is Level


@pytest.mark.parametrize(
    ("entries", "path"),
    [
        ({"debug": "1"}, "debug"),
        ({"ratio": "true"}, "ratio"),
        ({"limits__max": "1.5"}, "limits.max"),
        ({"limits": "3"}, "limits"),
        ({"hosts": "[1]"}, "hosts.0"),
        ({"pair": "[1]"}, "pair"),
        ({"mode": SECRET}, "mode"),
        ({"colour": SECRET}, "colour"),
        ({"price": f'"{SECRET}"'}, "price"),
        ({"level": "2"}, "level"),
    ],
)
def test_a_plain_dataclass_checks_its_types(entries: dict[str, str], path: str) -> None:
    with pytest.raises(InvalidSettingsError) as raised:
        made(Plain, **entries)
    assert list(raised.value.problems) == [path]
    assert SECRET not in str(raised.value)


def test_what_a_dataclass_needs_and_refuses_itself_is_told() -> None:
    @dataclass
    class Picky:
        size: int

        def __post_init__(self) -> None:
            if self.size > 3:
                raise ValueError(f"{self.size} is too much")

    with pytest.raises(InvalidSettingsError, match="size: missing"):
        made(Picky)
    with pytest.raises(InvalidSettingsError, match=r"the settings: ValueError$"):
        made(Picky, size="4")


def test_a_dict_is_read_only_all_through() -> None:
    found = made(dict, a__b="[1, [2]]")
    assert found == {"a": {"b": (1, (2,))}}
    for mapping in (found, found["a"]):
        with pytest.raises(TypeError):
            mapping["x"] = 1


def test_a_function_may_make_the_settings() -> None:
    assert made(lambda data: sorted(data), b="1", a="2") == ["a", "b"]


class Refusing(BaseModel):
    password: str = ""

    @field_validator("password")
    @classmethod
    def check(cls, value: str) -> str:
        raise ValueError(f"{value} is too short")


def refuse(data: dict[str, object]) -> None:
    raise ValueError(f"bad: {data}")


@pytest.mark.parametrize(
    ("model", "entries", "text"),
    [
        (Refusing, {"password": SECRET}, "password: value_error"),
        (Model, {"limits__max": SECRET}, "limits.max: int_parsing"),
        (Struct, {"limits__max": SECRET}, "limits.max: Expected `int`, got `str`"),
        (Struct, {"theColour": SECRET}, "theColour: ValidationError"),
        (refuse, {"password": SECRET}, "the settings: ValueError"),
        (dict, {"a": SECRET, "a__b": "1"}, "a/b: 'a' is a single setting"),
    ],
)
def test_errors_have_no_values(model: object, entries: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidSettingsError) as raised:
        made(model, **entries)
    error = raised.value
    assert text in str(error)
    assert error.revision == 7
    assert SECRET not in f"{error!r} {error} {error.problems}"
    assert error.__cause__ is None
    assert error.__context__ is None  # so no traceback of it has the values


def test_only_some_of_many_problems_are_shown() -> None:
    many: Callable[[], object] = lambda: InvalidSettingsError({f"key{i}": "missing" for i in range(7)})  # noqa: E731
    assert str(many()).endswith("and 2 more")
