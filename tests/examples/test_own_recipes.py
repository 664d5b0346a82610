"""The recipe of the page "Write your own recipe" is typed, and uses public names alone, as code of others does."""

import ast
from pathlib import Path

from release.api import public_names
from tests.examples.paths import PAGES

TYPED = Path(__file__).parents[1] / "typing" / "own_recipe.py"
PUBLIC_MODULES = {"etcd_aio", "etcd_aio.arguments", "etcd_aio.base", "etcd_aio.calls", "etcd_aio.errors"}


def source() -> str:
    page = (PAGES / "how-to" / "own-recipes.md").read_text()
    block = page.partition("```python\n")[2].partition("```")[0]
    return block.partition("\n\n\nclient = ")[0] + "\n"


def test_it_imports_public_names_alone() -> None:
    names = set(public_names())
    for node in ast.walk(ast.parse(source())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("etcd_aio"):
            assert node.module in PUBLIC_MODULES
            for alias in node.names:
                assert f"{node.module}.{alias.name}" in names or alias.name == "op", alias.name


def test_it_is_typed() -> None:
    """mypy and pyright look at the same lines: they check all of tests/typing."""
    assert TYPED.read_text() == source()


def test_it_is_short() -> None:
    code = [line for line in source().splitlines() if line.strip()]
    assert len(code) <= 65
