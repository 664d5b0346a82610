"""The run of etcd's own tests of etcdctl: which limits are wider, what the output says, what is a deviation."""

from pathlib import Path

import pytest

from tests.etcdctl_suite import run
from tests.etcdctl_suite.build import RELEASES, BuildError, build
from tests.etcdctl_suite.deviations import KNOWN, MAY_PASS, REMOVED
from tests.etcdctl_suite.limits import FACTOR, LEASE_FACTOR, PAUSE_FACTOR, widen, widen_all
from tests.etcdctl_suite.outcomes import Comparison, Outcome, counts, outcome_of, table


@pytest.mark.parametrize(
    ("line", "limit", "factor"),
    [
        ("\tctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)", "10*time.Second", FACTOR),
        ("\t\twatchTimeout := 1 * time.Second", "1 * time.Second", FACTOR),
        ("\t\tif err := CheckAfterTest(1 * time.Second); err != nil {", "1 * time.Second", FACTOR),
        ("\terr = CloseWithTimeout(holder, 2*time.Millisecond+time.Second)", "2*time.Millisecond+time.Second", FACTOR),
        ("\ttestutils.ExecuteWithTimeout(t, 5*time.Second, func() {", "5*time.Second", FACTOR),
        ("\t\t\t}, 2*time.Second, 10*time.Millisecond)", "2*time.Second", FACTOR),
        ('\tcase <-time.After(2 * time.Second):\n\t\tcx.t.Fatalf("timed out locking")', "2 * time.Second", FACTOR),
        ("\tleaseID, err := ctlV3LeaseGrant(cx, 10)", "10", FACTOR),
        ("\treturn timeout", "timeout", FACTOR),
        ("\tresp, err := cc.Grant(ctx, 10)", "10", LEASE_FACTOR),
        ("\tcase <-time.After(100 * time.Millisecond):\n\tcase <-ch:\n", "100 * time.Millisecond", PAUSE_FACTOR),
    ],
)
def test_limits_are_multiplied(line: str, limit: str, factor: int) -> None:
    assert widen(line) == line.replace(limit, f"{factor}*({limit})", 1)


@pytest.mark.parametrize(
    "line",
    [
        "\tcase <-time.After(100 * time.Millisecond):\n\t\tcontinue",
        '\tcase <-time.After(timeout):\n\t\ttestutil.FatalStack(t, fmt.Sprintf("test timed out after %v", timeout))',
        "\ttime.Sleep(3 * time.Second)",
        "\tresp, err := cc.Grant(ctx, 90)",
        "\tctx, cancel := context.WithTimeout(t.Context(), watchTimeout*5)",
    ],
)
def test_what_is_no_limit_stays(line: str) -> None:
    assert widen(line) == line


def test_pauses_for_the_end_of_a_lease_are_as_much_longer_as_its_ttl() -> None:
    source = "".join(
        f"func {name}() {{\n\tlease := cc.Grant(ctx, {ttl})\n\ttime.Sleep(3 * time.Second)\n}}\n"
        for name, ttl in (("short", 2), ("long", 60))
    )
    wider = source.replace("Grant(ctx, 2)", f"Grant(ctx, {LEASE_FACTOR}*(2))")
    wider = wider.replace("Sleep(3 * time.Second)", f"Sleep({LEASE_FACTOR}*(3 * time.Second))", 1)
    assert widen(source) == wider


def test_only_some_files_are_widened(tmp_path: Path) -> None:
    text = "\treturn timeout\n"
    for name in ("e2e/ctl_v3_test.go", "e2e/metrics_test.go", "common/kv_test.go"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    widen_all(tmp_path, "e2e/ctl_v3*_test.go", "common/*_test.go")
    assert (tmp_path / "e2e/metrics_test.go").read_text() == text
    assert (tmp_path / "e2e/ctl_v3_test.go").read_text() == (tmp_path / "common/kv_test.go").read_text() != text


OUTPUT = """\
=== RUN   TestA
=== RUN   TestA/one
noise without an end of line--- FAIL: TestA (1.25s)
    --- FAIL: TestA/one (0.50s)
    --- PASS: TestA/two (0.75s)
"""


def test_the_outcome_of_a_test_is_in_its_output() -> None:
    assert outcome_of("TestA", OUTPUT) == Outcome("failed", 1.25, ("TestA/one",))
    assert outcome_of("TestB", "--- SKIP: TestB (0.00s)\n") == Outcome("skipped")
    assert outcome_of("TestB", "--- PASS: TestBC (1.00s)\npanic: test timed out\n") == Outcome("failed")


def compared(ours: str, theirs: str, known: str = "") -> Comparison:
    kinds = {"p": "passed", "f": "failed", "s": "skipped"}
    return Comparison(
        {"T": known} if known else {},
        {"T": Outcome(kinds[ours])},  # type: ignore[arg-type]
        {"T": Outcome(kinds[theirs])} if theirs else {},  # type: ignore[arg-type]
    )


def test_a_deviation_is_what_etcdctl_passes_and_etcd_aio_does_not() -> None:
    assert compared("f", "p").unknown() == ["T"]
    assert compared("s", "p").unknown() == ["T"]
    assert compared("f", "p", "a reason").unknown() == []
    assert compared("f", "p", "a reason").deviations() == {"T": "a reason"}
    assert compared("f", "f").deviations() == {}
    assert compared("p", "").deviations() == {}
    assert compared("p", "", "a reason").outdated() == ["T"]
    (timed,) = MAY_PASS
    assert Comparison({timed: "a reason"}, {timed: Outcome("passed")}).outdated() == []


def test_the_table_has_a_line_for_each_program() -> None:
    outcomes = {"A": Outcome("passed", 30), "B": Outcome("skipped", 30)}
    lines = table([("3.7.3", "e2e", "etcd-aio", *counts(outcomes))]).splitlines()
    assert lines[1].split() == ["3.7.3", "e2e", "etcd-aio", "1", "0", "1", "1.0"]


def test_at_most_ten_deviations_are_known_each_with_a_reason() -> None:
    assert KNOWN.keys() == RELEASES.keys()
    for reasons in KNOWN.values():
        assert all(reasons.values())
        assert len([reason for reason in reasons.values() if reason != REMOVED]) <= 10
    assert all(any(test in reasons for reasons in KNOWN.values()) for test in MAY_PASS)


def test_without_go_the_run_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="no Go toolchain"):
        build("3.7", tmp_path)
    assert run.main([]) == 0
    assert capsys.readouterr().out == "skipped etcd 3.7: there is no Go toolchain on PATH\n"
