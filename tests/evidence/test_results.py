"""Results are kept by report, so that a run can go on where another one has ended."""

from pathlib import Path

from tests.evidence.results import add, known, read, total, totals, write

RIGHT = {"release": "3.7.3", "seed": 2, "broken": [], "operations": 5, "faults": {"kill": 1}}
WRONG = {"release": "3.7.3", "seed": 10, "broken": ["watches"], "operations": 7, "faults": {"kill": 2, "cut": 1}}


def test_a_report_replaces_the_one_of_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "some" / "results.json"
    assert read(path) == {"runs": [], "sabotages": []}
    for line in (WRONG, RIGHT, {**WRONG, "broken": []}):
        add(path, "runs", line, ("release", "seed"))
    runs = read(path)["runs"]
    assert [(run["seed"], run["broken"]) for run in runs] == [(2, []), (10, [])]


def test_only_what_was_judged_right_is_known(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write({"runs": [RIGHT, WRONG], "sabotages": []}, path)
    assert known(read(path)) == {("3.7.3", 2)}


def test_sums() -> None:
    assert total([RIGHT, WRONG], "operations") == 12
    assert totals([RIGHT, WRONG], "faults") == {"kill": 3, "cut": 1}
