"""Runs one suite on one server, in a network of its own: `python -m tests.fake_suites.inside SUITE SERVER FOLDER FILE`.

The outcomes go into the file, as JSON.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from etcd_aio import Client
from etcd_aio.testing import EtcdServer
from etcd_aio.testing.options import Membership
from tests.fake_suites.steps import Suite
from tests.fake_suites.table import SUITES

_PORT: Final = 2379  # where these suites look


@asynccontextmanager
async def _real(suite: Suite) -> AsyncIterator[list[str]]:
    """A real cluster."""
    names = [f"pifpaf{number}" for number in range(suite.members)]  # as two of the suites want
    ports = {name: (_PORT + 2 * number, _PORT + 2 * number + 1) for number, name in enumerate(names)}
    membership = Membership({name: f"http://127.0.0.1:{peer}" for name, (_, peer) in ports.items()})
    servers = [
        EtcdServer(name, ports=ports[name], membership=membership, version="3.7", flags=suite.flags, start_timeout=60.0)
        for name in names
    ]
    async with AsyncExitStack() as stack:
        for server in servers:
            stack.push_async_callback(server.aclose)
        await asyncio.gather(*(server.start() for server in servers))
        yield [server.endpoint for server in servers]


@asynccontextmanager
async def _fake(suite: Suite) -> AsyncIterator[list[str]]:
    """A fake, served by the command line."""
    words = ("-m", "etcd_aio", "fake", f"--listen=127.0.0.1:{_PORT}", f"--members={suite.members}")
    child = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    try:
        yield (await child.stdout.readline()).decode().strip().split(",")
    finally:
        child.terminate()
        await child.wait()


async def _prepare(suite: Suite, endpoints: Sequence[str]) -> None:
    """Bring the server into the state that the suite begins with."""
    if suite.name == "rust":
        async with Client(endpoints) as client:
            await client.auth.user_add("root", "rootpwd")
            await client.auth.user_grant_role("root", "root")


async def outcomes_of(suite: Suite, server: str, folder: Path, log: Path) -> dict[str, str]:
    """Run the suite."""
    async with _real(suite) if server == "real" else _fake(suite) as endpoints:
        await _prepare(suite, endpoints)
        return await asyncio.to_thread(suite.run, folder, endpoints, log)


def main(name: str, server: str, folder: Path, file: Path) -> None:
    """Run the suite of this name."""
    outcomes = asyncio.run(outcomes_of(SUITES[name], server, folder, file.with_suffix(".log")))
    file.write_text(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
