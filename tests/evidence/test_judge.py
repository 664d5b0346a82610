"""The judge, where Go is: a history is right as it was recorded, and wrong once a line of it is changed."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from etcd_aio.testing import find_etcd
from tests.evidence import report
from tests.evidence.judging import SOURCE, Judging, NoJudgeError, build
from tests.evidence.plan import Size, draw

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def changed(folder: Path, name: str, change: Callable[[Any], bool]) -> Callable[[], object]:
    """Change the first line of a file that a function changes. Returns what takes it back."""
    path = folder / name
    before = path.read_text()
    lines = [json.loads(line) for line in before.splitlines()]
    assert any(change(line) for line in lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lambda: path.write_text(before)


def another_value(line: Any) -> bool:
    kvs = line["Output"].get("Range", {}).get("KVs") or []
    if not kvs or "Value" not in kvs[0]["Value"] or line["Input"]["Range"]["Revision"]:
        return False
    kvs[0]["Value"]["Value"] = "v0"
    return True


def one_event_less(line: Any) -> bool:
    if len(line["Responses"]) < 4 or line["Request"]["Revision"] != 2:
        return False
    middle = next((at for at, response in enumerate(line["Responses"]) if at and response["Events"]), None)
    if middle is None:
        return False
    del line["Responses"][middle]
    return True


def a_lie(line: Any) -> bool:
    claim = next(claim for claim in line["Writes"] if claim["Told"] == "applied" and claim["Mark"].startswith("put:"))
    claim["Told"], claim["Revision"] = "not applied", 0
    return True


def another_state(line: Any) -> bool:
    snapshot = next(one for one in line["Snapshots"] if one["Response"]["KVs"])
    snapshot["Response"]["KVs"][0]["ModRevision"] += 1
    return True


def test_a_history_is_right_until_it_is_changed(tmp_path: Path) -> None:
    try:
        judge = build()
    except NoJudgeError as error:
        pytest.skip(str(error))
    release = find_etcd(">=3.5").version
    plan = replace(draw(release, 4, Size(400, 20.0), has_uvloop=False), faults=(), has_tls=False)
    folder = tmp_path / plan.name
    report.run(plan, folder)

    def broken() -> list[str]:
        return [rule.split(":")[0] for rule in Judging(judge, folder).start().verdict()["broken"]]

    assert broken() == []
    for name, change, rule in (
        ("client-1/operations.json", another_value, "linearizability"),
        ("client-1/watch.json", one_event_less, "watches"),
        ("claims.json", a_lie, "told as not applied, in a log"),
        ("claims.json", another_state, "not the state of its revision"),
    ):
        take_back = changed(folder, name, change)
        assert rule in broken(), name
        take_back()


def test_the_judge_keeps_its_own_rules() -> None:
    if shutil.which("go") is None:
        pytest.skip("Go is not here, which the judge is built by")
    done = subprocess.run(["go", "test", "."], cwd=SOURCE, capture_output=True, text=True, timeout=900, check=False)
    if "no required module" in done.stderr or "dial tcp" in done.stderr:
        pytest.skip(f"the judge could not be built: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stdout + done.stderr
