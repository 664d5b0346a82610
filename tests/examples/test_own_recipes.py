"""The classes of the pages "Write your own recipe" and "... backend" are typed, and use public names alone."""

import ast
from pathlib import Path

import pytest

from release.api import public_names
from release.public import PUBLIC
from tests.examples.paths import PAGES

TYPED = Path(__file__).parents[1] / "typing"

# The page, and the block of it.
SUBJECTS = {
    "recipe": ("own-recipes", 0),
    "lease": ("own-recipes", 1),
    "backend": ("own-backends", 0),
    "changes": ("own-backends", 1),
}

pytestmark = pytest.mark.parametrize("subject", SUBJECTS)


def source(subject: str) -> str:
    page, number = SUBJECTS[subject]
    text = (PAGES / "how-to" / f"{page}.md").read_text()
    block = text.split("```python\n")[number + 1].partition("```")[0]
    return block.partition("\n\n\nclient = ")[0] + "\n"


def test_it_imports_public_names_alone(subject: str) -> None:
    names = set(public_names())
    for node in ast.walk(ast.parse(source(subject))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("etcd_aio"):
            assert node.module in PUBLIC
            for alias in node.names:
                assert f"{node.module}.{alias.name}" in names or alias.name == "op", alias.name


def test_it_is_typed(subject: str) -> None:
    """mypy and pyright look at the same lines: they check all of tests/typing."""
    assert (TYPED / f"own_{subject}.py").read_text() == source(subject)


def test_it_is_short(subject: str) -> None:
    code = [line for line in source(subject).splitlines() if line.strip()]
    assert len(code) <= 70
