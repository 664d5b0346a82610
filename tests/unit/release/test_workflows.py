""".github/workflows/: the workflows name no secret, run what people run, and can do no more than they need."""

import re

import pytest

from tests.examples.paths import ROOT
from tests.examples.test_readme import nox_sessions

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def text(request: pytest.FixtureRequest) -> str:
    return str(request.param.read_text())


def test_there_are_workflows() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]


def test_no_secret_is_named(text: str) -> None:
    assert "secrets" not in text
    assert not re.search(r"password:|api[-_]?token|PYPI_", text, re.IGNORECASE)


def test_actions_of_others_are_pinned_to_a_commit(text: str) -> None:
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [
        each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each) and not each.startswith("./")
    ] == []


def test_permissions_are_given_to_jobs_alone(text: str) -> None:
    assert "\npermissions: {}\n" in text
    assert "write-all" not in text
    jobs = text.partition("\njobs:\n")[2]
    names = re.findall(r"^  (\w+):$", jobs, re.MULTILINE)
    assert len(re.findall(r"^    permissions:$", jobs, re.MULTILINE)) == len(names)


def test_nothing_of_an_event_is_pasted_into_a_shell(text: str) -> None:
    commands = re.findall(r"run: (?:>-\n)?((?:.|\n {10})*)", text)
    assert commands
    assert [command for command in commands if "${{" in command] == []


def test_they_run_the_script_and_the_sessions_that_people_run(text: str) -> None:
    assert set(re.findall(r"nox -s (\w+)", text)) <= nox_sessions()
    if "name: ci\n" in text:
        assert re.findall(r"run: (.*)", text) == [".ci/run"]


def test_only_what_was_built_and_tried_is_published_and_only_after_approval() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    publish = text.partition("\n  publish:\n")[2].partition("\n  announce:\n")[0]
    assert "needs: [suite, build, binaries, check]" in publish
    assert "environment: release" in publish
    assert "checkout" not in publish
    assert text.count("id-token: write") == publish.count("id-token: write") == 1
    assert text.count("gh-action-pypi-publish") == 1


def test_each_platform_gets_a_wheel_that_is_made_from_the_sdist_which_is_published() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    binaries, _, rest = text.partition("\n  binaries:\n")[2].partition("\n  check:\n")
    assert "cibuildwheel --output-dir binaries dist/*.tar.gz" in binaries
    assert "checkout" not in binaries
    for job in ("check", "publish"):
        steps = rest.partition("needs: [build, binaries]" if job == "check" else "\n  publish:\n")[2]
        assert "pattern: binaries-*" in steps.partition("\n  publish:\n" if job == "check" else "\n  announce:\n")[0]
    assert "files/binaries-*/*" in rest
