"""release/facade/: the blocking classes have what the asyncio ones have, with their parameters, in blocking words."""

import ast
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any

import pytest

from etcd_aio.sync._facades import PLACES
from release.api import ROOT, public_names
from release.facade import tables, words
from release.facade.__main__ import BY_HAND
from release.facade.annotations import Names
from release.facade.choice import SYNC, Choice, is_outside
from release.facade.classes import class_of
from release.facade.docstrings import rewritten, without_section
from release.facade.modules import Modules
from release.facade.sources import Sources
from release.public import INTERNAL

RENAMED = {"aclose": "close"}
NOT_IN_FACADES = {  # besides `tables.EXCLUDED`: the reason
    "FencedWriter.key_space": "read of what is behind a facade",
    "is_exact": "read of what is behind a facade",
    "usage": "a text of an error",
}
OTHER_PARAMETERS: dict[str, tuple[set[str], set[str]]] = {  # those that a facade lacks, and those that it has besides
    "Client.__init__": (set(), {"allow_in_loop"}),
}

SOURCES = Sources(ROOT)
NAMES = public_names()
CHOICE = Choice(SOURCES, NAMES)
TEXTS = Modules(CHOICE).texts()
PAIRS = {path: place for path, place in PLACES.items() if "FakeEtcd" not in path}


def asyncio_class(path: str) -> type[Any]:
    found: type[Any] = resolve_name(path)
    return found


def facade_class(place: str) -> type[Any]:
    found: type[Any] = resolve_name(place)
    return found


def public_members(found: type[Any]) -> Iterator[tuple[str, type[Any]]]:
    """The public members, and the class that has each, as the interpreter sees them."""
    for name in dir(found):
        for owner in found.__mro__:
            if name in vars(owner):
                if not name.startswith("_") and owner.__module__.startswith("etcd_aio"):
                    yield name, owner
                break


def is_asynchronous(found: Any) -> bool:
    """Whether an object of asyncio has to be awaited, entered or iterated over, or has such members."""
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        return True
    if not inspect.isclass(found) or issubclass(found, BaseException):
        return False
    return any(
        hasattr(found, name) and getattr(getattr(found, name), "__module__", "").startswith("etcd_aio")
        for name in ("__aenter__", "__anext__")
    ) or any(inspect.iscoroutinefunction(getattr(found, name, None)) for name, _ in public_members(found))


def is_left_out(classes: tuple[type[Any], ...], name: str) -> bool:
    return (
        name in NOT_IN_FACADES
        or f"{classes[0].__name__}.{name}" in NOT_IN_FACADES
        or any(f"{one.__name__}.{name}" in tables.EXCLUDED for one in classes)
        or any(f"{module}.{classes[0].__name__}.{name}" in INTERNAL for module in modules_of(classes[0].__name__))
    )


def modules_of(name: str) -> list[str]:
    return [path.rpartition(".")[0] for path in NAMES if path.endswith(f".{name}")]


# All is there.


def test_every_public_name_with_something_asynchronous_has_a_blocking_one() -> None:
    missing = []
    for name, path in NAMES.items():
        module, _, own = name.rpartition(".")
        if is_outside(module) or path in tables.WITHOUT or not is_asynchronous(resolve_name(name)):
            continue
        if not hasattr(importlib.import_module(SYNC + module.removeprefix("etcd_aio")), own):
            missing.append(name)
    assert not missing


def test_the_table_of_classes_without_one_has_no_other() -> None:
    public = set(NAMES.values())
    assert {path for path in tables.WITHOUT if path not in public} <= {"etcd_aio.transport.interface.Engine"}


@pytest.mark.parametrize("path", PLACES)
def test_a_facade_has_every_public_member(path: str) -> None:
    found, facade = asyncio_class(path), facade_class(PLACES[path])
    missing = [
        name
        for name, _ in public_members(found)
        if not is_left_out(found.__mro__, name) and not hasattr(facade, RENAMED.get(name, name))
    ]
    assert not missing


