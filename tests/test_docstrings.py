"""Docstrings begin with what they describe, and not with a pronoun that leaves it to the reader."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import etcd_aio

PACKAGE = Path(etcd_aio.__file__).parent

# The packages that are checked. With the last one this becomes a search through the whole of `etcd_aio`.
PRONOUN = re.compile(
    r"(?:What|Whatever|Who|Whom|Whose|Whoever|It|There|Nothing|Nobody)\b|(?:All|Those|That|One) (?:of|that|who|which)\b"
)


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, those behind attributes and constants too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield statement.lineno, text.strip()


def test_docstrings_begin_with_what_they_describe() -> None:
    files = sorted(
        path for path in PACKAGE.rglob("*.py") if not {"generated", "pb"} & {*path.relative_to(PACKAGE).parts}
    )
    assert files
    wrong = [
        f"{file.relative_to(PACKAGE)}:{line}: {text.splitlines()[0]}"
        for file in files
        for line, text in docstrings(file.read_text())
        if PRONOUN.match(text)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "is_wrong"),
    [
        ('"""What a command shows."""', True),
        ('class A:\n    """Those that are healthy."""', True),
        ('class A:\n    async def f(self):\n        """It is over."""', True),
        ('X = 1\n"""That of the client."""', True),
        ('def f():\n    """All that a dial needs."""', True),
        ('"""All results of a command."""', False),
        ('"""Whether it is over."""', False),
        ('X = "What?"', False),
    ],
)
def test_a_pronoun_at_the_beginning_is_found(source: str, is_wrong: bool) -> None:
    assert any(PRONOUN.match(text) for _, text in docstrings(source)) is is_wrong
