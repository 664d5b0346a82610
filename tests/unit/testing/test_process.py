"""testing/process.py: a child process: how it is started, told and ended. `sleep` stands in for a server."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_aio.testing import process as module
from etcd_aio.testing.process import ChildProcess


def spawn(tmp_path: Path, *command: str) -> ChildProcess:
    return ChildProcess.spawn(command, environment={"PATH": "/usr/bin:/bin", "X": "y"}, log=tmp_path / "log")


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ChildProcess]:
    child = spawn(tmp_path, "/bin/sleep", "1000")
    yield child
    child.reap(5)
    assert child not in module._alive


@pytest.mark.anyio
async def test_it_writes_into_its_log_and_tells_how_it_ended(tmp_path: Path) -> None:
    child = spawn(tmp_path, "/bin/sh", "-c", "echo $X; echo err >&2; exit 7")
    assert await child.wait(10)
    assert not child.is_running
    assert child.exit_code == 7
    assert child not in module._alive
    assert (tmp_path / "log").read_text() == "y\nerr\n"
    child.kill_now()  # too late, and no harm
    again = spawn(tmp_path, "/bin/sh", "-c", "echo again")
    assert await again.wait(10)
    assert (tmp_path / "log").read_text() == "y\nerr\nagain\n"


@pytest.mark.anyio
async def test_waiting_is_bounded_and_killing_ends_it(sleeper: ChildProcess) -> None:
    assert not await sleeper.wait(0)
    assert sleeper.is_running
    sleeper.kill_now()
    assert await sleeper.wait(10)
    assert sleeper.exit_code == -signal.SIGKILL


@pytest.mark.anyio
async def test_cancelling_a_wait_leaves_the_process_alone(sleeper: ChildProcess) -> None:
    waiting = asyncio.create_task(sleeper.wait(1000))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert sleeper.is_running


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_on_return_from_pause_it_has_stopped(sleeper: ChildProcess) -> None:
    def state() -> str:
        return Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()[0]

    sleeper.pause()
    assert sleeper.is_paused
    assert state() == "T"
    sleeper.resume()
    assert not sleeper.is_paused
    sleeper.pause()
    sleeper.reap(5)
    assert not sleeper.is_paused
    assert not sleeper.is_running


def test_ctrl_c_on_the_tests_does_not_reach_it(sleeper: ChildProcess) -> None:
    assert os.getsid(sleeper.pid) != os.getsid(0)


def test_only_its_own_parent_kills_it_at_exit(sleeper: ChildProcess) -> None:
    sleeper._owner = -1  # as in a forked copy of us
    module._kill_all()
    assert sleeper.is_running
    sleeper._owner = os.getpid()
    module._kill_all()
    assert not sleeper.is_running


def test_what_cannot_be_started_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_launcher", tuple)
    with pytest.raises(FileNotFoundError):
        spawn(tmp_path, "/nonexistent")
