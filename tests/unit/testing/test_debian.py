"""testing/debian.py, testing/commands.py: unpacking, with a fake apt and a fake dpkg."""

import platform
from pathlib import Path

import pytest

from etcd_aio.testing import EtcdBinary, EtcdBuildError
from etcd_aio.testing.debian import RELEASES, main, unpack_server

ETCD = '#!/bin/sh\necho "etcd Version: {version}"\n'

# Each `apt-get` but the listing is noted with its last word, and the sources that it was given.
APT = """#!/bin/sh
if [ "$1" = indextargets ]; then
    echo "http://mirror.test/debian/|bookworm|contrib"
    echo "http://mirror.test/security/|bookworm-security|main"
    echo "http://mirror.test/debian/|bookworm|main"
    exit 0
fi
for last; do :; done
echo "$last: $(cat sources.list)" >> "{witness}"
case "$*" in *"--option=Dir::State=$PWD/state"*) ;; *) echo "not private"; exit 1;; esac
{fails}
[ "$last" = etcd-server ] && touch etcd-server_1_any.deb
exit 0
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/bin"
cat > "$3/usr/bin/etcd" <<'END'
{etcd}END
chmod +x "$3/usr/bin/etcd"
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("ETCD_AIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "bookworm"})
    (tmp_path / "bin").mkdir()
    return tmp_path / "cache"


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def fake_tools(cache: Path, version: str = "3.4.23", *, fails: str = "") -> Path:
    """Returns where the fake apt tells what it was asked."""
    witness = cache.parent / "witness"
    executable(cache.parent / "bin" / "apt-get", APT.format(witness=witness, fails=fails))
    executable(cache.parent / "bin" / "dpkg-deb", DPKG.format(etcd=ETCD.format(version=version)))
    return witness


def test_a_server_is_unpacked_into_the_cache_from_where_this_machine_gets_its_packages(cache: Path) -> None:
    witness = fake_tools(cache)
    path = cache / "servers" / "3.4.23" / "etcd"
    assert unpack_server("trixie") == EtcdBinary(path, "3.4.23", "cache")
    asked = witness.read_text().splitlines()
    assert [line.partition(":")[0] for line in asked] == ["update", "etcd-server"]
    assert all(line.endswith(" http://mirror.test/debian/ trixie main") for line in asked)
    assert [entry.name for entry in (cache / "servers").iterdir()] == ["3.4.23"], "nothing else is left in the cache"


def test_one_that_is_there_stays(cache: Path) -> None:
    fake_tools(cache)
    path = executable(cache / "servers" / "3.4.23" / "etcd", ETCD.format(version="3.4.23") + "# built\n")
    assert unpack_server("bookworm").path == path
    assert path.read_text().endswith("# built\n")
    assert [entry.name for entry in (cache / "servers").iterdir()] == ["3.4.23"]


@pytest.mark.parametrize("system", [{"ID": "fedora"}, None])
def test_without_debian_it_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch, system: dict[str, str] | None) -> None:
    def release() -> dict[str, str]:
        if system is None:
            raise FileNotFoundError
        return system

    fake_tools(cache)
    monkeypatch.setattr(platform, "freedesktop_os_release", release)
    with pytest.raises(EtcdBuildError, match="on Debian only"):
        unpack_server("bookworm")


def test_without_apt_it_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cache.parent / "bin"))
    with pytest.raises(EtcdBuildError, match="needs apt-get and dpkg-deb"):
        unpack_server("bookworm")


def test_a_failure_leaves_nothing_and_shows_the_output_of_apt(cache: Path) -> None:
    fake_tools(cache, fails="echo no such release; exit 100")
    with pytest.raises(EtcdBuildError, match="no such release"):
        unpack_server("bookworm")
    assert list((cache / "servers").iterdir()) == []


def test_an_unknown_release_touches_nothing(cache: Path) -> None:
    with pytest.raises(EtcdBuildError, match="unknown"):
        unpack_server("../../etc")
    assert not cache.exists()


def test_the_command_gets_what_the_cache_lacks(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_tools(cache)
    executable(cache / "servers" / "3.5.35" / "etcd", ETCD.format(version="3.5.35"))
    assert main([]) == 0
    assert capsys.readouterr().out == f"3.4.23  {cache}/servers/3.4.23/etcd  (bookworm)\n"
    assert main([]) == 0
    assert capsys.readouterr().out == "", "nothing is lacking any more"
    assert main(["sid", "trixie"]) == 1
    told = capsys.readouterr()
    assert "sid" in told.err
    assert "(trixie)" in told.out
    assert set(RELEASES.values()) == {"3.4", "3.5"}
