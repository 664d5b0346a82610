"""Unit tests are found where their subject is, and their first line begins with the files or folders that they test."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "etcd_aio"
UNIT = ROOT / "tests" / "unit"
ELSEWHERE = {"proto", "release", ".github"}  # the generator of the messages, and what makes releases
WITHOUT_TESTS = {
    "_exports": "see exports.py",
    "_version": "one constant",
    "__main__": "one call, which every test of the command line makes",
}
TESTED_ELSEWHERE = {"pb", "contrib"}  # in tests/contrib: `nox -s contrib` has the libraries for them
NAMED_BY_NO_UNIT_TEST = {  # the reason, or the tests that test them
    "interfaces": {
        *("error_handler/stream_handler.py", "fake/carrier.py", "lease/loans.py"),
        "transport/interface.py",
    },
    "tests/contract/test_gateway.py": {"transport/auto.py", "transport/gateway/"},
    "tests/contract/test_transport.py": {"fake/pieces.py", "transport/grpclib/"},
    "tests/integration/test_cache.py": {
        *("cache/freshness.py", "cache/replicator.py", "cache/results.py", "errors/cache.py"),
    },
    "tests/integration/test_compat_aetcd.py": {
        *("compat/aetcd/client.py", "compat/aetcd/leases.py", "compat/aetcd/locks.py"),
        *("compat/aetcd/members.py", "compat/aetcd/watcher.py"),
    },
    "tests/integration/test_compat_etcd3.py": {
        *("compat/etcd3/client.py", "compat/etcd3/leases.py", "compat/etcd3/locks.py", "compat/etcd3/members.py"),
        *("compat/etcd3/watch.py", "compat/etcd3/_endpoints.py", "compat/etcd3/_kv_stub.py"),
        *("compat/etcd3/_requests.py", "compat/etcd3/_values.py"),
    },
    "tests/integration/test_compat_etcd3gw.py": {
        *("compat/etcd3gw/client.py", "compat/etcd3gw/lease.py", "compat/etcd3gw/lock.py", "compat/etcd3gw/types.py"),
        "compat/etcd3gw/watch.py",
    },
    "tests/integration/test_elections.py": {"concurrency/leadership.py"},
    "tests/integration/test_fake_command.py": {"cli/fake.py"},
    "tests/integration/test_fake_served.py": {
        *("fake/documents.py", "fake/served_calls.py", "fake/served_connection.py"),
    },
    "tests/integration/test_fake_truth.py": {"fake/ranges.py"},
    "tests/integration/test_follow.py": {"mirror/follow.py"},
    "tests/integration/test_locks.py": {"concurrency/holding.py", "concurrency/lock.py"},
    "tests/integration/test_mirrors.py": {"mirror/base_copy.py", "mirror/mirror.py", "mirror/writer.py"},
    "tests/integration/test_namespaces.py": {"views/prefix.py"},
    "tests/integration/test_once.py": {"once/results.py"},
    "tests/integration/test_rwlocks.py": {"concurrency/rwlock.py"},
    "tests/integration/test_semaphores.py": {"concurrency/semaphore.py"},
}
SUBJECTS = re.compile(r'r?"""((?:\S+(?:\.py|/),\s)*\S+(?:\.py|/)):\s')

PACKAGES = sorted({path.parent.name for path in PACKAGE.glob("*/__init__.py")} - TESTED_ELSEWHERE)
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.name != "__init__.py")
ALL_MODULES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("*.py")
    if path.name != "__init__.py" and not {"generated", "pb"} & {*path.parts} and path.stem not in WITHOUT_TESTS
)
TESTS = sorted(UNIT.rglob("test_*.py"))
CONTRIB_TESTS = sorted((ROOT / "tests" / "contrib").glob("test_*.py"))  # those of pages and examples name no module


def imported(path: Path) -> set[str]:
    """What a file imports of the project, by the names of packages and root modules.

    Its lines are searched: parsing all files takes seconds.
    """
    text = path.read_text()
    modules = re.findall(r"^ *(?:from|import) etcd_aio\.(\w+)", text, re.MULTILINE)
    lists = re.findall(r"^ *from etcd_aio import (\([^)]*\)|.*)", text, re.MULTILINE)
    return {*modules, *(name for names in lists for name in re.findall(r"\w+", names))}


def subjects(test: Path) -> list[str]:
    """The files and folders that the first line of a test names, as in `lease/pool.py, lease/clock.py: ...`."""
    match = SUBJECTS.match(test.read_text())
    return re.split(r",\s", match[1]) if match else []


def is_there(subject: str) -> bool:
    path = (ROOT if subject.split("/")[0] in ELSEWHERE else PACKAGE) / subject
    return path.is_dir() if subject.endswith("/") else path.is_file()


def with_name(modules: list[str], names: set[str]) -> set[str]:
    """Those that are named, each by itself or by its folder."""
    return {module for module in modules if names & {module, f"{Path(module).parent.as_posix()}/"}}


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
            assert f"{test.stem.removeprefix('test_')}.py" in subjects(test), test
        elif folder not in ELSEWHERE:
            package = folder.split("/")[0]
            assert package in PACKAGES, test
            assert (PACKAGE / folder).is_dir(), test
            assert package in imported(test), f"{test} imports nothing of etcd_aio.{package}"
            assert any(name.startswith(f"{package}/") for name in subjects(test)), test


def test_every_unit_test_names_what_it_tests() -> None:
    assert [test.relative_to(ROOT).as_posix() for test in TESTS if not subjects(test)] == []
    named = [(test.relative_to(ROOT).as_posix(), name) for test in TESTS + CONTRIB_TESTS for name in subjects(test)]
    assert [(test, name) for test, name in named if not is_there(name)] == []


def test_every_module_is_named_by_a_test() -> None:
    named = {name for test in TESTS + CONTRIB_TESTS for name in subjects(test)}
    unnamed = set(ALL_MODULES) - with_name(ALL_MODULES, named)
    listed = set().union(*NAMED_BY_NO_UNIT_TEST.values())
    assert sorted(unnamed - with_name(ALL_MODULES, listed)) == []
    assert [name for name in listed if not with_name(sorted(unnamed), {name})] == [], "these need not be listed"
    assert [reason for reason in NAMED_BY_NO_UNIT_TEST if "/" in reason and not (ROOT / reason).is_file()] == []
