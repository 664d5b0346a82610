"""Differential fuzzing of the decoders for a long time: `python -m tests.fuzz.codec 10000000`.

`--seed` begins elsewhere, `--processes` shares the work, `--sanitize` compiles the accelerator with gcc's address and
undefined-behaviour sanitizers first. The last line says how many messages were decoded and refused; a disagreement ends
the run with the message, and exit code 1.
"""

import argparse
import sys
import time
from multiprocessing import get_context
from random import Random

from tests.fuzz.sanitized import is_sanitized, run_sanitized, use_sanitized

CHUNK = 1_000
REFERENCE_EVERY = 10


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
    if options.sanitize and not is_sanitized():
        return run_sanitized("tests.fuzz.codec", sys.argv[1:])
    use_sanitized()
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
