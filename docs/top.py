"""Make the picture of `etcd-aio top`: a real cluster of three members under load, one of them frozen.

python docs/top.py
"""

import asyncio
import json
import re
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from rich.console import Console

from etcd_aio import Client, EtcdError
from etcd_aio.cli.top_model import MemberRow, PrefixRow, Snapshot
from etcd_aio.cli.top_screen import screen
from etcd_aio.testing import EtcdCluster

PICTURE: Final = Path(__file__).parent / "pages" / "reference" / "top.svg"
FONTS: Final = re.compile(r"@font-face\s*\{[^}]*\}\s*")
SILENCE: Final = 4.0
PAUSE: Final = 0.005


async def load(client: Client) -> None:
    """Put keys until it is cancelled."""
    number = 0
    while True:
        with suppress(EtcdError):  # the frozen member answers none
            await client.put(f"app/{number % 100}", "x" * 200)
        number += 1
        await asyncio.sleep(PAUSE)


async def look() -> Snapshot:
    """What `top` shows once a follower has been silent for some time."""
    async with EtcdCluster(3, fsync=True) as cluster, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(endpoint)) for endpoint in cluster.endpoints]
        leader = await cluster.leader()
        frozen = next(member for member in cluster.members if member is not leader)
        loading = [asyncio.create_task(load(client)) for client in clients]
        words = ("-m", "etcd_aio", "top", "--interval=1s", "--watch=app/", "-w", "json")
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, *words, "--endpoints", ",".join(cluster.endpoints)), stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None  # noqa: S101 - it is a pipe
        try:
            for _ in range(3):
                await child.stdout.readline()
            frozen.pause()
            while True:
                found = snapshot_of(await child.stdout.readline())
                if any((row.silent or 0.0) > SILENCE for row in found.members):
                    return found
        finally:
            frozen.resume()
            for task in loading:
                task.cancel()
            child.terminate()
            await child.wait()
            await asyncio.gather(*loading, return_exceptions=True)


def snapshot_of(line: bytes) -> Snapshot:
    """The snapshot that a line of JSON has."""
    fields = json.loads(line)
    del fields["time"]
    fields["members"] = tuple(MemberRow(**row) for row in fields["members"])
    fields["prefixes"] = tuple(PrefixRow(**row) for row in fields["prefixes"])
    return Snapshot(**fields)


def main() -> None:
    """Write the picture."""
    with Path("/dev/null").open("w") as nowhere:
        console = Console(record=True, width=118, file=nowhere, force_terminal=True)
        console.print(screen(asyncio.run(look())))
    # Pages load nothing from other hosts.
    PICTURE.write_text(FONTS.sub("", console.export_svg(title="etcd-aio top", unique_id="top")))


if __name__ == "__main__":
    main()
