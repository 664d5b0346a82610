"""The run of other clients' tests on the fake: the outcomes that runners print, and what counts as a difference."""

from pathlib import Path

import pytest

from tests.fake_suites import etcdctl_tests, node_client, python_clients, run, rust_client
from tests.fake_suites.differences import KNOWN
from tests.fake_suites.run import judged
from tests.fake_suites.steps import Suite
from tests.fake_suites.table import SUITES

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.test_a.TestA" name="test_one"/>
<testcase classname="tests.test_a.TestA" name="test_two"><failure message="no"/></testcase>
<testcase classname="tests.test_a.TestA" name="test_three"><skipped/></testcase>
<testcase classname="tests.test_a" name="test_four"/>
<testcase classname="tests.test_a" name="test_four"><error message="when its fixture ended"/></testcase>
</testsuite></testsuites>"""

GO = """=== RUN   TestA
=== RUN   TestA/One
--- FAIL: TestA (0.10s)
    --- PASS: TestA/One (0.05s)
        --- PASS: TestA/One/x_y (0.02s)
    --- FAIL: TestA/Two (0.05s)
--- SKIP: TestB (0.00s)
FAIL
"""


def test_the_outcomes_of_each_runner() -> None:
    said = (
        "running 3 tests\ntest test_a ... ok\ntest test_b ... FAILED\ntest test_c - slow ... ignored\n\ntest result: no"
    )
    assert rust_client.parsed(said) == {"test_a": "passed", "test_b": "failed", "test_c": "skipped"}
    assert node_client.parsed("passed a\nfailed b\nError: failed\n") == {"a": "passed", "b": "failed"}
    assert etcdctl_tests.parsed(GO) == {
        "TestA/One/x_y": "passed",
        "TestA/Two": "failed",
        "TestB": "skipped",
    }
    assert python_clients.parsed(JUNIT) == {
        "TestA.test_one": "passed",
        "TestA.test_two": "failed",
        "TestA.test_three": "skipped",
        "test_a.test_four": "failed",
    }


def test_what_passes_on_a_real_server_must_pass_on_the_fake_or_be_known() -> None:
    real = {"a": "passed", "b": "passed", "c": "failed", "d": "passed"}
    assert judged(real, {"a": "passed", "b": "failed", "c": "failed", "d": "passed"}, {"b": "a reason"}) == []
    missing, outdated = judged(real, {"a": "passed", "b": "passed", "c": "failed"}, {"b": "a reason"})
    assert missing == "DIFFERS: d: passed on the real server, missing on the fake"
    assert outdated.startswith("OUTDATED: b: ")
    assert (
        judged({"a/1": "passed", "a/2": "passed", "b": "passed"}, {"a/1": "failed", "b": "passed"}, {"a/": "no"}) == []
    )
    (outdated,) = judged(real, real, {"gone": "a reason"})
    assert outdated.startswith("OUTDATED: gone: ")


def test_a_suite_of_which_nothing_passes_on_the_real_server_proves_nothing() -> None:
    assert judged({}, {}, {}) == judged({"a": "failed"}, {}, {}) == ["nothing has passed on the real server"]


def test_a_run_that_breaks_off_is_a_failure_and_the_next_suite_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ETCD_AIO_CACHE", f"{tmp_path}")
    monkeypatch.setattr(node_client.NodeClient, "make", lambda *_: None)
    monkeypatch.setattr(rust_client.RustClient, "make", lambda *_: None)
    monkeypatch.setattr(run, "outcomes_of", broken)
    assert run.main(["node", "rust"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "FAILED node: on the real server",
        "FAILED rust: on the real server",
    ]


def broken(suite: Suite, server: str, folder: Path) -> dict[str, str]:
    raise run.RunError(f"on the {server} server")


def test_differences_are_of_suites_that_exist() -> None:
    assert set(KNOWN) <= set(SUITES)


def test_a_suite_that_cannot_be_had_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("ETCD_AIO_CACHE", f"{tmp_path}")
    assert run.main(["go-examples", "rust", "node"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "SKIPPED go-examples: no Go toolchain on PATH",
        "SKIPPED rust: no cargo on PATH",
        "SKIPPED node: no npm on PATH",
    ]
