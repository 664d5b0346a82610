"""cli/completion.py: scripts that the shells load, and words: verbs, flags, contexts, keys."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from etcd_aio.cli import completion
from etcd_aio.cli.program import program
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine
from tests.support.command_line import ROOT

# In a shell, what stands before the cursor is completed to this.
ASKS = {
    "bash": "source {script}; COMP_WORDS=(x endp); COMP_CWORD=1; _etcd_aio_completion etcd-aio; echo ${{COMPREPLY[@]}}",
    "zsh": "autoload -U compinit; compinit -uD; source {script}; whence -w _etcd_aio_completion",
    "fish": "source {script}; complete -C 'etcd-aio endp'",
}


def completed(*words: str) -> list[str]:
    *before, incomplete = words
    found = ShellComplete(program(), {}, "etcd-aio", "_X").get_completions(before, incomplete)
    return [item.value for item in found]


def test_verbs_and_flags_are_completed_without_the_verbs_being_imported() -> None:
    assert completed("en") == ["endpoint"]
    assert completed("endpoint", "h") == ["health", "hashkv"]
    assert completed("lease", "grant", "--endp") == ["--endpoints"]
    assert completed("get", "--order=ASCEND", "--pr") == ["--prefix", "--print-value-only", "--proxy"]
    assert completed("completion", "z") == ["zsh"]
    assert completed("watch", "a", "--", "x") == []


async def _served(fake: FakeEtcd) -> list[list[str]]:
    async with fake.serve() as endpoint:
        ask = [("--endpoints", endpoint, "get", "app/"), ("get", "--endpoints", endpoint, "app/m")]
        return [await asyncio.to_thread(completed, *words) for words in ask]


@pytest.mark.anyio
async def test_keys_are_completed(fake: FakeEtcd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "_SECONDS", 30.0)
    fake.load({"app/limits": "", "app/mode": "", "app/a b": "", "other": ""})
    assert await _served(fake) == [["app/limits", "app/mode"], ["app/mode"]]


@pytest.mark.parametrize("words", ["--endpoints=127.0.0.1:1", "--context=none", "--user=u", "--endpoints=:::"])
def test_a_failure_completes_nothing_and_says_nothing(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert completed(words, "get", "a") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.anyio
async def test_contexts_are_completed(command: CommandLine) -> None:
    for name in ("prod", "production", "test"):
        assert await command("context", "add", name, "--endpoints=a:1") == 0
    assert completed("context", "use", "prod") == ["prod", "production"]


@pytest.mark.anyio
@pytest.mark.parametrize("shell", ASKS)
async def test_the_script_loads_in_its_shell(shell: str, command: CommandLine, tmp_path: Path) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell}")
    assert await command("completion", shell) == 0
    script, folder = tmp_path / "script", tmp_path / "bin"
    script.write_bytes(command.out)
    folder.mkdir()
    folder.joinpath("etcd-aio").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m etcd_aio "$@"\n')
    folder.joinpath("etcd-aio").chmod(0o755)
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    child = await asyncio.create_subprocess_exec(
        *(found, "-c", ASKS[shell].format(script=script)),
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await child.communicate()
    assert (b"function" if shell == "zsh" else b"endpoint") in out, err


@pytest.mark.anyio
async def test_another_shell_is_refused(command: CommandLine) -> None:
    assert await command("completion", "tcsh") == 128
