"""compat/: the names that an installed client gives to programs, and the runner of programs."""

import subprocess
import sys
from pathlib import Path

import pytest

from etcd_aio import compat
from etcd_aio.compat import CLIENTS

MODULES = {  # that programs of each client import, with a name in each
    "etcd3": {
        "etcd3": "client",
        "etcd3.client": "Etcd3Client",
        "etcd3.etcdrpc": "RangeRequest",
        "etcd3.events": "PutEvent",
        "etcd3.exceptions": "Etcd3Exception",
        "etcd3.leases": "Lease",
        "etcd3.locks": "Lock",
        "etcd3.members": "Member",
        "etcd3.transactions": "Value",
        "etcd3.utils": "to_bytes",
        "etcd3.watch": "Watcher",
    },
    "etcd3gw": {
        "etcd3gw": "client",
        "etcd3gw.client": "Etcd3Client",
        "etcd3gw.exceptions": "Etcd3Exception",
        "etcd3gw.lease": "Lease",
        "etcd3gw.lock": "Lock",
        "etcd3gw.types": "KeyValue",
        "etcd3gw.utils": "_encode",
        "etcd3gw.watch": "Watcher",
    },
    "aetcd": {
        "aetcd": "Client",
        "aetcd.client": "Status",
        "aetcd.exceptions": "ClientError",
        "aetcd.leases": "Lease",
        "aetcd.locks": "Lock",
        "aetcd.members": "Member",
        "aetcd.rpc": "AioRpcError",
        "aetcd.rtypes": "KeyValue",
        "aetcd.transactions": "Value",
        "aetcd.utils": "to_bytes",
        "aetcd.watcher": "Watcher",
    },
}
FUNCTIONS = ("etcd3.client", "etcd3gw.client")  # also modules of these names
NEEDED_BY_THE_OTHERS = ("futurist", "google.protobuf", "grpc", "pbr", "requests", "six", "tenacity", "urllib3")


def run(code: str) -> str:
    """The output of a program, in a process of its own since what is installed stays."""
    # Those modules cannot be imported there: None in their place makes an import fail.
    without = "".join(f"sys.modules[{name!r}] = None; " for name in NEEDED_BY_THE_OTHERS)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {without}\n{code}"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_a_client_can_be_imported_under_its_name(name: str) -> None:
    lines = [f"from etcd_aio.compat import install; install({name!r})"]
    for module, thing in MODULES[name].items():
        lines.append(f"from {module} import {thing}; import {module}")
        lines.append(f"print({thing}.__module__)")
    printed = run("\n".join(lines)).split()
    assert len(printed) == len(MODULES[name])
    assert all(module.startswith(CLIENTS[name]) for module in printed)


@pytest.mark.parametrize("name", MODULES)
def test_submodules_are_attributes_of_the_client_and_no_second_copies(name: str) -> None:
    submodules = [module for module in MODULES[name] if module not in (name, *FUNCTIONS)]
    code = [f"import {CLIENTS[name]} as package; package.install(); package.install(); import {name}"]
    code += [f"import {module}; assert {module} is sys.modules[{module!r}]" for module in submodules]
    code += [f"assert {module}.__name__.startswith({CLIENTS[name]!r})" for module in submodules]
    code += ["print([key for key in sys.modules if key.startswith('NAME._')])".replace("NAME", name)]
    assert run("\n".join(code)).strip() == "[]"


def test_another_client_that_is_imported_already_is_not_replaced() -> None:
    code = """
import types, etcd_aio.compat
sys.modules["etcd3"] = other = types.ModuleType("etcd3")
try:
    etcd_aio.compat.install("etcd3")
except ImportError as error:
    print(error.name, error)
assert sys.modules["etcd3"] is other
"""
    assert run(code).startswith("etcd3 etcd3 is imported already")


def test_an_unknown_name_is_refused_and_nothing_is_installed() -> None:
    with pytest.raises(LookupError, match="no such client: consul; there are aetcd, etcd3, etcd3gw"):
        compat.install("etcd3", "consul")
    assert "etcd3" not in sys.modules


# The runner.

PROGRAM = """
import sys
import beside
import etcd3
assert __name__ == "__main__"
print(sys.argv[1:], beside.NAME, etcd3.Etcd3Client.__module__)
sys.exit(7)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "beside.py").write_text("NAME = 'beside'\n")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    return program


def run_compat(*arguments: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    root = Path(compat.__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-m", "etcd_aio.compat", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        env={"PYTHONPATH": str(root)},
    )


def test_a_program_runs_with_its_arguments_and_the_modules_beside_it(program: Path, tmp_path: Path) -> None:
    done = run_compat("etcd3", "--", "folder/program.py", "--", "-m", "x", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout == "['--', '-m', 'x'] beside etcd_aio.compat.etcd3.client\n"


def test_a_module_runs_as_a_program(program: Path) -> None:
    done = run_compat("etcd3", "--", "-m", "program", "--flag", cwd=program.parent)
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout == "['--flag'] beside etcd_aio.compat.etcd3.client\n"


@pytest.mark.parametrize(
    "arguments",
    [(), ("etcd3",), ("etcd3", "--"), ("--", "program.py"), ("consul", "--", "program.py"), ("etcd3", "--", "-m")],
)
def test_a_mistake_shows_the_usage(arguments: tuple[str, ...]) -> None:
    done = run_compat(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m etcd_aio.compat CLIENT... -- PROGRAM")


def test_help_shows_the_usage() -> None:
    done = run_compat("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "etcd3" in done.stdout
