"""The tests of others on `etcd_aio`: the expected outcomes, what the runners print, and what is owed."""

from pathlib import Path

import pytest

from benchmarks.environments import UnavailableError
from tests.outside import run
from tests.outside.expected import Outcome, changed, counts, expected, judged, owed, parsed, read
from tests.outside.python_suite import PythonSuite
from tests.outside.table import SUITES

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.test_a.TestA" name="test_one"/>
<testcase classname=".TestB" name="test_of_an_installed_module"/>
<testcase classname="tests.test_a.TestA" name="test_two"><failure message="no\nvalue"/></testcase>
<testcase classname="tests.test_a.TestA" name="test_three"><skipped message="not here"/></testcase>
<testcase classname="tests.test_a" name="test_four"/>
<testcase classname="tests.test_a" name="test_four"><error message="when its fixture ended"/></testcase>
</testsuite></testsuites>"""

OWN = """# a comment
passed    a.test_one
passed    a.test_two
internals a.test_three  # replaces a stub
failed    a.test_four  # on every server
skipped   a.test_five  # not with this client
"""
PROMISED = "promised  a.test_six  # the own client has no elections\n"

OWED = {
    "etcd3": (82, 75),
    "etcd3gw": (39, 25),
    "aetcd": (63, 59),
    "tooz": (83, 64),
    "tooz-aio": (83, 82),
    "torch": (128, 128),
    "torch-agents": (10, 10),
    "patroni": (64, 64),
}


@pytest.mark.parametrize("suite", SUITES)
def test_each_suite_has_the_outcomes_of_its_own_client(suite: str) -> None:
    file = SUITES[suite].expected
    baseline = expected(file)
    assert (len(baseline), len(owed(baseline))) == OWED[file]


def test_the_outcomes_of_a_report_have_reasons() -> None:
    assert parsed(JUNIT, "tests") == {
        "test_a.TestA.test_one": Outcome("passed"),
        "TestB.test_of_an_installed_module": Outcome("passed"),
        "test_a.TestA.test_two": Outcome("failed", "no value"),
        "test_a.TestA.test_three": Outcome("skipped", "not here"),
        "test_a.test_four": Outcome("failed", "when its fixture ended"),
    }


@pytest.mark.parametrize("line", ["failed a.test", "internals a.test", "unknown a.test  # why"])
def test_a_test_that_is_not_owed_needs_a_reason(line: str) -> None:
    with pytest.raises(ValueError, match="a word, a test and a reason"):
        read(line)


def test_a_test_that_the_own_client_skips_may_be_owed() -> None:
    baseline = read(OWN + PROMISED)
    assert owed(baseline) == ["a.test_one", "a.test_two", "a.test_six"]
    assert counts(baseline) == "3 passed, 1 failed, 2 skipped"
    own = {**read(OWN), "a.test_three": Outcome("passed"), "a.test_six": Outcome("skipped")}
    assert changed(baseline, own) == []
    assert judged(baseline, {"a.test_six": Outcome("skipped", "why")}).missing["a.test_six"] == Outcome(
        "skipped", "why"
    )


def test_what_passes_with_the_own_client_is_owed_and_a_skip_is_no_success() -> None:
    baseline = read(OWN)
    assert counts(baseline) == "3 passed, 1 failed, 1 skipped"
    whole = {"a.test_one": Outcome("passed"), "a.test_two": Outcome("passed")}
    assert judged(baseline, whole).lines() == ["2 of 2 owed, 0 beyond"]
    outcomes = {"a.test_two": Outcome("skipped", "no"), "a.test_three": Outcome("passed"), "b": Outcome("passed")}
    assert judged(baseline, outcomes).lines() == [
        "OWED: a.test_one: failed: the test did not run",
        "OWED: a.test_two: skipped: no",
        "beyond: a.test_three",
        "beyond: b",
        "0 of 2 owed, 2 beyond",
    ]


def test_another_outcome_of_the_own_client_is_told() -> None:
    baseline = read(OWN)
    same = {name: Outcome("passed" if one.word == "internals" else one.word) for name, one in baseline.items()}
    assert changed(baseline, same) == []
    del same["a.test_one"]
    same["a.test_four"] = Outcome("passed")
    same["a.test_two"] = Outcome("failed", "it is late")
    assert changed(baseline, same) == [
        "CHANGED: a.test_four: failed, now passed",
        "CHANGED: a.test_one: passed, now missing",
        "CHANGED: a.test_two: passed, now failed it is late",
    ]


def test_a_report_says_how_many_passed_beside_the_own_client(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ETCD_AIO_CACHE", f"{tmp_path}")
    monkeypatch.setattr(run, "outcomes_of", all_passed)
    assert run.main(["aetcd"]) == 0
    first, second, *beyond, last = capsys.readouterr().out.splitlines()
    assert first == "aetcd: 63 passed, 0 failed, 0 skipped with etcd_aio; 0 s"
    assert second == "aetcd: 63 passed, 0 failed, 0 skipped with its own client"
    assert len(beyond) == 4
    assert last == "  59 of 59 owed, 4 beyond"
    assert run.main(["aetcd", "--own"]) == 0
    assert capsys.readouterr().out == "aetcd: 63 passed, 0 failed, 0 skipped with its own client; 0 s\n"


def test_of_a_run_of_some_tests_the_others_are_not_owed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ETCD_AIO_CACHE", f"{tmp_path}")
    monkeypatch.setattr(run, "outcomes_of", lambda *_: {"integration.test_auth.test_auth": Outcome("passed")})
    assert run.main(["aetcd", "--", "-k", "auth"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "  1 of 1 owed, 0 beyond"
    assert run.main(["aetcd", "--own", "--", "-k", "auth"]) == 0


def all_passed(name: str, *_: object) -> dict[str, Outcome]:
    return dict.fromkeys(expected(name), Outcome("passed"))


def test_a_run_that_breaks_off_is_a_failure_and_a_suite_that_cannot_be_had_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ETCD_AIO_CACHE", f"{tmp_path}")
    monkeypatch.setattr(PythonSuite, "make", lambda *_: None)
    monkeypatch.setattr(run, "_SECONDS", 0.0)
    assert run.main(["etcd3"]) == 1
    assert capsys.readouterr().out.startswith("FAILED etcd3: the run has no end; see ")
    monkeypatch.setattr(PythonSuite, "make", unavailable)
    assert run.main(["etcd3"]) == 0
    assert capsys.readouterr().out == "SKIPPED etcd3: no network\n"


def unavailable(*_: object) -> None:
    raise UnavailableError("no network")
