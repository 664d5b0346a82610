"""The examples of etcd's Go client, each in a process of its own: those that fail end theirs."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.environments import UnavailableError
from tests.fake_suites.steps import HERE, Server, play, step

_MODULE: Final = "go.etcd.io/etcd/tests/v3@v3.7.3"
_EXAMPLES: Final = "integration/clientv3/examples"
_GO: Final = {"GOFLAGS": "-mod=mod", "GOWORK": "off"}


class GoExamples:
    """See above. The examples are compiled with a `main_test.go` that takes endpoints instead of starting a cluster."""

    name = "go-examples"
    members = 3
    flags: Sequence[str] = ("--watch-progress-notify-interval=200ms", "--strict-reconfig-check=false")  # as upstream

    def make(self, cache: Path) -> None:
        if shutil.which("go") is None:
            raise UnavailableError("no Go toolchain on PATH")
        folder = cache / self.name
        shutil.copytree(HERE / "goexamples", folder, dirs_exist_ok=True)
        source = json.loads(step(["go", "mod", "download", "-json", _MODULE], cwd=folder, environ=_GO))["Dir"]
        for path in (Path(source) / _EXAMPLES).glob("example_*_test.go"):
            (folder / path.name).write_bytes(path.read_bytes())
        step(["go", "test", "-c", "-o", folder / "examples", "."], cwd=folder, environ=_GO)

    def run(self, cache: Path, server: Server, log: Path) -> dict[str, str]:
        program = cache / self.name / "examples"
        names = step([program, "-test.list", "^Example"]).split()
        # Those that change the cluster come last.
        names.sort(key=lambda name: bool(re.search("member(Add|Remove|Update)", name)))
        outcomes = {}
        for name in names:
            words = [f"-test.run=^{name}$", "-test.v", "-test.timeout=60s"]
            said = play([program, *words], log, environ={"ENDPOINTS": ",".join(server.endpoints)})
            outcomes[name] = "passed" if f"--- PASS: {name} " in said else "failed"
        return outcomes
