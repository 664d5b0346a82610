"""The compatibility runner: what it chooses, what it counts, and when it is content."""

import os
import subprocess
from pathlib import Path

import pytest

from etcd_aio import methods
from etcd_aio.testing import EtcdBinary
from etcd_aio.testing.binaries import fits
from etcd_aio.testing.build import RELEASED, UPCOMING
from tests import compat
from tests.compat import Outcome, choose, counted, main, table

BINARIES = [EtcdBinary(Path(f"/{version}"), version, "cache") for version in ("3.7.3", "3.5.9", "3.5.35", "3.4.25")]
REPORT = """<testsuites><testsuite>
<testcase classname="a" name="1"/>
<testcase classname="a" name="2"><skipped type="pytest.skip" message="needs etcd 3.7"/></testcase>
<testcase classname="a" name="3"><failure message="no">no</failure></testcase>
<testcase classname="a" name="4"><failure message="at first">no</failure></testcase>
<testcase classname="a" name="4"/>
<testcase classname="a" name="5"><error message="no">no</error></testcase>
</testsuite></testsuites>"""


def test_the_newest_patch_of_a_version_is_chosen() -> None:
    assert choose("3.5", BINARIES) is BINARIES[2]
    assert choose("3.5.9", BINARIES) is BINARIES[1]
    assert choose("3.6", BINARIES) is None


def test_a_report_is_counted_as_it_ended(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert counted(report) == (0, 0, 0)
    report.write_text(REPORT)
    assert counted(report) == (2, 2, 1)


def test_the_table_says_all_and_what_is_missing() -> None:
    lines = table(
        [Outcome("3.4", BINARIES[3], 10, 1, 2, 90.0, 1), Outcome("3.6"), Outcome("3.7", BINARIES[0], 1, 0, 0, 60.0, 2)]
    )
    assert [line.split() for line in lines.splitlines()] == [
        ["etcd", "where", "from", "passed", "failed", "skipped", "minutes"],
        ["3.4.25", "/3.4.25", "(cache)", "10", "1", "2", "1.5"],
        ["3.6", "not", "found:", "`nox", "-s", "servers`", "says", "why"],
        ["3.7.3", "/3.7.3", "(cache)", "(pytest", "ended", "with", "2)", "1", "0", "0", "1.0"],
    ]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What pytest was run on, and with which arguments; on etcd 3.5 it fails."""
    found: list[tuple[str, list[str]]] = []

    def fake(command: list[str], *, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        report = Path(command[4].removeprefix("--junitxml="))
        report.write_text(
            REPORT if "3.5" in env["ETCD_AIO_TEST_ETCD"] else '<testsuite><testcase name="1"/></testsuite>'
        )
        found.append((env["ETCD_AIO_TEST_ETCD"], command[9:]))
        return subprocess.CompletedProcess(command, int("3.5" in env["ETCD_AIO_TEST_ETCD"]))

    monkeypatch.setenv("ETCD_AIO_TEST_ETCD", "/somewhere")
    monkeypatch.setattr(compat, "available_etcds", lambda: tuple(BINARIES))
    monkeypatch.setattr(subprocess, "run", fake)
    return found


def test_every_version_is_run_and_one_that_is_not_found_is_only_told(
    runs: list[tuple[str, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 1
    assert runs == [("/3.4.25", []), ("/3.5.35", []), ("/3.7.3", [])]
    told = capsys.readouterr().out
    assert "3.6     not found" in told
    assert "3.8     not found" in told, "it is optional"
    assert "ETCD_AIO_TEST_ETCD" not in os.environ


def test_a_pre_release_of_the_next_version_runs_where_it_is_found(
    runs: list[tuple[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = EtcdBinary(Path("/3.8.0-alpha.0"), "3.8.0-alpha.0", "cache")
    monkeypatch.setattr(compat, "available_etcds", lambda: (BINARIES[0], newest))
    assert main([]) == 0
    assert runs == [("/3.7.3", []), ("/3.8.0-alpha.0", [])]
    assert fits(compat.NEXT, UPCOMING)


def test_without_a_failure_it_is_content(runs: list[tuple[str, list[str]]]) -> None:
    assert main(["3.4", "3.7", "--", "-k", "watch"]) == 0
    assert runs == [("/3.4.25", ["-k", "watch"]), ("/3.7.3", ["-k", "watch"])]


@pytest.mark.parametrize("versions", [["3.5"], ["3.4", "3.6"], ["3.6"]])
def test_a_failure_or_a_version_that_was_asked_for_and_is_not_there_fails(
    runs: list[tuple[str, list[str]]], versions: list[str]
) -> None:
    assert main(versions) == 1


def test_the_page_about_versions_speaks_of_those_that_are_tested() -> None:
    page = (compat.ROOT / "docs" / "pages" / "compatibility.md").read_text()
    assert f"| tested with | {' | '.join(reversed(RELEASED))} |" in page
    assert [one.rpartition(".")[0] for one in reversed(RELEASED)] == list(compat.SUPPORTED)
    assert {method.since for method in methods.ALL if method.since} < set(compat.SUPPORTED)
