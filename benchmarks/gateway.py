"""What the JSON gateway costs beside HTTP/2: `python -m benchmarks.gateway`.

Of each engine on one server: calls a second one after another and 64 at once, CPU of this process and of the server for
each of those, and events a second of a watch.
"""

import argparse
import asyncio
import resource
import time
from pathlib import Path
from typing import Final

from etcd_aio import Client
from etcd_aio.testing import EtcdServer
from etcd_aio.transport import EngineName

ENGINES: Final[tuple[EngineName, ...]] = ("native", "grpclib", "gateway")
AT_ONCE: Final = 64
SIZE: Final = 256  # bytes of a value


def own_cpu() -> float:
    """Seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used; Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def measure(engine: EngineName, server: EtcdServer, calls: int) -> None:
    """Measure one engine."""
    assert server.pid is not None
    async with Client(server.endpoint, engine=engine, timeout=60) as client:
        await client.put("k", b"x" * SIZE)

        async def gets(count: int) -> None:
            for _ in range(count):
                await client.get("k", serializable=True)

        await asyncio.gather(*(gets(20) for _ in range(AT_ONCE)))
        began = time.perf_counter()
        await gets(calls // 4)
        alone = (time.perf_counter() - began) / (calls // 4)
        began, ours, theirs = time.perf_counter(), own_cpu(), cpu_of(server.pid)
        await asyncio.gather(*(gets(calls // AT_ONCE) for _ in range(AT_ONCE)))
        done = calls // AT_ONCE * AT_ONCE
        seconds = time.perf_counter() - began
        ours, theirs = own_cpu() - ours, cpu_of(server.pid) - theirs
        events = calls // 2
        start = (await client.put("w/0", b"x" * SIZE)).revision
        async with Client(server.endpoint) as writer:
            for part in range(0, events, AT_ONCE):
                await asyncio.gather(*(writer.put(f"w/{part + n}", b"x" * SIZE) for n in range(AT_ONCE)))
        began = time.perf_counter()
        seen = 0
        async with client.watch(prefix="w/", start_revision=start) as watcher:
            async for _ in watcher:
                seen += 1
                if seen == events:
                    break
        watched = time.perf_counter() - began
    print(
        f"{engine:<8} one at a time {1 / alone:8.0f}/s  {AT_ONCE} at once {done / seconds:8.0f}/s"
        f"  CPU of a call {ours / done * 1e6:6.0f} us here {theirs / done * 1e6:6.0f} us there"
        f"  events {events / watched:8.0f}/s",
        flush=True,
    )


async def main() -> None:
    """Measure all engines, by turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    async with EtcdServer() as server:
        for _ in range(arguments.rounds):
            for engine in ENGINES:
                await measure(engine, server, arguments.calls)


if __name__ == "__main__":
    asyncio.run(main())
