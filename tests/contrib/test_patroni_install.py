"""contrib/patroni/install.py: Patroni finds the store after the command, and not before; and the page."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from etcd_aio.contrib.patroni.install import NAME, InstallError, install, is_installed, uninstall
from etcd_aio.contrib.patroni.settings import settings_of
from tests.examples.blocks import blocks, read
from tests.examples.paths import ROOT

PAGE = ROOT / "docs" / "pages" / "how-to" / "patroni.md"

CLASSES = "from patroni.dcs import iter_dcs_classes; print([name for name, _ in iter_dcs_classes({'etcd3aio': {}})])"


def test_the_module_is_put_there_and_taken_away(tmp_path: Path) -> None:
    assert not is_installed(tmp_path)
    assert "not there" in uninstall(tmp_path)
    assert "made" in install(tmp_path)
    assert is_installed(tmp_path)
    assert install(tmp_path).endswith("is there")
    assert "removed" in uninstall(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", [b"# mine\n", b"\xff"])
def test_a_module_of_another_hand_is_left_alone(tmp_path: Path, text: bytes) -> None:
    (tmp_path / NAME).write_bytes(text)
    for action in (install, uninstall, is_installed):
        with pytest.raises(InstallError, match="move it away"):
            action(tmp_path)
    assert (tmp_path / NAME).read_bytes() == text


def test_patroni_finds_it(tmp_path: Path) -> None:
    spec = find_spec("patroni")
    assert spec is not None
    assert spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, tmp_path / "patroni")  # that of this environment stays as it is

    def run(*words: str, code: int = 0) -> str:
        environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        done = subprocess.run([sys.executable, *words], env=environ, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout.strip()

    command = ("-m", "etcd_aio.contrib.patroni")
    assert run(*command, "status", code=1).startswith("not installed")
    assert run("-c", CLASSES) == "[]"
    assert str(tmp_path) in run(*command, "install")
    assert run(*command, "status").startswith("installed")
    assert run("-c", CLASSES) == "['etcd3aio']"
    run(*command, "uninstall")
    assert run("-c", CLASSES) == "[]"


def test_the_change_of_patroni_on_the_page_makes_the_command_needless(tmp_path: Path) -> None:
    spec = find_spec("patroni")
    assert spec is not None
    assert spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, tmp_path / "patroni")
    change = next(block.code for block in blocks(read(PAGE)) if "+from" in block.code)
    added, removed = ([line[1:] for line in change.splitlines() if line.startswith(sign)] for sign in "+-")
    loader = tmp_path / "patroni" / "dynamic_loader.py"
    text = loader.read_text()
    assert text.count(removed[0]) == 1
    text = text.replace(removed[0], "\n".join(added[1:]))
    assert text.count("\nimport os\n") == 1
    loader.write_text(text.replace("\nimport os\n", f"\nimport os\n{added[0]}\n"))
    package = tmp_path / "one-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: one\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[patroni.dcs]\netcd3aio = etcd_aio.contrib.patroni.etcd3aio\n")
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", CLASSES], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['etcd3aio']"


def test_the_section_on_the_page() -> None:
    section = yaml.safe_load(next(block.code for block in blocks(read(PAGE)) if block.language == "yaml"))["etcd3aio"]
    settings = settings_of(section)
    assert settings.endpoints == ("https://m1:2379", "https://m2:2379", "https://m3:2379")
    assert settings.cert == "/etc/patroni/patroni.pem"
