"""The environments of drivers: this interpreter, a virtual environment, or a Go binary, made once and cached."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

ROOT: Final = Path(__file__).resolve().parent.parent
_PROTOS: Final = ("rpc.proto", "kv.proto", "auth.proto")
# Usually a minute is enough; a registry that does not answer must not block the whole run.
_STEP_TIMEOUT: Final = 600.0


class UnavailableError(Exception):
    """A client cannot run on this machine. The message is the reason, for the report."""


class Home(Protocol):
    """An environment of a driver."""

    def prepare(self, cache: Path) -> list[str]:
        """Make what the driver needs. Returns the command that starts it.

        Raises:
            UnavailableError: this is not possible on this machine.
        """
        ...


def default_cache() -> Path:
    """`$ETCD_AIO_CACHE` or `~/.cache/etcd_aio`, and in it `bench`."""
    root = os.environ.get("ETCD_AIO_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "etcd_aio") / "bench"


@dataclass(frozen=True, slots=True)
class Here:
    """The interpreter that runs this program, which has etcd_aio."""

    module: str

    def prepare(self, cache: Path) -> list[str]:
        return [sys.executable, "-m", self.module]


@dataclass(frozen=True, slots=True)
class Virtualenv:
    """A virtual environment with some packages; `with_stubs` adds the stubs that protoc generates from `proto/`."""

    name: str
    requirements: tuple[str, ...]
    module: str
    with_stubs: bool = False

    def prepare(self, cache: Path) -> list[str]:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        folder = cache / version / self.name
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        protos = [ROOT / "proto" / name for name in _PROTOS] if self.with_stubs else []
        wanted = _digest([sys.version, *self.requirements], protos)
        if not _is_made(folder, wanted):
            _clear(folder)
            _run([sys.executable, "-m", "venv", str(folder)])
            # Wheels only: building grpcio takes half an hour. If there is no wheel, the report says so.
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
            _run([*pip, "--only-binary=:all:", *self.requirements])
            if protos:
                site_packages = _run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
                protoc = [str(python), "-m", "grpc_tools.protoc", f"--proto_path={ROOT / 'proto'}"]
                out = site_packages.strip()
                _run([*protoc, f"--python_out={out}", f"--grpc_python_out={out}", *_PROTOS])
            _mark_made(folder, wanted)
        return [str(python), "-m", self.module]


@dataclass(frozen=True, slots=True)
class GoProgram:
    """A Go program of the repository, built with the modules in its go.mod."""

    source: str

    def prepare(self, cache: Path) -> list[str]:
        go = shutil.which("go")
        if go is None:
            raise UnavailableError("no Go toolchain on PATH")
        sources = sorted((ROOT / self.source).iterdir())
        folder = cache / Path(self.source).name
        binary = folder / ("driver.exe" if os.name == "nt" else "driver")
        wanted = _digest([_run([go, "version"])], sources)
        if not _is_made(folder, wanted):
            _clear(folder)
            folder.mkdir(parents=True)
            for path in sources:
                shutil.copy(path, folder)
            # In a copy, because -mod=mod adds the indirect requirements and go.sum.
            environ = {"GOFLAGS": "-mod=mod", "GOWORK": "off"}
            _run([go, "build", "-trimpath", "-o", str(binary), "."], cwd=folder, environ=environ)
            _mark_made(folder, wanted)
        return [str(binary)]


def _digest(words: Iterable[str], files: Iterable[Path]) -> str:
    digest = hashlib.sha256("\n".join(words).encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _is_made(folder: Path, wanted: str) -> bool:
    stamp = folder / "made"
    return stamp.exists() and stamp.read_text() == wanted


def _mark_made(folder: Path, wanted: str) -> None:
    # Written last: a folder without it is incomplete and is made again.
    (folder / "made").write_text(wanted)


def _clear(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _run(command: Sequence[str], *, cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> str:
    """Run one step. Returns its output, or raises `UnavailableError` with its last line."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_STEP_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{Path(command[0]).name}: {error}") from error
    if done.returncode != 0:
        output = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        raise UnavailableError(f"{' '.join([Path(command[0]).name, *command[1:4]])}: {output[-1]}")
    return done.stdout
