"""Differential fuzzing of the frames of unary calls for a long time: `python -m tests.fuzz.frames 1000000`.

`--seed` begins elsewhere, `--processes` shares the work, `--sanitize` compiles the accelerators with gcc's address and
undefined-behaviour sanitizers first. The last line says how many scripts were run; a disagreement ends the run with
the seed of the script, and exit code 1.
"""

import argparse
import sys
import time
from multiprocessing import get_context
from random import Random

from tests.fuzz.sanitized import is_sanitized, run_sanitized, use_sanitized

CHUNK = 500


def fuzz(chunk: int) -> tuple[int, int, int]:
    """Run one chunk of scripts. Returns how many calls were answered and accelerated, and how many frames."""
    from etcd_aio.transport.native.accelerated import ACCELERATOR, BACKEND
    from tests.support.frame_scripts import Counted, Disagreement, run

    if ACCELERATOR is None:
        raise SystemExit(f"there is no accelerator: {BACKEND}")
    counted = Counted(ACCELERATOR)
    answers = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        try:
            answers += run(counted, Random(seed))
        except Disagreement as error:
            raise SystemExit(f"seed {seed}: {error}") from None
    return answers, counted.started, counted.read


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", type=int, nargs="?", default=100_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first script")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    if options.sanitize and not is_sanitized():
        return run_sanitized("tests.fuzz.frames", sys.argv[1:])
    use_sanitized()
    began = told = time.monotonic()
    totals = [0, 0, 0]
    first = options.seed // CHUNK
    chunks = range(first, first - (-options.scripts // CHUNK))
    with get_context("fork").Pool(options.processes) as pool:
        for number, counts in enumerate(pool.imap_unordered(fuzz, chunks), 1):
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
            if time.monotonic() > told + 60:
                told = time.monotonic()
                print(f"{number * CHUNK} scripts, {told - began:.0f} s", flush=True)
    answers, started, read = totals
    seconds = time.monotonic() - began
    print(
        f"{len(chunks) * CHUNK} scripts from seed {chunks[0] * CHUNK}, all alike: {answers} calls answered, {started} "
        f"started and {read} frames read by the accelerator, {seconds:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
