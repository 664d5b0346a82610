"""The README is true: its programs run, its commands exist, and what it names is there."""

import ast
import inspect
import re
import tomllib

import pytest

import etcd_aio.errors
from etcd_aio import Client
from etcd_aio.testing import EtcdServer
from tests.examples.paths import ROOT, Run

README = (ROOT / "README.md").read_text()
PLACEHOLDER = "http://127.0.0.1:2379"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def nox_sessions() -> set[str]:
    """The functions of noxfile.py that are decorated with `nox.session`; read, not run."""
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {one.name for one in functions if any("nox.session" in ast.unparse(by) for by in one.decorator_list)}


@pytest.mark.cluster
@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_a_python_block_runs(number: int, server: EtcdServer, run: Run) -> None:
    block = blocks("python")[number]
    assert PLACEHOLDER in block or "EtcdCluster" in block, "it dials something that no test controls"
    run("-c", block.replace(PLACEHOLDER, server.endpoint))


def test_there_are_python_blocks_to_run() -> None:
    assert len(blocks("python")) >= 3
    assert README.count("```python") == len(blocks("python"))


def test_every_console_block_names_sessions_that_exist() -> None:
    commands = "\n".join(blocks("console"))
    assert "pip install nox && nox -s demo" in commands
    assert "pip install nox && nox -s tests" in commands
    named = set(re.findall(r"nox -s (\w+)", README))
    assert named <= nox_sessions()


def test_every_file_it_names_exists() -> None:
    named = set(re.findall(r"`([\w./]+\.(?:md|py))`", README)) | set(re.findall(r"\]\(([\w./]+)\)", README))
    assert len(named) >= 8
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_it_lists_every_example() -> None:
    for path in (ROOT / "examples").glob("*.py"):
        assert f"examples/{path.name}" in README


def test_its_numbers_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert "Python 3.11 and newer" in README
    assert inspect.signature(Client).parameters["timeout"].default == 5.0
    assert "5 seconds unless you say otherwise" in README
    for dependency in ("grpclib", "betterproto2", "anyio"):
        assert f"`{dependency}`" in README
        assert any(one.startswith(dependency) for one in project["dependencies"])


@pytest.mark.parametrize("builtin", [TimeoutError, ConnectionError, PermissionError, ValueError])
def test_errors_are_also_the_builtin_that_fits(builtin: type[Exception]) -> None:
    assert f"`{builtin.__name__}`" in README
    public = (getattr(etcd_aio.errors, name) for name in etcd_aio.errors.__all__)
    assert any(isinstance(one, type) and issubclass(one, builtin) and one is not builtin for one in public)
