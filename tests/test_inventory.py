"""The list of test functions: what is found, and what two lists say about each other."""

from pathlib import Path

from tests.inventory import differences, in_file, in_tree

SOURCE = """
def test_one() -> None: ...
def helper() -> None: ...
class TestGroup:
    async def test_two(self) -> None: ...
"""


def test_functions_are_found_in_test_files_only() -> None:
    assert list(in_file("tests/unit/test_a.py", SOURCE)) == [
        "tests/unit/test_a.py::test_one",
        "tests/unit/test_a.py::test_two",
    ]
    assert not list(in_file("tests/support/a.py", SOURCE))


def test_a_tree_lists_the_tests_of_every_folder(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "unit"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text(SOURCE)
    (tmp_path / "tests" / Path(__file__).name).write_text(Path(__file__).read_text())
    tests = in_tree(tmp_path)
    assert "tests/unit/test_a.py::test_two" in tests
    assert f"tests/{Path(__file__).name}::test_a_tree_lists_the_tests_of_every_folder" in tests


def test_a_moved_test_is_neither_lost_nor_added() -> None:
    before = ["a.py::test_moved", "a.py::test_kept", "a.py::test_lost"]
    after = ["b.py::test_moved", "a.py::test_kept", "a.py::test_added"]
    assert differences(before, after) == [
        "lost   a.py::test_lost",
        "added  a.py::test_added",
        "moved  a.py::test_moved -> b.py::test_moved",
    ]
