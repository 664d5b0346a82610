"""Installs archives into environments of their own, and runs programs there, away from the checkout."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_HERE: Final = Path(__file__).parent
_SECONDS: Final = 900.0  # for one command; only what hangs takes so long
_PAGE: Final = ("tests/examples/page.py", "tests/examples/blocks.py")  # they need the standard library only


class InstallError(Exception):
    """A command in an environment failed."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment.

    Attributes:
        folder: where it is; programs run in it.
        python: its interpreter.
    """

    folder: Path
    python: Path

    def install(self, *what: str, has_dependencies: bool = True) -> None:
        """Install with pip, as users do. Nothing that was built from this checkout is taken from a cache."""
        options = () if has_dependencies else ("--no-deps",)
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet", *options, *what]
        _run(command, self.folder, {})

    def check(self) -> None:
        """Fail if what is installed does not fit together."""
        _run([sys.executable, "-m", "pip", "--python", str(self.python), "check"], self.folder, {})

    def run(self, *arguments: str, path: Path | None = None) -> str:
        """Run Python, with nothing importable but what is installed, and `path`. Returns the output."""
        return _run([str(self.python), *arguments], self.folder, {} if path is None else {"PYTHONPATH": str(path)})


@contextmanager
def environment(python: str) -> Iterator[Environment]:
    """An empty environment of an interpreter, deleted at the end."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "environment"
        _run([python, "-m", "venv", "--without-pip", str(where)], Path(folder), {})
        scripts = "Scripts" if os.name == "nt" else "bin"
        yield Environment(Path(folder), where / scripts / "python")


def smoke(env: Environment, version: str) -> dict[str, object]:
    """Run `smoke.py`. Returns what it tells."""
    found = json.loads(env.run(str(_HERE / "smoke.py"), version, path=None))
    assert isinstance(found, dict)
    return found


def run_readme(env: Environment, readme: str, endpoint: str) -> None:
    """Run the code of a README on a server, and compare what it prints with what the README shows."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "README.md"
        page.write_text(readme, encoding="utf-8")
        for name in _PAGE:
            copy = Path(folder) / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy)
        arguments = ("-m", "tests.examples.page", str(page), "http://127.0.0.1:2379", endpoint)
        env.run("-X", "dev", "-W", "error", *arguments, path=Path(folder))


def _run(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ETCD"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env=inherited | dict(variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode != 0:
        shown = " ".join(command)
        raise InstallError(f"{shown}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout
