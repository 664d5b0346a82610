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


def test_the_working_tree_lists_this_test() -> None:
    assert f"tests/{Path(__file__).name}::test_the_working_tree_lists_this_test" in in_tree()


def test_a_moved_test_is_neither_lost_nor_added() -> None:
    before = ["a.py::test_moved", "a.py::test_kept", "a.py::test_lost"]
    after = ["b.py::test_moved", "a.py::test_kept", "a.py::test_added"]
    assert differences(before, after) == [
        "lost   a.py::test_lost",
        "added  a.py::test_added",
        "moved  a.py::test_moved -> b.py::test_moved",
    ]
