"""Differential fuzzing of the decoders for a long time: `python -m tests.fuzz.codec 10000000`.

`--seed` begins elsewhere, `--processes` shares the work, `--sanitize` compiles the accelerator with gcc's address and
undefined-behaviour sanitizers first. The last line says how many messages were decoded and refused; a disagreement ends
the run with the message, and exit code 1.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import sysconfig
import time
from importlib.machinery import ExtensionFileLoader
from multiprocessing import get_context
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "etcd_aio" / "codec" / "_speedups.c"
BINARY = ROOT / "build" / "sanitized" / "_speedups.abi3.so"
NAME = "etcd_aio.codec._speedups"
SANITIZED = "ETCD_AIO_FUZZ_SANITIZED"
FLAGS = ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
CHUNK = 1_000
REFERENCE_EVERY = 10


def run_sanitized(arguments: list[str]) -> int:
    """Compile the accelerator with sanitizers, and run this program again with them."""
    BINARY.parent.mkdir(parents=True, exist_ok=True)
    include = sysconfig.get_path("include")
    command = ["gcc", *FLAGS, "-shared", "-fPIC", f"-I{include}", "-o", str(BINARY), str(SOURCE)]
    subprocess.run(command, check=True)
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    environ = {
        **os.environ,
        SANITIZED: str(BINARY),
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps much until it ends
        "PYTHONMALLOC": "malloc",  # each object is a block of its own, whose ends are guarded
    }
    return subprocess.run([sys.executable, "-m", "tests.fuzz.codec", *arguments], env=environ, check=False).returncode


def use_sanitized(path: str) -> None:
    """Load this binary in place of the installed accelerator."""
    loader = ExtensionFileLoader(NAME, path)
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    assert spec is not None
    sys.modules[NAME] = importlib.util.module_from_spec(spec)
    loader.exec_module(sys.modules[NAME])


def fuzz(seed: int) -> tuple[int, int]:
    """Compare the back ends on one chunk of messages."""
    from etcd_aio.codec.speedups import ACCELERATOR, BACKEND
    from tests.support.mutated_replies import compare

    if ACCELERATOR is None:
        raise SystemExit(f"there is no accelerator: {BACKEND}")
    return compare((None, ACCELERATOR), Random(seed), CHUNK, reference_every=REFERENCE_EVERY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("messages", type=int, nargs="?", default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first chunk")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    if options.sanitize and SANITIZED not in os.environ:
        return run_sanitized(sys.argv[1:])
    if SANITIZED in os.environ:
        use_sanitized(os.environ[SANITIZED])
    began, told = time.monotonic(), time.monotonic()
    decoded = refused = 0
    seeds = range(options.seed, options.seed + -(-options.messages // CHUNK))
    with get_context("fork").Pool(options.processes) as pool:
        for more, fewer in pool.imap_unordered(fuzz, seeds):
            decoded, refused = decoded + more, refused + fewer
            if time.monotonic() > told + 60:
                told = time.monotonic()
                print(f"{decoded + refused} messages, {told - began:.0f} s", flush=True)
    seconds = time.monotonic() - began
    print(f"{decoded} decoded, {refused} refused, all alike; seeds {seeds[0]} to {seeds[-1]}, {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
