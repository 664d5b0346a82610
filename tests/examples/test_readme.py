"""What the README names exists. Its program is run by `test_docs.py`, like the blocks of every page."""

import ast
import inspect
import re
import tomllib

import pytest

import etcd_aio.errors
from etcd_aio import TLS, Client
from tests.examples.blocks import blocks, python_blocks, read
from tests.examples.paths import ROOT

README = read(ROOT / "README.md")


def console_lines(page: str) -> list[str]:
    """Every line of the shell blocks of a page."""
    return [line for block in blocks(page) if block.language == "console" for line in block.code.splitlines()]


def nox_sessions() -> set[str]:
    """The sessions of noxfile.py, whose names have hyphens; the file is parsed, not imported."""
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    made = [each for each in functions if any("nox.session" in ast.unparse(by) for by in each.decorator_list)]
    return {each.name.replace("_", "-") for each in made}


def test_there_are_python_blocks_to_run() -> None:
    assert len(python_blocks(README)) >= 1


def test_it_has_the_commands_of_the_demonstration_and_the_tests() -> None:
    commands = console_lines(README)
    assert "pip install nox && nox -s demo" in commands
    assert "pip install nox && nox -s tests" in commands


def test_every_file_it_names_exists() -> None:
    named = set(re.findall(r"`([\w./]+\.(?:md|py))`", README)) | set(re.findall(r"\]\(([\w./]+)\)", README))
    assert len(named) >= 8
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_it_is_short() -> None:
    assert len(README) < 5000


def test_the_options_that_it_names_exist() -> None:
    known = set(inspect.signature(Client).parameters) | set(inspect.signature(TLS).parameters)
    named = {name for text in re.findall(r"`([^`\n]+)`", README) for name in re.findall(r"\b([a-z_]+)=", text)}
    assert {"auth", "tls", "timeout"} <= named
    assert named - known == {"maybe_applied"}  # an attribute of errors


def test_its_versions_and_defaults_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert "Python 3.11 and newer" in README
    assert inspect.signature(Client).parameters["timeout"].default == 5.0
    assert "5 seconds unless you say otherwise" in README
    for dependency in ("grpclib", "betterproto2", "anyio"):
        assert f"`{dependency}`" in README
        assert any(requirement.startswith(dependency) for requirement in project["dependencies"])


@pytest.mark.parametrize("builtin", [TimeoutError, ConnectionError, PermissionError, ValueError])
def test_the_builtin_exceptions_that_it_names_are_base_classes_of_errors(builtin: type[Exception]) -> None:
    assert f"`{builtin.__name__}`" in README
    public = (getattr(etcd_aio.errors, name) for name in vars(etcd_aio.errors)["__all__"])
    assert any(isinstance(error, type) and issubclass(error, builtin) and error is not builtin for error in public)
