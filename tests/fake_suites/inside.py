"""Runs one suite on one server, in a network of its own: `python -m tests.fake_suites.inside SUITE SERVER FOLDER FILE`.

The outcomes go into the file, as JSON.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from etcd_aio import Client
from tests.fake_suites.real import real_cluster
from tests.fake_suites.steps import Server, Suite
from tests.fake_suites.table import SUITES

_PORT: Final = 2379  # where these suites look
_COMMANDS: Final = {
    "real": (sys.executable, "-m", "tests.fake_suites.real"),
    "fake": (sys.executable, "-m", "etcd_aio", "fake"),
}


@asynccontextmanager
async def _fake(members: int) -> AsyncIterator[list[str]]:
    """A fake, served by the command line."""
    words = (*_COMMANDS["fake"], f"--listen=127.0.0.1:{_PORT}", f"--members={members}")
    child = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    try:
        yield (await child.stdout.readline()).decode().strip().split(",")
    finally:
        child.terminate()
        await child.wait()


@asynccontextmanager
async def _none() -> AsyncIterator[list[str]]:
    yield []


def _started(suite: Suite, server: str) -> AbstractAsyncContextManager[list[str]]:
    """What the suite runs on; nothing if it starts its own servers."""
    if not suite.members:
        return _none()
    return real_cluster(_PORT, suite.members, suite.flags) if server == "real" else _fake(suite.members)


async def outcomes_of(suite: Suite, server: str, folder: Path, log: Path) -> dict[str, str]:
    """Run the suite."""
    async with _started(suite, server) as endpoints:
        if suite.name == "rust":
            async with Client(endpoints) as client:
                await client.auth.user_add("root", "rootpwd")
                await client.auth.user_grant_role("root", "root")
        return await asyncio.to_thread(suite.run, folder, Server(endpoints, _COMMANDS[server]), log)


def main(name: str, server: str, folder: Path, file: Path) -> None:
    """Run the suite of this name."""
    outcomes = asyncio.run(outcomes_of(SUITES[name], server, folder, file.with_suffix(".log")))
    file.write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
