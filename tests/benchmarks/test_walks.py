"""The walks of a put and of an event: the script runs on a real server and counts by package."""

import subprocess
import sys
from pathlib import Path

from benchmarks.walks import Step, table

ROOT = Path(__file__).parents[2]


def test_calls_resumptions_and_files_are_counted_by_package() -> None:
    steps = (Step("kv/calls", "put", False), Step("kv/calls", "do", False), Step("watch/state", "take", True))
    rows = [line.split() for line in table({"put": steps[:2], "event": steps}).splitlines()]
    assert rows == [
        ["put", "calls", "put", "resumed", "put", "files", "event", "calls", "event", "resumed", "event", "files"],
        ["kv", "2", "0", "1", "2", "0", "1"],
        ["watch", "0", "0", "0", "0", "1", "1"],
        ["total", "2", "0", "1", "2", "1", "2"],
    ]


def test_the_script_lists_both_walks_from_end_to_end() -> None:
    command = [sys.executable, "-m", "benchmarks.walks", "--list"]
    lines = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    put, event = lines.index("put:"), lines.index("event:")
    assert lines[put + 1].split() == ["calls/keys", "KeyCalls.put"]
    assert lines[event + 1].split() == ["transport/native/connection", "NativeConnection.data_received"]
    assert any("Invoker.unary" in line for line in lines[put:event])
    assert any("Watcher" in line for line in lines[event:])
    assert lines[-1].startswith("total ")
