"""etcd's common tests, which it runs on etcdctl too: those that need neither flags of etcd nor control of processes.

They are compiled with `etcdctl/servers_test.go` in place of the file that starts etcd, and with longer limits for whole
tests, since the machine may be busy.
"""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.environments import GoProgram, UnavailableError
from tests.fake_suites.steps import HERE, Server, copied, play, step

_MODULE: Final = "go.etcd.io/etcd/tests/v3"
_VERSION: Final = "v3.7.3"
_GO: Final = {"GOFLAGS": "-mod=mod", "GOWORK": "off"}
_LIMIT: Final = re.compile(r"(context\.WithTimeout\(t\.Context\(\)), (\d+\*time\.Second)\)")
_LINE: Final = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+) \(", re.MULTILINE)


class EtcdctlTests:
    """See above. Each test function has a process of its own."""

    name = "etcdctl"
    members = 0  # each test starts its own
    flags: Sequence[str] = ()

    def make(self, cache: Path) -> None:
        if shutil.which("go") is None:
            raise UnavailableError("no Go toolchain on PATH")
        folder = cache / self.name
        module, source = folder / "module", folder / "source"
        module.mkdir(parents=True, exist_ok=True)
        # The `replace` lines of its go.mod do not count in another module.
        (module / "go.mod").write_text(
            f"module tests\n\ngo 1.26.0\n\nrequire {_MODULE} {_VERSION}\n\nreplace {_MODULE} => {source}\n"
        )
        if not source.exists():
            words = ["go", "mod", "download", "-json", f"{_MODULE}@{_VERSION}"]
            copied(Path(json.loads(step(words, cwd=folder, environ=_GO))["Dir"]), source)
        for path in (source / "common").glob("*_test.go"):
            path.write_text(_LIMIT.sub(r"\1, 6*(\2))", path.read_text()))
        shutil.copyfile(HERE / "etcdctl" / "servers_test.go", source / "common" / "e2e_test.go")
        words = ["go", "test", "-c", "-tags=e2e", "-o", f"{folder / 'common.test'}", f"{_MODULE}/common"]
        step(words, cwd=module, environ=_GO)
        (etcdctl,) = GoProgram("tests/support/etcdctl").prepare(cache)
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin" / "etcdctl").unlink(missing_ok=True)
        (folder / "bin" / "etcdctl").symlink_to(etcdctl)

    def run(self, cache: Path, server: Server, log: Path) -> dict[str, str]:
        folder = cache / self.name
        program, working = folder / "common.test", folder / "source" / "common"
        names = step([program, "-test.list=^Test"], cwd=working).split()
        environ = {"SERVER": "\n".join(map(str, server.command))}
        outcomes: dict[str, str] = {}
        for name in names:
            words = [f"-test.run=^{name}$", "-test.v", "-test.timeout=300s", f"-bin-dir={folder / 'bin'}"]
            said = play([program, *words], log, cwd=working, environ=environ)
            outcomes |= parsed(said) or {name: "failed"}
        return outcomes


def parsed(said: str) -> dict[str, str]:
    """The outcomes in the output of Go's tests: those of the innermost, each by its whole name."""
    words = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
    found = {name: words[word] for word, name in _LINE.findall(said)}
    return {name: outcome for name, outcome in found.items() if not any(one.startswith(f"{name}/") for one in found)}
