"""The fleet's account: which storms grew, and a small fleet on real members."""

import json
import subprocess
import sys
from math import inf
from pathlib import Path

import pytest

from benchmarks.fleet.account import Answer, Growth, growths, summary

ROOT = Path(__file__).parents[2]


def answer(*rates: float, served: int = 4, seconds: float = 9.0) -> Answer:
    """A process that sends Authenticates at these rates, each for the same part of the time."""
    samples, sent = [[0.0, 0.0, 0.0, 0.0]], 0.0
    for number, rate in enumerate(rates, start=1):
        sent += rate * seconds / len(rates)
        samples.append([seconds * number / len(rates), sent, 0.0, 0.0])
    return Answer([1.0 + number for number in range(served)], {"EtcdTimeoutError": 2}, 7, 0.4, samples)


def test_demand_that_falls_or_stays_is_no_storm() -> None:
    assert growths("back", [answer(8, 4, 0)], 4, 0.0, 9.0) == []
    assert growths("back", [answer(8, 4, 8)], 4, 0.0, 9.0) == []


def test_demand_that_grows_is_a_storm() -> None:
    assert growths("back", [answer(4, 4, 8)], 4, 0.0, 9.0) == [Growth("back", "Authenticates", 1.0, 2.0)]


def test_what_each_client_needs_once_may_come_late() -> None:
    assert growths("back", [answer(0, 0, 1.5)], 4, 0.0, 9.0) == []
    assert growths("back", [answer(0, 0, 1.7)], 4, 0.0, 9.0) != []


def test_a_short_wait_has_no_thirds() -> None:
    assert growths("back", [answer(4, 4, 8)], 4, 0.0, 2.9) == []


def test_what_grows_when_members_come_back_is_judged_from_then_on() -> None:
    answers = [answer(0, 0, 8, 4, 2, 0, seconds=18.0)]
    assert summary("full-outage", 4, answers, 6.0).is_good
    assert [one.phase for one in summary("full-outage", 4, answers, 0.0).grown] == ["back"]
    while_gone = summary("full-outage", 4, [answer(0, 8, 4, 2, 2, 0, seconds=18.0)], 6.0)
    assert [(one.phase, one.kind) for one in while_gone.grown] == [("gone", "Authenticates")]


def test_the_sum_of_two_processes() -> None:
    found = summary("token-loss", 8, [answer(4, 4, 0), answer(4, 0, 0)], 0.0)
    assert (found.served, found.median, found.all_served, found.calls) == (8, 2.0, 4.0, 14)
    assert found.errors == {"EtcdTimeoutError": 4}
    assert found.per_client == pytest.approx({"Authenticates": 36 / 8, "probes": 0.0, "dials": 0.0})
    assert found.cpu == pytest.approx(100)
    assert found.is_good


def test_clients_that_were_not_served_are_reported() -> None:
    found = summary("token-loss", 8, [answer(4, 4, 0)], 0.0)
    assert (found.served, found.median, found.all_served) == (4, 4.0, inf)
    assert not found.is_good
    assert summary("token-loss", 9, [answer(4, 4, 0)], 0.0).median == inf


@pytest.mark.cluster
def test_a_small_fleet(tmp_path: Path) -> None:
    result = tmp_path / "fleet.json"
    command = [sys.executable, "-m", "benchmarks.fleet", "--clients", "6", "--bcrypt-cost", "4", "--outage", "1"]
    run = subprocess.run(
        [*command, "--limit", "60", "--json", str(result)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    runs = {one["scenario"]: one for one in json.loads(result.read_text())["runs"]}
    assert list(runs) == ["token-loss-patient", "token-loss", "member-restart", "leader-death", "full-outage"]
    assert all(one["served"] == 6 for one in runs.values())
    assert 1 <= runs["token-loss"]["per_client"]["Authenticates"] <= 2
    assert runs["full-outage"]["per_client"]["dials"] >= 3
