"""The page about tooz: its program runs, by the entry point, and prints what the page says."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from etcd_aio.testing import EtcdServer
from tests.examples.blocks import python_blocks, read
from tests.examples.paths import PAGES, ROOT

(PROGRAM,) = python_blocks(read(PAGES / "how-to" / "tooz.md"))


def put_entry_points(folder: Path) -> None:
    """Make a folder for PYTHONPATH that is like an installation of this checkout, as to its entry points."""
    metadata = folder / "etcd_aio-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: etcd-aio\nVersion: 0\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [line for group, names in groups.items() for line in (f"[{group}]", *map(" = ".join, names.items()))]
    (metadata / "entry_points.txt").write_text("\n".join(lines))


@pytest.mark.cluster
def test_the_program_prints_what_the_page_says(tmp_path: Path) -> None:
    put_entry_points(tmp_path)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer()) as server:
        program = tmp_path / "coordinator.py"
        program.write_text(PROGRAM.code.replace("127.0.0.1:2379", server.endpoint.removeprefix("http://")))
        run = subprocess.run(
            [sys.executable, program],
            env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert run.returncode == 0, run.stderr
    assert run.stdout == PROGRAM.prints
