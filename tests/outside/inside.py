"""Runs one suite, in a network of its own: `python -m tests.outside.inside SUITE own|ours FOLDER FILE [ARGUMENTS]`.

The outcomes go into the file, as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Final

from tests.fake_suites.real import real_cluster
from tests.outside.expected import Outcome
from tests.outside.table import SUITES

PORT: Final = 2379  # where these suites look


async def _outcomes(name: str, is_own: bool, folder: Path, log: Path, chosen: Sequence[str]) -> dict[str, Outcome]:
    suite = SUITES[name]
    servers: AbstractAsyncContextManager[object] = nullcontext()
    if suite.members:
        servers = real_cluster(PORT, suite.members, is_found_by_name=True, kill_every=suite.kill_every)
    async with servers:
        return await asyncio.to_thread(suite.run, folder, is_own, log, *chosen)


def main(name: str, client: str, folder: Path, file: Path, chosen: Sequence[str]) -> None:
    """Run the suite of this name with its own client, or with ours."""
    outcomes = asyncio.run(_outcomes(name, client == "own", folder, file.with_suffix(".log"), chosen))
    file.write_text(json.dumps({test: [outcome.word, outcome.reason] for test, outcome in outcomes.items()}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:])
