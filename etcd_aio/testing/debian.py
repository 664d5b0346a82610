"""Unpacking etcd: servers from Debian's packages, into the cache that `find_etcd` looks at.

Knows: apt, dpkg, and which release of Debian has which etcd. Never knows: how a server is run or built.

As a command: `python -m etcd_aio.testing.debian [release ...]`, on Debian only. Without a release it gets those whose
etcd the cache lacks. Nothing is installed, no privilege is needed, and apt's own state stays untouched: it works in a
folder of its own, at the address where this machine gets its packages, and verifies their signatures as ever.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from etcd_aio.testing.binaries import EtcdBinary, cache_directory, fits, read_binary
from etcd_aio.testing.errors import EtcdBuildError, EtcdNotFoundError

RELEASES: Final[Mapping[str, str]] = {"bookworm": "3.4", "trixie": "3.5"}
"""The releases of Debian with an etcd that the client supports, and which it is."""

_PACKAGE: Final = "etcd-server"
_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SECONDS: Final = 300.0  # the index of a release is 9 MB, the package 7 MB


def unpack_server(release: str, *, cache: Path | None = None) -> EtcdBinary:
    """Get the etcd of a release of Debian into the cache.

    Several processes may do so at once: each works aside and moves the whole folder into place.

    Args:
        release: such as "bookworm".
        cache: the folder to unpack into; `cache_directory()` by default.

    Raises:
        EtcdBuildError: this machine is no Debian, the release is unknown, or the package could not be had.
    """
    if release not in RELEASES:
        raise EtcdBuildError(f"the etcd of {release!r} is unknown; known are {', '.join(RELEASES)}")
    address = _address()
    servers = (cache or cache_directory()) / "servers"
    servers.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=servers) as name:
        folder = Path(name)
        options = _private_apt(folder, f"{address} {release} main")
        _run(["apt-get", *options, "update"], folder)
        _run(["apt-get", *options, "download", _PACKAGE], folder)
        (package,) = folder.glob("*.deb")
        _run(["dpkg-deb", "--extract", str(package), "unpacked"], folder)
        return _moved(folder / "unpacked" / "usr" / "bin" / "etcd", servers)


def _address() -> str:
    """Where this machine gets the packages of its own release."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    if system.get("ID") != "debian":
        raise EtcdBuildError("etcd comes as a package on Debian only, and this machine is none")
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        raise EtcdBuildError(f"unpacking etcd needs {' and '.join(missing)}, which PATH does not have")
    wanted = f"|{system.get('VERSION_CODENAME')}|main"
    listed = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)"], Path.cwd())
    for line in listed.splitlines():
        if line.endswith(wanted):
            return line.removesuffix(wanted)
    raise EtcdBuildError("apt has no source of this machine's own release, so where others are is unknown")


def _private_apt(folder: Path, source: str) -> list[str]:
    """The options with which apt knows this one source, and writes into `folder` and nowhere else."""
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


def _moved(unpacked: Path, servers: Path) -> EtcdBinary:
    """The server, moved to the folder of its version."""
    try:
        version = read_binary(unpacked, "cache").version
        home = servers / version
        try:
            unpacked.parent.rename(home)
        except OSError:
            if not (home / "etcd").exists():
                raise
            # It was there already, built or unpacked.
        return read_binary(home / "etcd", "cache")
    except (EtcdNotFoundError, OSError) as error:
        raise EtcdBuildError(f"the etcd of the package does not run: {error}") from error


def _run(command: Sequence[str], folder: Path) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - apt and dpkg, with our own arguments
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EtcdBuildError(f"`{command[0]}` took more than {_SECONDS:.0f} seconds") from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-10:])
        raise EtcdBuildError(f"`{command[0]} {command[-1]}` failed:\n{tail}")
    return done.stdout


def _lacking() -> list[str]:
    """The releases whose etcd is of a minor version that the cache does not have."""
    there = [path.parent.name for path in cache_directory().glob("servers/[0-9]*/etcd")]
    return [release for release, minor in RELEASES.items() if not any(fits(minor, version) for version in there)]


def main(arguments: Sequence[str]) -> int:
    """The command: one line for each server; exit code 1 if one could not be had, after the others."""
    exit_code = 0
    for release in arguments or _lacking():
        try:
            binary = unpack_server(release)
        except EtcdBuildError as error:
            sys.stderr.write(f"{release}: {error}\n")
            exit_code = 1
        else:
            sys.stdout.write(f"{binary.version}  {binary.path}  ({release})\n")
            sys.stdout.flush()
    return exit_code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
