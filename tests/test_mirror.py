"""Unit tests mirror the package: every file has its own, and no test outlives its subject."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "etcd_aio"
UNIT = ROOT / "tests" / "unit"

# What has no logic of its own, or is tested elsewhere as the reason says.
WITHOUT_UNIT_TEST = {
    "version": "one constant",
    "error_handler/conversation": "a typing Protocol; its supervisor and its machines are tested",
    "transport/seam": "typing Protocols; tests/contract/test_transport.py examines them",
    "transport/native": "tests/contract/test_transport.py examines it with every other engine",
    "transport/stock": "tests/contract/test_transport.py examines it with every other engine",
    "transport/stock_protocol": "tests/contract/test_transport.py examines it with every other engine",
}


def modules() -> list[str]:
    paths = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    return sorted(path.with_suffix("").as_posix() for path in paths if path.parts[0] != "pb")


@pytest.mark.parametrize("module", modules())
def test_every_module_has_its_test_file(module: str) -> None:
    folder, _, name = module.rpartition("/")
    test = UNIT / folder / f"test_{name}.py"
    if module in WITHOUT_UNIT_TEST:
        assert not test.exists(), "it has one after all: take it off the list"
    else:
        assert test.exists(), f"{test.relative_to(ROOT)} is missing"


def test_every_unit_test_has_its_module() -> None:
    known = set(modules())
    for test in UNIT.rglob("test_*.py"):
        folder = test.parent.relative_to(UNIT).as_posix()
        name = test.stem.removeprefix("test_")
        module = name if folder == "." else f"{folder}/{name}"
        assert module in known or (PACKAGE / module).is_dir() or folder == "proto", f"{module} is gone"
