"""Unpacks etcd servers from Debian's packages into the cache that `find_etcd` searches.

Run it with `python -m etcd_aio.testing.debian [release ...]`, on Debian only. Without a release it unpacks those whose
etcd the cache does not have. Nothing is installed, no privileges are needed, and apt's own state is not changed: it
works in a folder of its own, with this machine's package mirror, and verifies signatures as usual.
"""

import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from etcd_aio.testing.binaries import EtcdBinary, cache_directory, fits
from etcd_aio.testing.commands import install_server, report_binaries, run_program
from etcd_aio.testing.errors import EtcdBuildError

RELEASES: Final[Mapping[str, str]] = {"bookworm": "3.4", "trixie": "3.5"}
"""The releases of Debian with an etcd that the client supports, and its minor version."""

_PACKAGE: Final = "etcd-server"
_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SECONDS: Final = 300.0  # the index of a release is 9 MB, the package 7 MB


def unpack_server(release: str, *, cache: Path | None = None) -> EtcdBinary:
    """Unpack the etcd of a release of Debian into the cache.

    Args:
        release: such as "bookworm".
        cache: the folder to unpack into; `cache_directory()` by default.

    Raises:
        EtcdBuildError: this machine is not a Debian system, the release is unknown, or the package is not available.
    """
    if release not in RELEASES:
        raise EtcdBuildError(f"the etcd of {release!r} is unknown; known are {', '.join(RELEASES)}")
    address = _address()

    def unpacked(folder: Path) -> Path:
        options = _private_apt(folder, f"{address} {release} main")
        _run(["apt-get", *options, "update"], folder)
        _run(["apt-get", *options, "download", _PACKAGE], folder)
        (package,) = folder.glob("*.deb")
        _run(["dpkg-deb", "--extract", str(package), "unpacked"], folder)
        return folder / "unpacked" / "usr" / "bin"

    return install_server(cache, unpacked)


def _address() -> str:
    """The address of this machine's package mirror."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    if system.get("ID") != "debian":
        raise EtcdBuildError("etcd packages are available on Debian only, and this is another system")
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        raise EtcdBuildError(f"unpacking etcd needs {' and '.join(missing)}, which are not on PATH")
    wanted = f"|{system.get('VERSION_CODENAME')}|main"
    listed = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)"], Path.cwd())
    for line in listed.splitlines():
        if line.endswith(wanted):
            return line.removesuffix(wanted)
    raise EtcdBuildError("apt has no source for this machine's own release, so its mirror is unknown")


def _private_apt(folder: Path, source: str) -> list[str]:
    """Options that restrict apt to one source, and to writing into `folder`."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    signed = f" [signed-by={_KEYRING}]" if _KEYRING.exists() else ""
    (folder / "sources.list").write_text(f"deb{signed} {source}\n")
    (folder / "status").touch()
    settings = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",  # its own user could not write here
    }
    return ["--quiet", "--quiet", *(f"--option={name}={value}" for name, value in settings.items())]


def _run(command: Sequence[str], folder: Path) -> str:
    return run_program(command, folder, environment={"LC_ALL": "C"}, seconds=_SECONDS, purpose="unpacking etcd")


def _missing() -> list[str]:
    """The releases whose minor version of etcd is not in the cache."""
    there = [path.parent.name for path in cache_directory().glob("servers/[0-9]*/etcd")]
    return [release for release, minor in RELEASES.items() if not any(fits(minor, version) for version in there)]


def main(arguments: Sequence[str]) -> int:
    """The command: one line for each server; exit code 1 if one could not be unpacked, after the others."""
    return report_binaries(arguments or _missing(), unpack_server)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
