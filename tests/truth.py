"""`python -m tests.truth`: compare the fake with real servers of every minor version, for long.

It ends at the first difference, with the shortest history that shows it; that history becomes an example in
tests/integration/test_fake_truth.py before the fake is mended.
"""

import argparse
import asyncio
import sys
import time
from random import Random, randrange

from tests.support.differential import Difference
from tests.support.truth import MACHINES, Truth, found_versions


def main() -> int:
    """Run one machine. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("machine", choices=MACHINES)
    parser.add_argument("--steps", type=int, default=10_000, help="requests to compare with each version")
    parser.add_argument("--seed", type=int, default=randrange(10**6))
    parser.add_argument("--versions", nargs="+", default=found_versions())
    options = parser.parse_args()
    begun = time.monotonic()
    print(f"{options.machine}: seed {options.seed}, etcd {' '.join(options.versions)}", flush=True)
    with asyncio.Runner() as runner, Truth(runner, options.versions) as truth:
        try:
            tally = truth.run(MACHINES[options.machine], Random(options.seed), options.steps)
        except Difference as difference:
            print(difference)
            return 1
    numbers = "\n".join(f"  {count:7} {name} {status}" for (name, status), count in sorted(tally.items()))
    seconds = time.monotonic() - begun
    print(f"no difference in {tally.total()} steps, {seconds:.0f} s; with {options.versions[0]}:\n{numbers}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
