"""The public names: every door lists what it exports, sorted and without repetition, and nothing else is public."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PACKAGE = Path(__file__).parent.parent / "etcd_aio"
DOORS = [
    "etcd_aio",
    *(f"etcd_aio.{path.parent.name}" for path in sorted(PACKAGE.glob("*/__init__.py")) if path.parent.name != "pb"),
]


@pytest.mark.parametrize("name", DOORS)
def test_a_door_lists_its_names_once_and_sorted(name: str) -> None:
    door = importlib.import_module(name)
    names = list(door.__all__)
    # Ruff's order: constants, classes, the rest; each part sorted.
    kinds = [sorted(filter(kind, names)) for kind in (_is_constant, _is_class, _is_other)]
    assert names == [one for kind in kinds for one in kind]
    assert len(set(names)) == len(names)
    for one in names:
        assert hasattr(door, one), one


@pytest.mark.parametrize("name", DOORS)
def test_a_door_exports_nothing_that_it_does_not_list(name: str) -> None:
    door = importlib.import_module(name)
    unlisted = {
        one
        for one, value in vars(door).items()
        if not one.startswith("_") and not isinstance(value, ModuleType) and one not in door.__all__
    }
    # What a door needs for itself, not what it offers.
    assert unlisted <= {"Final", "Literal", "TypeAlias", "TypeVar", "annotations"}


def test_the_library_imports_without_its_extras_and_without_other_grpc_or_protobuf_runtimes() -> None:
    code = (
        "import sys, etcd_aio\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'grpc', 'google', 'dns', 'uvloop', 'rich', 'pytest', 'trustme'}, loaded\n"
        "assert 'grpclib' not in loaded, 'an engine is imported only when a client asks for it'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)


def _is_constant(name: str) -> bool:
    return name.isupper()


def _is_class(name: str) -> bool:
    return not name.isupper() and name[0].isupper()


def _is_other(name: str) -> bool:
    return not name[0].isupper()
