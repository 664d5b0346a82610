"""release/archives.py, release/build.py: content and metadata of wheel and sdist, and comparing builds."""

import io
import tarfile
import zipfile
from pathlib import Path

from release.archives import (
    metadata_problems,
    publishing_problems,
    read_sdist_metadata,
    read_wheel_metadata,
    relative_links,
    sdist_names,
    sdist_problems,
    wheel_names,
    wheel_problems,
)
from release.build import differences

INFO = "etcd_aio-0.2.0.dist-info"
SOURCES = {"etcd_aio/__init__.py", "etcd_aio/py.typed", "pytest_etcd_aio/__init__.py", "pytest_etcd_aio/py.typed"}
WHEEL = SOURCES | {f"{INFO}/{name}" for name in ("METADATA", "RECORD", "licenses/LICENSE", "sboms/sbom.cdx.json")}
METADATA = """\
Metadata-Version: 2.4
Name: etcd-aio
Version: 0.2.0
License-Expression: Apache-2.0
License-File: LICENSE
Project-URL: Source, https://example.com/etcd_aio
Description-Content-Type: text/markdown

# etcd_aio

[Guide](docs/guide.md), [site](https://example.com), [below](#below)
"""


def test_a_wheel_with_what_belongs_there() -> None:
    assert wheel_problems(WHEEL, SOURCES) == []


def test_what_a_wheel_lacks_and_what_does_not_belong_there() -> None:
    surplus = {"tests/test_kv.py", "etcd_aio/tests/x.py", "etcd_aio/a.pyc", "etcd_aio/gone.py"}
    found = wheel_problems((WHEEL - {"etcd_aio/py.typed", f"{INFO}/sboms/sbom.cdx.json"}) | surplus, SOURCES)
    assert found == [
        "the wheel lacks etcd_aio-0.2.0.dist-info/sboms/sbom.cdx.json",
        "the wheel lacks etcd_aio/py.typed",
        *(f"the wheel has {name}, which does not belong there" for name in sorted(surplus)),
    ]


def test_what_an_sdist_lacks_and_what_does_not_belong_there() -> None:
    found = sdist_problems(["pyproject.toml", "etcd_aio/__pycache__/a.pyc", "dist/old.whl", "docs/distance.md"])
    assert "the sdist lacks SECURITY.md" in found
    assert "the sdist lacks etcd_aio/codec/_speedups.c" in found
    assert sdist_problems(["etcd_aio/codec/_speedups.abi3.so"])[-1].startswith("the sdist has the binary")
    assert [each for each in found if "has" in each.split()] == [
        "the sdist has etcd_aio/__pycache__/a.pyc",
        "the sdist has dist/old.whl",
    ]


def test_good_metadata() -> None:
    assert metadata_problems(METADATA.encode(), METADATA.encode(), "0.2.0") == []


def test_bad_metadata() -> None:
    old = METADATA.replace("Version: 0.2.0", "Version: 0.1.0").replace("License-File: LICENSE\n", "").encode()
    assert metadata_problems(old, METADATA.encode(), "0.2.0") == [
        "the metadata of the wheel and of the sdist differ",
        "the metadata has version 0.1.0, and the package 0.2.0",
        "the metadata has no licence expression or no licence file",
    ]
    invalid = METADATA.replace("License-Expression: Apache-2.0", "License-Expression: Apache 2").encode()
    assert any(
        "License-Expression" in each or "license" in each for each in metadata_problems(invalid, invalid, "0.2.0")
    )


def test_what_matters_only_on_an_index() -> None:
    found = publishing_problems(METADATA.encode())
    assert "[project.urls] has no Source" not in found
    assert "[project.urls] has no Security" in found
    assert [each for each in found if "README" in each] == [
        "README.md links to docs/guide.md, which leads nowhere on a package index"
    ]
    assert relative_links("[a](https://x) [b](b.md#c) [c](#d) [e](mailto:f)") == ["b.md#c"]


def made_wheel(path: Path, text: str = "a = 1\n", mode: int = 0o644) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("etcd_aio/a.py")
        entry.external_attr = mode << 16
        archive.writestr(entry, text)
        archive.writestr(zipfile.ZipInfo(f"{INFO}/METADATA"), METADATA)
    return path


def made_sdist(path: Path, text: str = "Name: etcd-aio\n") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("etcd_aio-0.2.0/PKG-INFO")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def test_names_and_metadata_are_read_from_archives(tmp_path: Path) -> None:
    wheel, sdist = made_wheel(tmp_path / "a.whl"), made_sdist(tmp_path / "a.tar.gz")
    assert wheel_names(wheel) == ["etcd_aio/a.py", f"{INFO}/METADATA"]
    assert sdist_names(sdist) == ["PKG-INFO"]
    assert read_wheel_metadata(wheel) == METADATA.encode()
    assert read_sdist_metadata(sdist) == b"Name: etcd-aio\n"


def test_differences_of_two_builds_are_named(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        made_wheel(folder / "a.whl")
    assert differences(one, other) == []
    made_wheel(other / "a.whl", text="a = 2\n")
    made_wheel(one / "mode.whl")
    made_wheel(other / "mode.whl", mode=0o600)
    made_sdist(one / "a.tar.gz")
    assert differences(one, other) == [
        "a.tar.gz: built once only",
        "a.whl: etcd_aio/a.py",
        "mode.whl: etcd_aio/a.py",
    ]
