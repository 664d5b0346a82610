"""cli/watch.py: the verb watch: lines of a session, the end of a watch, and what its command inherits."""

import json
from pathlib import Path

import pytest

from etcd_aio.cli.outcome import ExitCode
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

MALFORMED = (
    *("watch", "watch a b --prefix", "foo", "", "watch --rev=2 -- w1", "watch a --wrong", 'watch "a\\q"', "watch a --"),
    *("watch a --jobs=0", "watch a --env=x", "watch a -w json", "watch -i", "watch a --follow", "watch a --rev=x"),
)


@pytest.mark.parametrize("line", MALFORMED)
async def test_a_malformed_line_is_complained_about_and_the_next_ones_count(
    line: str, fake: FakeEtcd, command: CommandLine
) -> None:
    assert await command("watch", "-i", stdin=f"{line}\nprogress\nlast\n".encode()) == ExitCode.INVALID_INPUT
    first, last, end = command.err.splitlines()
    assert first.startswith(f"Invalid command {line} (")
    assert "Traceback" not in first
    assert last == "Invalid command last (watch and progress supported)"
    assert end == "Error: error reading watch request line: EOF"


async def test_a_watch_of_a_session_that_cannot_begin_is_complained_about(fake: FakeEtcd, command: CommandLine) -> None:
    """Its output names the cluster and the member, which do not answer."""
    with fake.fault("Cluster/MemberList", status="UNAUTHENTICATED", message="no answer today"):
        assert await command("watch", "-i", "-w", "json", stdin=b"watch a\nlast\n") == ExitCode.INVALID_INPUT
    begin, last, _ = command.err.splitlines()
    assert "no answer today" in begin
    assert last.startswith("Invalid command last")


async def test_the_end_of_a_watch_has_a_line_of_json(fake: FakeEtcd, command: CommandLine) -> None:
    fake.load({"a": "1"})
    fake.compact(fake.load({"a": "2"}))
    assert await command("watch", "a", "--rev=1", "-w", "json") == ExitCode.INTERRUPTED
    shown = json.loads(command.out)
    assert (shown["CompactRevision"], shown["Canceled"], shown["Events"]) == (3, True, None)
    assert shown["Header"]["cluster_id"]
    assert "revision" not in shown["Header"]


async def test_a_command_inherits_nothing_of_another_watch(
    fake: FakeEtcd, command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a value with a byte 0 there is only the variable in base64."""
    for name in ("ETCD_WATCH_VALUE", "ETCD_WATCH_KEY", "ETCD_WATCH_OTHER"):
        monkeypatch.setenv(name, "stale")
    fake.load({"a": b"\0"})
    told = tmp_path / "told"
    script = f"env | grep ^ETCD_WATCH_ > {told}; exit 1"  # its failure ends the watch
    assert await command("watch", "a", "--rev=1", "--env=raw", "--", "sh", "-c", script) == 1
    variables = dict(line.split("=", 1) for line in told.read_text().splitlines())
    assert variables["ETCD_WATCH_KEY"] == "a"
    assert variables["ETCD_WATCH_VALUE_B64"] == "AA=="
    assert "stale" not in variables.values()
