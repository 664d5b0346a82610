"""The broken clients of the page: each is up to date, and at night each is found."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.evidence import results
from tests.evidence.judging import NoJudgeError, build
from tests.evidence.sabotage import ALL

ROOT = Path(__file__).parents[2]
_FIND_SECONDS = 900


def test_each_one_fits_the_library_as_it_is() -> None:
    """In another process, which they may break: each checks that what it replaces is there and is called alike."""
    code = "from tests.evidence.sabotage import ALL; [one.function() for one in ALL.values()]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_published_run_has_found_each_of_them() -> None:
    published = {one["name"]: one for one in results.read()["sabotages"]}
    assert set(published) == set(ALL)
    assert all(one["by"] for one in published.values())
    assert {name: one["what"] for name, one in published.items()} == {name: one.text for name, one in ALL.items()}


@pytest.mark.nightly
@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_the_judge_finds_it(name: str, tmp_path: Path) -> None:
    try:
        build()
    except NoJudgeError as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "tests.evidence", "--sabotage", name, "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_FIND_SECONDS, check=False)
    assert done.returncode == 0, done.stdout
    (found,) = results.read(tmp_path / "results.json")["sabotages"]
    assert found["name"] == name
