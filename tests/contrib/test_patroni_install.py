"""contrib/patroni/{install,__main__}.py: Patroni finds the store after the command, and not before."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from etcd_aio.contrib.patroni.install import NAME, InstallError, install, is_installed, uninstall
from tests.examples.paths import ROOT

CLASSES = "from patroni.dcs import iter_dcs_classes; print([name for name, _ in iter_dcs_classes({'etcd3aio': {}})])"


def test_the_module_is_put_there_and_taken_away(tmp_path: Path) -> None:
    assert not is_installed(tmp_path)
    assert "not there" in uninstall(tmp_path)
    assert "made" in install(tmp_path)
    assert is_installed(tmp_path)
    assert install(tmp_path).endswith("is there")
    assert "removed" in uninstall(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_module_of_another_hand_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("# mine\n")
    for action in (install, uninstall, is_installed):
        with pytest.raises(InstallError, match="move it away"):
            action(tmp_path)
    assert (tmp_path / NAME).read_text() == "# mine\n"


def test_patroni_finds_it(tmp_path: Path) -> None:
    spec = find_spec("patroni")
    assert spec is not None
    assert spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, tmp_path / "patroni")  # that of this environment stays as it is

    def run(*words: str) -> str:
        environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        done = subprocess.run(
            [sys.executable, *words], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    command = ("-m", "etcd_aio.contrib.patroni")
    assert run(*command, "status").startswith("not installed")
    assert run("-c", CLASSES) == "[]"
    assert str(tmp_path) in run(*command, "install")
    assert run(*command, "status").startswith("installed")
    assert run("-c", CLASSES) == "['etcd3aio']"
    run(*command, "uninstall")
    assert run("-c", CLASSES) == "[]"
