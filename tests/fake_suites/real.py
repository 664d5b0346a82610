"""A real cluster at given ports, also as a command that begins and ends as `etcd-aio fake` does.

python -m tests.fake_suites.real --listen=127.0.0.1:2379 --members=3
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from etcd_aio.testing import EtcdServer
from etcd_aio.testing.options import Membership

_VERSION: Final = "3.7"


@asynccontextmanager
async def real_cluster(
    port: int, members: int, flags: Sequence[str] = (), *, is_found_by_name: bool = False
) -> AsyncIterator[list[str]]:
    """A real cluster; the members take the ports behind the first one, and yields their endpoints.

    Args:
        port: of the first member.
        members: how many.
        flags: of each.
        is_found_by_name: whether `pgrep -f -- '--name pifpaf1'` finds a member, as two of the suites look for them.
    """
    names = [f"pifpaf{number}" for number in range(members)]  # as two of the suites want
    ports = {name: (port + number, port + 100 + number) for number, name in enumerate(names)}
    membership = Membership({name: f"http://127.0.0.1:{peer}" for name, (_, peer) in ports.items()})
    servers = [
        EtcdServer(
            name,
            ports=ports[name],
            membership=membership,
            version=_VERSION,
            flags=[*flags, *(("--name", name) if is_found_by_name else ())],
            start_timeout=60.0,
        )
        for name in names
    ]
    async with AsyncExitStack() as stack:
        for server in servers:
            stack.push_async_callback(server.aclose)
        await asyncio.gather(*(server.start() for server in servers))
        yield [server.endpoint for server in servers]


async def _main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", required=True)
    parser.add_argument("--members", type=int, required=True)
    options = parser.parse_args(words)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with real_cluster(int(options.listen.rpartition(":")[2]), options.members) as endpoints:
        print(",".join(endpoints), flush=True)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
