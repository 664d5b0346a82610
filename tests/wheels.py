"""Builds the wheel with and without the accelerator, and tries each in bare environments: `python -m tests.wheels`.

Arguments are versions of Python, such as 3.12; without any it is this one. The wheels are made from the sdist, as an
installer makes them where no wheel fits. Each is installed with what it depends
on and nothing else, and a small program runs on a fake etcd, with no compiler on PATH.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = {"accelerated": "yes", "pure": "no"}
SMOKE = """
import asyncio, sys
from etcd_aio.codec import BACKEND
from etcd_aio.fake import FakeEtcd

async def main():
    async with FakeEtcd() as fake, fake.client() as client:
        async with client.watch(prefix="k") as watcher:
            for number in range(200):
                await client.put(f"k{number:03}", "v" * 100)
            found = await client.range(prefix="k")
            assert len(found) == 200 and found[7].text() == "v" * 100
            assert (await anext(watcher)).key_text() == "k000"

asyncio.run(main())
print(BACKEND)
"""


def run(command: Sequence[str | Path], environ: Mapping[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Run a command and return its output; its errors are shown."""
    return subprocess.run(command, env=environ, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def build_sdist(folder: Path) -> Path:
    """Build the sdist."""
    run([sys.executable, "-m", "build", "--sdist", "--outdir", folder, "."])
    (sdist,) = folder.glob("*.tar.gz")
    return sdist


def build(kind: str, sdist: Path, folder: Path) -> Path:
    """Build a wheel of this kind."""
    environ = {**os.environ, "ETCD_AIO_ACCELERATOR": KINDS[kind]}
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / kind, sdist], environ)
    (wheel,) = (folder / kind).glob("*.whl")
    expected = "py3-none-any" if kind == "pure" else f"cp311-abi3-{sysconfig.get_platform()}".replace("-", "_")
    if not wheel.stem.replace("-", "_").endswith(expected.replace("-", "_").replace(".", "_")):
        raise SystemExit(f"{wheel.name} is not for {expected}")
    return wheel


def try_out(wheel: Path, python: str, folder: Path) -> str:
    """Install a wheel into a bare environment, and run the program there. Returns whether the codec is accelerated."""
    run([python, "-m", "venv", folder])
    own = folder / ("Scripts" if os.name == "nt" else "bin")
    run([own / "python", "-m", "pip", "install", "--quiet", wheel])
    environ = {"PATH": str(own), "HOME": str(folder)}
    version = run([own / "python", "-m", "etcd_aio", "--version"], environ, folder)
    backend = run([own / "python", "-c", SMOKE], environ, folder).strip()
    if f"Codec, calls, events: {backend}" not in version:
        raise SystemExit(f"--version says otherwise than {backend!r}: {version}")
    return backend


def main(versions: Sequence[str]) -> int:
    pythons = [f"python{version}" for version in versions] or [sys.executable]
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        sdist = build_sdist(Path(name))
        for kind in KINDS:
            wheel = build(kind, sdist, Path(name))
            for number, python in enumerate(pythons):
                backend = try_out(wheel, python, Path(name) / f"{kind}{number}")
                is_right = backend.startswith("accelerated" if kind == "accelerated" else "pure Python")
                failures += not is_right
                print(f"{wheel.name} on {python}: {backend}{'' if is_right else ', which is wrong'}", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
