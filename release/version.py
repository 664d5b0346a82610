"""The version of a release, and what the changelog says of it. Pure."""

import re
from typing import Final

UNRELEASED: Final = "Unreleased"
_HEADING: Final = re.compile(r"^## \[?([^\]\s]+)\]?(?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def read_version(source: str) -> str:
    """The version in the text of `etcd_aio/_version.py`."""
    found = re.search(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    if found is None:
        raise ValueError('no line of the form `__version__ = "..."`')
    return found[1]


def sections(changelog: str) -> dict[str, tuple[str | None, str]]:
    """The sections of a changelog: the date, if there is one, and the text, by version; newest first."""
    headings = list(_HEADING.finditer(changelog))
    ends = [each.start() for each in headings[1:]] + [len(changelog)] * bool(headings)
    return {each[1]: (each[2], changelog[each.end() : end].strip()) for each, end in zip(headings, ends, strict=True)}


def notes(changelog: str, version: str) -> str:
    """The notes of a version: its section, or that of what is not released yet if it has none."""
    found = sections(changelog)
    return found.get(version, found.get(UNRELEASED, (None, "")))[1]


def tag_problems(tag: str, version: str, changelog: str) -> list[str]:
    """What keeps this tag from being published, as far as versions are concerned."""
    problems = []
    if tag != f"v{version}":
        problems.append(f"the tag is {tag}, and the version of the package {version}: they must be equal, after the v")
    found = sections(changelog)
    if version not in found:
        problems.append(f"CHANGELOG.md has no section `## {version} - DATE`")
    else:
        date, text = found[version]
        if date is None:
            problems.append(f"the section of {version} in CHANGELOG.md has no date")
        if not text:
            problems.append(f"the section of {version} in CHANGELOG.md is empty")
        if found.get(UNRELEASED, (None, ""))[1]:
            problems.append(f"CHANGELOG.md still has entries under `{UNRELEASED}`")
    return problems
