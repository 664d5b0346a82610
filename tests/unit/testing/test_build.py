"""testing/build.py, testing/commands.py: without a Go toolchain; a fake `go` stands in for it."""

from pathlib import Path

import pytest

from etcd_aio.testing import EtcdBinary, EtcdBuildError
from etcd_aio.testing.build import build_servers, main

ETCD = '#!/bin/sh\necho "etcd Version: {version}"\n'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("ETCD_AIO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    return tmp_path / "cache"


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def fake_go(cache: Path, version: str = "3.6.16", *, fails: bool = False) -> None:
    """`go build` writes an etcd that says it is `version`; the module it was asked for is kept as a witness."""
    script = f"""#!/bin/sh
[ "$1" = mod ] && exit 0
cp go.mod main.go "{cache.parent}/"
{"echo no such module; exit 1" if fails else ""}
mkdir -p finished
cat > finished/etcd <<'END'
{ETCD.format(version=version)}END
chmod +x finished/etcd
"""
    executable(cache.parent / "bin" / "go", script)


def test_a_server_is_built_into_the_cache(cache: Path) -> None:
    fake_go(cache)
    path = cache / "servers" / "3.6.16" / "etcd"
    assert build_servers(["3.6.16"]) == (EtcdBinary(path, "3.6.16", "cache"),)
    module = (cache.parent / "go.mod").read_text()
    # A pre-release requires an earlier release of its own modules, so all are named.
    for name in ("api", "client/pkg", "client", "pkg", "server"):
        assert f"\tgo.etcd.io/etcd/{name}/v3 v3.6.16\n" in module
    assert "etcdmain.Main(os.Args)" in (cache.parent / "main.go").read_text()
    assert [entry.name for entry in (cache / "servers").iterdir()] == ["3.6.16"], "nothing else is left in the cache"


def test_what_is_there_is_not_built_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    path = executable(cache / "servers" / "3.6.16" / "etcd", ETCD.format(version="3.6.16"))
    changed = path.stat().st_mtime_ns
    assert build_servers(["3.6.16"])[0].path == path
    assert path.stat().st_mtime_ns == changed


def test_without_a_toolchain_it_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cache.parent / "bin"))
    with pytest.raises(EtcdBuildError, match="no `go` on PATH"):
        build_servers(["3.6.16"])


def test_a_failed_build_leaves_nothing_and_shows_the_output_of_go(cache: Path) -> None:
    fake_go(cache, fails=True)
    with pytest.raises(EtcdBuildError, match="no such module"):
        build_servers(["3.6.16"])
    assert list((cache / "servers").iterdir()) == []


def test_a_server_of_another_version_is_not_accepted(cache: Path) -> None:
    fake_go(cache, version="3.6.1")
    with pytest.raises(EtcdBuildError, match=r"should be etcd 3\.6\.16"):
        build_servers(["3.6.16"])
    assert list((cache / "servers").iterdir()) == []


def test_a_version_that_is_none_touches_nothing(cache: Path) -> None:
    with pytest.raises(ValueError, match="not an etcd version"):
        build_servers(["../3.6.16"])
    assert not cache.exists()


def test_the_command(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_go(cache)
    assert main(["3.6.16"]) == 0
    assert capsys.readouterr().out == f"3.6.16  {cache}/servers/3.6.16/etcd\n"
    assert main(["3.5.35"]) == 1
    assert "3.5.35" in capsys.readouterr().err


def test_a_release_before_the_modules_had_versions_is_known_by_its_commit(cache: Path) -> None:
    fake_go(cache, version="3.4.25")
    assert build_servers(["3.4.25"])[0].version == "3.4.25"
    assert "\tgo.etcd.io/etcd v0.5.0-alpha.5.0." in (cache.parent / "go.mod").read_text()
    assert "etcdmain.Main()" in (cache.parent / "main.go").read_text()
    with pytest.raises(EtcdBuildError, match=r"only 3\.4\.25 can be built"):
        build_servers(["3.4.1"])


def test_the_command_goes_on_after_one_that_cannot_be_built(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_go(cache, version="3.6.16")
    assert main(["3.5.35", "3.6.16"]) == 1
    told = capsys.readouterr()
    assert "3.5.35" in told.err
    assert told.out.startswith("3.6.16")
