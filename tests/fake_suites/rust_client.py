"""The tests of Rust's etcd-client."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.environments import UnavailableError
from tests.fake_suites.steps import Server, copied, play, step, virtualenv

_VERSION: Final = "0.21.1"
_SMALL: Final = {"CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0"}
_LINE: Final = re.compile(r"^test (\w+).* \.\.\. (ok|FAILED|ignored)\b", re.MULTILINE)
# It waits a minute for a member that is to be started meanwhile.
_LEFT_OUT: Final = ("test_cluster",)


class RustClient:
    """See above. They use port 2379, and the user root, who is there before (`inside.py`)."""

    name = "rust"
    members = 1
    flags: Sequence[str] = ("--auth-token-ttl=2",)  # as upstream

    def make(self, cache: Path) -> None:
        if shutil.which("cargo") is None:
            raise UnavailableError("no cargo on PATH")
        folder = cache / self.name
        programs = virtualenv(folder / "protoc", "grpcio-tools>=1.70")
        protoc = folder / "protoc.sh"
        protoc.write_text(f'#!/bin/sh\nexec "{programs / "python"}" -m grpc_tools.protoc "$@"\n')
        protoc.chmod(0o755)
        find = "import grpc_tools, os; print(os.path.dirname(grpc_tools.__file__))"
        include = Path(step([programs / "python", "-c", find]).strip()) / "_proto"
        environ = {**_SMALL, "PROTOC": str(protoc), "PROTOC_INCLUDE": str(include)}
        crate = self._crate(folder, environ)
        words = ["cargo", "test", "--quiet", "--no-run", "--message-format=json", "--test=client", "--test=namespace"]
        built = step([*words, f"--target-dir={folder / 'target'}"], cwd=crate, environ=environ)
        found = [json.loads(line).get("executable") for line in built.splitlines() if line.startswith("{")]
        (folder / "tests.json").write_text(json.dumps([one for one in found if one]))

    def _crate(self, folder: Path, environ: dict[str, str]) -> Path:
        """The crate's source, which cargo gets as a dependency of an empty one."""
        crate = folder / f"etcd-client-{_VERSION}"
        if not crate.exists():
            user = folder / "user"
            shutil.rmtree(user, ignore_errors=True)
            step(["cargo", "init", "--quiet", "--vcs=none", "--name=user", user], environ=environ)
            step(["cargo", "add", "--quiet", f"etcd-client@={_VERSION}"], cwd=user, environ=environ)
            packages = json.loads(step(["cargo", "metadata", "--format-version=1"], cwd=user, environ=environ))
            (manifest,) = (one["manifest_path"] for one in packages["packages"] if one["name"] == "etcd-client")
            copied(Path(manifest).parent, crate)
        return crate

    def run(self, cache: Path, server: Server, log: Path) -> dict[str, str]:
        outcomes: dict[str, str] = {}
        skips = [word for name in _LEFT_OUT for word in ("--skip", name)]
        for program in json.loads((cache / self.name / "tests.json").read_text()):
            said = play([program, "--include-ignored", *skips], log)
            outcomes |= parsed(said)
        return outcomes


def parsed(said: str) -> dict[str, str]:
    """The outcomes in the output of Rust's test runner."""
    words = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
    return {name: words[word] for name, word in _LINE.findall(said)}
