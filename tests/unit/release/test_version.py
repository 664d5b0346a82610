"""release/version.py: the version of a release, and what the changelog says of it."""

import pytest

from release.run import NOTES
from release.version import notes, read_version, sections, tag_problems
from tests.examples.paths import ROOT

CHANGELOG = """\
# Changelog

Words about the format.

## Unreleased

## 0.2.0 - 2026-12-01

### Added

- `Client(name=)`

## [0.1.0] - 2026-11-01

- the first
"""


def test_sections_have_their_dates_and_texts() -> None:
    assert sections(CHANGELOG) == {
        "Unreleased": (None, ""),
        "0.2.0": ("2026-12-01", "### Added\n\n- `Client(name=)`"),
        "0.1.0": ("2026-11-01", "- the first"),
    }


def test_notes_are_those_of_the_version_or_what_is_unreleased() -> None:
    assert notes(CHANGELOG, "0.1.0") == "- the first"
    assert notes("## Unreleased\n\n- soon\n", "0.3.0") == "- soon"
    assert notes("# Changelog\n", "0.3.0") == ""


def test_a_tag_that_fits_has_no_problems() -> None:
    assert tag_problems("v0.2.0", "0.2.0", CHANGELOG) == []


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "problem"),
    [
        ("v0.2.1", "0.2.0", CHANGELOG, "the tag is v0.2.1"),
        ("0.2.0", "0.2.0", CHANGELOG, "the tag is 0.2.0"),
        ("v0.3.0", "0.3.0", CHANGELOG, "no section"),
        ("v0.2.0", "0.2.0", CHANGELOG.replace(" - 2026-12-01", ""), "no date"),
        ("v0.2.0", "0.2.0", "## 0.2.0 - 2026-12-01\n", "is empty"),
        (
            "v0.2.0",
            "0.2.0",
            CHANGELOG.replace("## Unreleased\n", "## Unreleased\n\n- left over\n"),
            "still has entries",
        ),
    ],
)
def test_what_keeps_a_tag_from_being_published(tag: str, version: str, changelog: str, problem: str) -> None:
    (found,) = tag_problems(tag, version, changelog)
    assert problem in found


def test_the_version_is_read_from_its_file() -> None:
    assert read_version('"""Text."""\n\n__version__ = "1.2.3"\n') == "1.2.3"
    with pytest.raises(ValueError, match="__version__"):
        read_version("version = '1.2.3'\n")


def test_the_citation_has_the_version_of_the_package() -> None:
    version = read_version((ROOT / "etcd_aio" / "_version.py").read_text())
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_workflow_takes_the_notes_that_the_release_writes() -> None:
    assert f"--notes-file files/papers/{NOTES}" in (ROOT / ".github" / "workflows" / "release.yml").read_text()
