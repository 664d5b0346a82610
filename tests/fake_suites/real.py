"""A real cluster at given ports, also as a command that begins and ends as `etcd-aio fake` does.

python -m tests.fake_suites.real --listen=127.0.0.1:2379 --members=3
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from etcd_aio.testing import EtcdServer
from etcd_aio.testing.health_probe import ProbeError
from etcd_aio.testing.options import Membership

_VERSION: Final = "3.7"
_DOWN_SECONDS: Final = 1.5  # that a member which is killed stays away
_PAUSE: Final = 0.1  # seconds


@asynccontextmanager
async def real_cluster(
    port: int, members: int, flags: Sequence[str] = (), *, is_found_by_name: bool = False, kill_every: float = 0.0
) -> AsyncIterator[list[str]]:
    """A real cluster; the members take the ports behind the first one, and yields their endpoints.

    Args:
        port: of the first member.
        members: how many.
        flags: of each.
        kill_every: seconds from one kill of the leader to the next; 0 for none.
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
        if kill_every:
            killing = asyncio.create_task(_kill_leaders(servers, kill_every), name="kills")
            stack.push_async_callback(_end, killing)
        yield [server.endpoint for server in servers]


async def _end(killing: asyncio.Task[None]) -> None:
    killing.cancel()
    await asyncio.wait([killing])
    if not killing.cancelled():
        await killing  # it could not start a server again


async def _kill_leaders(servers: Sequence[EtcdServer], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds - _DOWN_SECONDS)
        leader = await _leader(servers)
        await leader.kill()
        await asyncio.sleep(_DOWN_SECONDS)
        await leader.restart()


async def _leader(servers: Sequence[EtcdServer]) -> EtcdServer:
    while True:
        for server in servers:
            with suppress(ProbeError):
                status = await server.raft_status()
                if status.leader_id == status.member_id:
                    return server
        await asyncio.sleep(_PAUSE)


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
