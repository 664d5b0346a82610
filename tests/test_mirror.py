"""Unit tests are found where their subject is: a folder for each package, a file for each module of the root."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "etcd_aio"
UNIT = ROOT / "tests" / "unit"
ELSEWHERE = {"proto", "release"}  # the generator of the messages, and what makes releases
WITHOUT_TESTS = {"_version": "one constant", "__main__": "one call, which every test of the command line makes"}
TESTED_ELSEWHERE = {"pb", "contrib"}  # in tests/contrib: `nox -s contrib` has the libraries for them

PACKAGES = sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} - TESTED_ELSEWHERE)
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.name != "__init__.py")
TESTS = sorted(UNIT.rglob("test_*.py"))


def imported(path: Path) -> set[str]:
    """What a file imports of the project, by the names of packages and root modules.

    Its lines are searched: parsing all files takes seconds.
    """
    text = path.read_text()
    modules = re.findall(r"^ *(?:from|import) etcd_aio\.(\w+)", text, re.MULTILINE)
    lists = re.findall(r"^ *from etcd_aio import (\([^)]*\)|.*)", text, re.MULTILINE)
    return {*modules, *(name for names in lists for name in re.findall(r"\w+", names))}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_a_folder_of_unit_tests(package: str) -> None:
    assert list((UNIT / package).glob("test_*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_every_module_of_the_root_has_a_file_of_unit_tests(module: str) -> None:
    test = UNIT / f"test_{module}.py"
    assert test.exists() != (module in WITHOUT_TESTS), test.relative_to(ROOT)


def test_every_unit_test_stands_beside_what_it_tests() -> None:
    for test in TESTS:
        folder = test.parent.relative_to(UNIT).as_posix()
        if folder == ".":
            assert test.stem.removeprefix("test_") in MODULES, test
        elif folder not in ELSEWHERE:
            package = folder.split("/")[0]
            assert package in PACKAGES, test
            assert (PACKAGE / folder).is_dir(), test
            assert package in imported(test), f"{test} imports nothing of etcd_aio.{package}"
