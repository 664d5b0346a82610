"""tests/support/blocking/: every entry of the list of what is left out names tests that are there, and has a reason."""

import ast
from pathlib import Path

import pytest

from tests.support.blocking.left_out import FROM_CONTRACTS, LEFT_OUT

FOLDERS = [Path(__file__).parent / name for name in ("integration", "contract")]


def functions(module: str) -> set[str]:
    """The test functions of a module, or of both modules of that name."""
    trees = [ast.parse(path.read_text("utf-8")) for folder in FOLDERS for path in folder.glob(f"{module}.py")]
    return {
        node.name
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("entry", [*LEFT_OUT, *sorted(FROM_CONTRACTS)])
def test_an_entry_names_tests_that_are_there(entry: str) -> None:
    module, _, test = entry.partition("::")
    found = functions(module)
    assert test in found if test else found


@pytest.mark.parametrize("entry", [entry for entry in LEFT_OUT if "::" in entry])
def test_a_test_of_a_module_that_is_left_out_is_not_named_too(entry: str) -> None:
    assert entry.partition("::")[0] not in LEFT_OUT


def test_the_list_is_sorted_and_each_reason_is_a_sentence() -> None:
    assert list(LEFT_OUT) == sorted(LEFT_OUT)
    assert all(len(reason) > 20 for reason in LEFT_OUT.values())
