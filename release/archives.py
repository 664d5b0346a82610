"""What the wheel and the sdist must contain, and what their metadata must say. Reads archives; changes nothing."""

import re
import tarfile
import zipfile
from collections.abc import Collection, Iterable
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Final

from packaging.metadata import Metadata

_PACKAGES: Final = ("etcd_aio", "pytest_etcd_aio")
_LABELS: Final = ("Documentation", "Changelog", "Source", "Issues", "Security")
_RELATIVE: Final = re.compile(r"\]\((?!https?://|#|mailto:)([^)\s]+)\)")
_IN_SDIST: Final = (
    *("pyproject.toml", "README.md", "LICENSE", "PKG-INFO", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("CITATION.cff", "noxfile.py", "etcd_aio/py.typed", "pytest_etcd_aio/py.typed", "tests/conftest.py"),
    # Or a package that is built from it has no accelerator.
    *("hatch_build.py", "etcd_aio/codec/_speedups.c", "etcd_aio/transport/native/_speedups.c"),
    "etcd_aio/watch/_speedups.c",
    *("docs/mkdocs.yml", "docs/pages/index.md", "proto/generate.py", "release/sbom.cdx.json", "examples/kv.py"),
)


def wheel_names(wheel: Path) -> list[str]:
    """The names of the files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def sdist_names(sdist: Path) -> list[str]:
    """The names of the files in an sdist, without the folder that they all are in."""
    with tarfile.open(sdist) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


def wheel_problems(names: Collection[str], sources: Collection[str]) -> list[str]:
    """What is wrong with the content of a wheel.

    Args:
        names: of the files in the wheel.
        sources: the files of the packages in the checkout, relative to it.
    """
    (info,) = {name.split("/")[0] for name in names if name.split("/")[0].endswith(".dist-info")}
    wanted = {f"{package}/py.typed" for package in _PACKAGES}
    wanted |= {f"{info}/{name}" for name in ("METADATA", "RECORD", "licenses/LICENSE", "sboms/sbom.cdx.json")}
    wanted |= set(sources)
    surplus = [name for name in names if name.split("/")[0] not in {*_PACKAGES, info}]
    surplus += [name for name in names if name.endswith((".pyc", ".so", ".pyd")) or "/tests/" in name]
    surplus += [name for name in names if name.split("/")[0] in _PACKAGES and name not in wanted]
    return [
        *(f"the wheel lacks {name}" for name in sorted(wanted - set(names))),
        *(f"the wheel has {name}, which does not belong there" for name in sorted(set(surplus))),
    ]


def sdist_problems(names: Collection[str]) -> list[str]:
    """What is wrong with the content of an sdist."""
    unwanted = ("__pycache__", ".nox/", ".git/", ".hypothesis/", "dist/", "build/")
    return [
        *(f"the sdist lacks {name}" for name in _IN_SDIST if name not in names),
        *(f"the sdist has {name}" for name in names if any(each in f"{name}/" for each in unwanted)),
        *(f"the sdist has the binary {name}" for name in names if name.endswith((".so", ".pyd"))),
    ]


def read_wheel_metadata(wheel: Path) -> bytes:
    """The file METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name)


def read_sdist_metadata(sdist: Path) -> bytes:
    """The file PKG-INFO of an sdist."""
    with tarfile.open(sdist) as archive:
        (member,) = [member for member in archive if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO")]
        content = archive.extractfile(member)
        assert content is not None
        return content.read()


def read_message(metadata: bytes) -> Message:
    """The fields of a METADATA file."""
    return BytesParser().parsebytes(metadata)


def metadata_problems(wheel: bytes, sdist: bytes, version: str) -> list[str]:
    """What is wrong with the metadata of both archives, by the specification and by what this project says."""
    problems = [] if wheel == sdist else ["the metadata of the wheel and of the sdist differ"]
    try:
        found = Metadata.from_email(wheel, validate=True)
    except ExceptionGroup as errors:
        return [*problems, *(str(error) for error in errors.exceptions)]
    if str(found.version) != version:
        problems.append(f"the metadata has version {found.version}, and the package {version}")
    if found.license_expression != "Apache-2.0" or not found.license_files:
        problems.append("the metadata has no licence expression or no licence file")
    if found.description_content_type != "text/markdown":
        problems.append("the description is not declared as Markdown")
    return problems


def publishing_problems(metadata: bytes) -> list[str]:
    """What must not stay so in a published version, while it does not matter before."""
    message = read_message(metadata)
    labels = {str(url).partition(",")[0] for url in message.get_all("Project-URL", [])}
    payload = message.get_payload()
    description = payload if isinstance(payload, str) else ""
    return [
        *(f"[project.urls] has no {label}" for label in _LABELS if label not in labels),
        *(f"README.md links to {link}, which leads nowhere on a package index" for link in relative_links(description)),
    ]


def relative_links(page: str) -> list[str]:
    """The targets of the links of a page that are no whole URLs."""
    return sorted(set(_RELATIVE.findall(page)))


def classified_pythons(classifiers: Iterable[str]) -> list[str]:
    """The minor versions of Python in the classifiers."""
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in classifiers)
    return [match[1] for match in found if match is not None]
