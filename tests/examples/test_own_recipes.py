"""The recipe of the page "Write your own recipe" is typed, and uses public names alone, as code of others does."""

import ast
import subprocess
import sys
from pathlib import Path

from release.api import public_names
from tests.examples.paths import PAGES

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


def test_it_is_typed(tmp_path: Path) -> None:
    program = tmp_path / "rate_limiter.py"
    program.write_text(source())
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_short() -> None:
    code = [line for line in source().splitlines() if line.strip()]
    assert len(code) <= 65