@pytest.mark.parametrize("path", PLACES)
def test_a_facade_has_the_attributes_that_the_docstring_names(path: str) -> None:
    found, facade = asyncio_class(path), facade_class(PLACES[path])
    section = (inspect.getdoc(found) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    names = re.findall(r"(?m)^    (\w+): ", section)
    assert [name for name in names if not hasattr(facade, name) and not is_left_out(found.__mro__, name)] == []


@pytest.mark.parametrize("path", PLACES)
def test_a_facade_is_entered_and_iterated_over_as_the_asyncio_class_is(path: str) -> None:
    found, facade = asyncio_class(path), facade_class(PLACES[path])
    entered = getattr(found, "__aenter__", None)
    enters = entered is not None and inspect.signature(entered).return_annotation is not typing.NoReturn
    assert enters is hasattr(facade, "__enter__")
    assert hasattr(found, "__anext__") is hasattr(facade, "__next__")


# The parameters are the same.


def pairs_of_functions() -> Iterator[tuple[str, Callable[..., object], Callable[..., object]]]:
    for path, place in PLACES.items():
        found, facade = asyncio_class(path), facade_class(place)
        for name, _ in public_members(found):
            static = inspect.getattr_static(facade, RENAMED.get(name, name), None)
            if callable(static) or isinstance(static, classmethod):
                yield f"{found.__name__}.{name}", getattr(found, name), getattr(facade, RENAMED.get(name, name))
        if path in tables.CONSTRUCTED or "__init__" in vars(facade):
            yield f"{found.__name__}.__init__", found.__init__, facade.__init__


def parameters(function: Callable[..., object]) -> dict[str, tuple[object, object]]:
    found = inspect.signature(function).parameters.values()
    return {one.name: (one.kind, None if one.name == "on_lost" else one.default) for one in found}


def test_the_parameters_are_those_of_the_asyncio_methods() -> None:
    wrong = []
    count = 0
    for name, method, facade_method in pairs_of_functions():
        before, after = parameters(method), parameters(facade_method)
        owner, _, own = name.partition(".")
        heirs = [one for one in OTHER_PARAMETERS if one.endswith(f".{own}")]
        lacks, has = OTHER_PARAMETERS.get(name) or next(
            (OTHER_PARAMETERS[one] for one in heirs if owner in ("Client", "Ordered") and one == f"Store.{own}"),
            (set(), set()),
        )
        expected = [one for one in before.items() if one[0] not in lacks]
        if [one for one in after.items() if one[0] not in has] != expected or has - after.keys():
            wrong.append(f"{name}: {before} {after}")
        count += 1
    assert not wrong
    assert count > 300


def test_functions_have_the_parameters_too() -> None:
    for path, definition in CHOICE.functions.items():
        facade = resolve_name(f"{SYNC}{definition.module.removeprefix('etcd_aio')}:{definition.name}")
        assert parameters(facade) == parameters(resolve_name(path))


def test_a_facade_is_no_coroutine_function() -> None:
    assert not [name for name, _, method in pairs_of_functions() if inspect.iscoroutinefunction(method)]


def test_annotations_can_be_resolved() -> None:
    """With what only type checkers import, as they and editors do."""
    wrong = []
    for name, _, method in pairs_of_functions():
        function = inspect.unwrap(getattr(method, "__func__", method))
        module = sys.modules[function.__module__]
        if not module.__name__.startswith(SYNC):
            continue
        try:
            typing.get_type_hints(function, localns=late_names_of(module.__name__))
        except NameError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong


def late_names_of(module: str) -> dict[str, object]:
    found = sys.modules[module].__file__
    assert found is not None
    with open(found, encoding="utf-8") as file:  # noqa: PTH123
        body = ast.parse(file.read()).body
    names: dict[str, object] = {"Mapping": Mapping, "Sequence": Sequence}  # those of `JSONValue`, which is recursive
    for node in body:
        if isinstance(node, ast.If):
            for inner in node.body:
                if isinstance(inner, ast.ImportFrom):
                    for alias in inner.names:
                        names[alias.name] = resolve_name(f"{inner.module}:{alias.name}")
    return names


# The files are those that are made.


def definitions(text: str) -> list[str]:
    """The definitions of a module, and the names of a package, however ruff sorts and formats them."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.If) and node.orelse:
            found += sorted(ast.dump(inner) for inner in [*node.body, *node.orelse])
        elif not isinstance(node, ast.Import | ast.ImportFrom | ast.If):
            found.append(ast.dump(node))
    return found


def test_the_files_are_those_that_the_generator_makes() -> None:
    folder = ROOT / "etcd_aio" / "sync"
    there = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in folder.rglob("*.py")}
    assert there - {f"{SYNC}.{name.removesuffix('.py')}" for name in BY_HAND} == TEXTS.keys()
    wrong = [
        name
        for name, text in TEXTS.items()
        if definitions(text)
        != definitions(ROOT.joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8"))
    ]
    assert not wrong, "python -m release.facade --write"


def test_all_entries_of_the_tables_are_used() -> None:
    members = {
        f"{inner.definition.name}.{name}"
        for one in CHOICE.classes.values()
        for inner in one.order
        for name in inner.own
    }
    classes = {one.definition.name for one in CHOICE.classes.values()}
    for table in (tables.EXCLUDED, tables.DIRECT, tables.BODIES, tables.NAMES, tables.IN_LOOP):
        assert [name for name in table if name not in members] == []
    assert [name for name in tables.ATTRIBUTES if name.partition(".")[0] not in classes | {"KeptLease"}] == []
    assert classes >= tables.LOSABLE | tables.LOSABLE_MAKERS | tables.THREAD_SAFE
    for paths in (tables.CONSTRUCTED, tables.SURVIVES_FORK, tables.INNER):
        assert [path for path in paths if path not in CHOICE.classes] == []


# The words.


def docstrings() -> Iterator[tuple[str, str]]:
    for name, text in TEXTS.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found = ast.get_docstring(node)
                if found:
                    yield f"{name}.{getattr(node, 'name', '')}", found


def test_no_docstring_says_what_only_asyncio_has() -> None:
    wrong = [(name, words.wrong_words(" ".join(text.split()))) for name, text in docstrings()]
    assert [(name, found) for name, found in wrong if found] == []


def test_no_docstring_has_an_empty_paragraph_or_is_lost() -> None:
    for name, text in docstrings():
        assert "\n\n\n" not in text, name
        assert text[0] not in " .,;", name
        assert not text.rstrip().endswith(":"), name


def test_every_sentence_about_asyncio_is_still_there() -> None:
    assert words.used >= words.SENTENCES.keys()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Get it: `async with a() as b:`.", "Get it: `with a() as b:`."),
        ("Do it.\n\n    async for x in y: ...\n    z = await a.b()", "Do it.\n\n    for x in y: ...\n    z = a.b()"),
        ("Do it.\n\n    int((await tx.get('a')).text())", "Do it.\n\n    int(tx.get('a').text())"),
        ("Do it.\n\nCancellation: it ends.", "Do it.\n\nCtrl-C: it ends."),
        (
            "Do it.\n\nArgs:\n    one: for a task.\n    two: other.",
            "Do it.\n\nArgs:\n    one: for a thread.\n    two: other.",
        ),
        ("Share it: tasks may wait.", "Share it: threads may wait."),
    ],
)
def test_words_become_those_of_blocking_code(text: str, expected: str) -> None:
    assert words.blocking(text, 4) == expected


@pytest.mark.parametrize("word", ["await", "async with", "a task", "cancelled", "coroutine", "the event loop"])
def test_a_wrong_word_is_found(word: str) -> None:
    assert words.wrong_words(f"This is {word} here.")


def test_a_paragraph_is_filled_again_and_one_that_is_left_out_leaves_no_hole() -> None:
    text = "Summary.\n\n" + "word " * 30 + "gone\n\nArgs:\n    a: " + "word " * 30 + "gone.\n    b: gone"
    found = rewritten(text, lambda line: "" if line == "b: gone" else line.replace("gone", "x"), str, 4)
    assert max(map(len, found.split("\n"))) <= 116
    assert "gone" not in found
    assert re.search(r"(?m)^    a: word", found)
    assert re.search(r"(?m)^        word", found)
    assert rewritten("One.\n\nArgs:\n    a: b", lambda line: "" if line == "a: b" else line, str, 0) == "One."


def test_a_section_is_left_out() -> None:
    text = "One.\n\nArgs:\n    a: b\n        c\n\nRaises:\n    E: f"
    assert without_section(text, "Args") == "One.\n\nRaises:\n    E: f"


# Types.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AsyncIterator[int]", "Iterator[int]"),
        ("Callable[[Transaction], Awaitable[bytes]]", "Callable[[Transaction], bytes]"),
        ("Coroutine[object, object, int]", "int"),
        ("StoreCalls | None", "StoreCalls | None"),
        ("Literal['StoreCalls']", "Literal['StoreCalls']"),
        ("Callable[[], 'Lock']", "Callable[[], Lock]"),
    ],
)
def test_a_type_is_translated(text: str, expected: str) -> None:
    source = SOURCES.module("etcd_aio.store")
    assert source is not None
    names = Names(f"{SYNC}.elsewhere")
    found = CHOICE.annotations.translate("etcd_aio.store", ast.parse(text, mode="eval").body, names, {})
    assert ast.unparse(found) == expected


def test_a_type_variable_is_what_the_subclass_gives() -> None:
    lock, holding = (
        class_of(SOURCES, SOURCES.find_path(f"etcd_aio.concurrency.{path}"))
        for path in ("lock.Lock", "holding.Holding")
    )
    module, node = holding.types(lock)["LostError"]
    assert (module, ast.unparse(node)) == ("etcd_aio.concurrency.lock", "LockLostError")
