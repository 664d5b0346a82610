"""Node's etcd3: its package has no tests, so a program does what its documentation shows, and checks it."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.environments import UnavailableError
from tests.fake_suites.steps import HERE, Server, play, step

_VERSION: Final = "1.1.2"


class NodeClient:
    """See above; the program is `nodeclient/checks.js`."""

    name = "node"
    members = 1
    flags: Sequence[str] = ()

    def make(self, cache: Path) -> None:
        if shutil.which("npm") is None:
            raise UnavailableError("no npm on PATH")
        folder = cache / self.name
        shutil.copytree(HERE / "nodeclient", folder, dirs_exist_ok=True)
        if not (folder / "node_modules" / "etcd3").exists():
            words = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
            step([*words, f"etcd3@{_VERSION}"], cwd=folder)

    def run(self, cache: Path, server: Server, log: Path) -> dict[str, str]:
        return parsed(play(["node", cache / self.name / "checks.js", *server.endpoints], log))


def parsed(said: str) -> dict[str, str]:
    """The outcomes in the lines of the program: "passed NAME", "failed NAME"."""
    lines = [line.split(maxsplit=1) for line in said.splitlines()]
    return {line[1]: line[0] for line in lines if len(line) == 2 and line[0] in ("passed", "failed")}
