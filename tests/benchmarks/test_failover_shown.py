"""The result file, the tables and the picture."""

import io
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from benchmarks.failover import plot, record, table
from benchmarks.failover.account import Call, Marks, Outage, buckets, summary
from benchmarks.failover.faults import FAULTS, Operation
from benchmarks.failover.record import Run, Setting

SETTING = Setting("2030-01-01", "some CPU", 2, "some system", "3.7.3", 500.0, 5.0, {"go": {"go": "1.26"}})


def run(client: str, lasted: float, operation: Operation = "get", fault: str = "freeze-leader") -> Run:
    marks = Marks(2.0, 7.0)
    calls = [
        Call(0.01 * number, 0.0, 3.0 if 200 <= number <= 200 + 100 * lasted else 0.001, "ok", member=number % 3 + 1)
        for number in range(1000)
    ]
    calls.append(Call(2.0, 0.0, 5.0, "EtcdTimeoutError", True))
    servers = Outage(1.25, 1.5, None, None)
    picture = buckets(calls, 10.0)
    states = [[0.1, "http://a:1", "READY"]]
    return Run(fault, operation, client, 10.0, marks, summary(calls, marks), servers, None, picture, states)


RUNS = [
    run("etcd_aio", 1.3),
    run("etcd_aio", 1.4),
    run("etcd_aio", 3.0),
    run("go", 4.7),
    run("go", 0.0, "put"),
    Run("slow-link-p2c", "get", "etcd_aio", left_out="no such policy"),
]


def test_a_result_file_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    record.write(path, SETTING, RUNS)
    setting, runs = record.read(path)
    assert setting == SETTING
    assert [(one.client, one.operation, one.left_out) for one in runs] == [
        (one.client, one.operation, one.left_out) for one in RUNS
    ]
    found = runs[0].found
    assert found is not None
    assert found.recovery == pytest.approx(1.3)
    assert runs[0].servers == RUNS[0].servers
    assert runs[0].buckets == RUNS[0].buckets
    assert len(path.read_text().splitlines()) < 40, "a line for each run"


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"format": 99}')
    with pytest.raises(ValueError, match="no result"):
        record.read(path)


def test_tables_show_every_repetition_and_each_violated_limit() -> None:
    out = io.StringIO()
    table.show(Console(file=out, width=400), SETTING, RUNS)
    text = out.getvalue()
    assert "1.30…3.00" in text
    assert "recovery 3.00 > 1.46" in text
    assert "left out: slow-link-p2c, get, etcd_aio: no such policy" in text
    assert "errors: freeze-leader, get, etcd_aio: 3 EtcdTimeoutError" in text
    assert "go: go 1.26" in text
    assert "noisy" not in text


def test_a_noisy_machine_is_reported() -> None:
    quiet = RUNS[0]
    assert quiet.found is not None
    noisy = replace(quiet, found=replace(quiet.found, p99_before=0.05))
    out = io.StringIO()
    table.show(Console(file=out, width=400), SETTING, [quiet, noisy])
    assert "noisy machine in 1" in out.getvalue()


def test_the_picture_shows_the_median_repetition() -> None:
    fault = next(fault for fault in FAULTS if fault.name == "freeze-leader")
    found = plot.chosen(RUNS, fault, "get", "etcd_aio")
    assert found is RUNS[1]
    assert plot.chosen(RUNS, fault, "put", "etcd_aio") is None


def test_the_picture_is_well_formed() -> None:
    picture = ElementTree.fromstring(plot.draw(SETTING, RUNS))
    lines = [one for one in picture.iter() if one.tag.endswith("polyline")]
    assert len(lines) == 3, "gets of two clients, puts of one"
    texts = [one.text for one in picture.iter() if one.tag.endswith("text")]
    assert "SIGSTOP the leader: linearizable gets" in texts
