"""A short run of the demonstration, and an interrupted one."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.paths import ROOT, Run
from tests.support.interrupts import interruptible

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

DEMO = str(ROOT / "examples" / "demo.py")


def test_every_act_runs_and_every_promise_is_kept(run: Run) -> None:
    # After the death of the leader, the longest call takes the whole timeout of the client, however short the acts are.
    output = run(DEMO, "--seconds", "4")
    for text in ("All three serve", "SIGKILL", "SIGTERM", "SIGSTOP", "the leader, is killed", "All three serve again"):
        assert text in output
    assert output.count("none failed") == 6
    assert re.search(r"[1-9]\d* acknowledged puts: 0 missing, 0 applied twice", output)
    answered = re.findall(r"m\d ([\d,]+)", output.splitlines()[-6])
    assert len(answered) == 3, output
    assert "0" not in answered
    assert "Every promise was kept." in output


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_an_interrupt_leaves_no_process_and_no_file_behind(environment: dict[str, str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        interruptible("-X", "dev", "-W", "error", DEMO),
        env=environment | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if "SIGKILL" in line:  # in the middle of the second act
                break
        assert len(_servers(tmp_path)) >= 2, "the members should be running"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    # On a loaded machine asyncio's debug mode also tells of slow steps.
    said = [line for line in errors.splitlines() if not line.startswith("Executing ")]
    assert said == ["interrupted; the members are gone"]
    assert _servers(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def _servers(directory: Path) -> list[str]:
    """The command lines of the servers with their data in `directory`."""
    found = []
    for process in os.scandir("/proc"):
        try:
            command = Path(process.path, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # not a process, or ended meanwhile
            continue
        if f"--data-dir={directory}" in command:
            found.append(command)
    return found
