"""Registration and discovery of services on one server: `python -m benchmarks.naming`.

outage     seconds from the end of an outage of three times the TTL until an entry is there again
many       seconds until 1 000 registrations of one process are there: on entering, after such an outage, and until all
           are left; with the streams that they share
change     milliseconds from the answer of a change until those who resolve the service have it, beside Go's resolver
local      microseconds of `endpoints` and `pick`, of 1 000 endpoints
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from benchmarks.cache import each
from benchmarks.environments import GoProgram, UnavailableError, default_cache
from etcd_aio import Client
from etcd_aio.services import Endpoints, Registration, naming
from etcd_aio.testing import EtcdServer, FaultProxy

TTL: Final = 2  # seconds: the least that etcd grants
TARGET: Final = "svc/web"


async def outage(proxy: FaultProxy, registrations: Sequence[Registration]) -> float:
    """Seconds from the end of an outage until all are registered again."""
    proxy.refuse()
    proxy.reset()
    await asyncio.gather(*(registration.lost() for registration in registrations))
    await asyncio.sleep(3 * TTL)
    proxy.heal()
    began = time.perf_counter()
    await asyncio.gather(*(registration.wait_registered() for registration in registrations))
    return time.perf_counter() - began


async def one(server: EtcdServer, rounds: int) -> None:
    """Heal one registration."""
    async with (
        FaultProxy(server.endpoint) as proxy,
        Client(proxy.endpoint) as client,
        client.register(TARGET, "10.0.0.1:80", ttl=TTL) as registration,
    ):
        taken = [await outage(proxy, [registration]) for _ in range(rounds)]
    print(f"outage of {3 * TTL} s           {statistics.median(taken):8.2f} s median {max(taken):8.2f} s most")


async def many(server: EtcdServer, count: int, rounds: int) -> None:
    """Enter, heal and leave many registrations."""
    entered, healed, left = [], [], []
    streams = 0
    async with FaultProxy(server.endpoint) as proxy, Client(proxy.endpoint) as client:
        for _ in range(rounds):
            registrations = [client.register(TARGET, f"10.0.0.{number}:80", ttl=TTL) for number in range(count)]
            began = time.perf_counter()
            await asyncio.gather(*(registration.__aenter__() for registration in registrations))
            entered.append(time.perf_counter() - began)
            streams = max(streams, len(client.streams()))
            healed.append(await outage(proxy, registrations))
            began = time.perf_counter()
            await asyncio.gather(*(registration.aclose() for registration in registrations))
            left.append(time.perf_counter() - began)
    for name, taken in (("entered", entered), ("after an outage", healed), ("left", left)):
        what = f"{count} {name}"
        print(f"{what:<22} {statistics.median(taken):8.2f} s median {max(taken):8.2f} s most, {streams} streams")


async def change(client: Client, other: Client, endpoint: str, go: list[str], times: int) -> None:
    """Change the entries, and wait for each change."""
    seen: asyncio.Queue[tuple[str, float]] = asyncio.Queue()

    async def follow(web: Endpoints) -> None:
        async for change in web.changes():
            if change.endpoints:
                seen.put_nowait((change.endpoints[0].address, time.perf_counter()))

    async def follow_go(lines: asyncio.StreamReader) -> None:
        async for line in lines:
            seen.put_nowait((json.loads(line)[0], time.perf_counter()))

    async def measure(name: str) -> None:
        taken = []
        for number in range(times):
            address = f"10.0.0.{number}:80"
            add = [naming.NewEndpoint(address, name="only")]
            await naming.update(other, TARGET, add=add)
            began = time.perf_counter()
            while (told := await seen.get())[0] != address:
                pass
            taken.append((told[1] - began) * 1e3)
            await asyncio.sleep(0.001)
        taken.sort()
        half, most = taken[len(taken) // 2], taken[len(taken) * 99 // 100]
        print(f"{name:<22} {half:8.2f} ms p50 {most:12.2f} ms p99")

    async with client.resolve(TARGET) as web:
        following = asyncio.create_task(follow(web))
        await measure("change")
        following.cancel()
    if go:
        async with go_resolver(go, endpoint) as lines:
            await lines.readline()  # it resolves
            following = asyncio.create_task(follow_go(lines))
            await measure("change, Go's resolver")
            following.cancel()
    await other.delete(prefix=f"{TARGET}/")


@asynccontextmanager
async def go_resolver(go: list[str], endpoint: str) -> AsyncIterator[asyncio.StreamReader]:
    """Run Go's resolver; it prints the addresses of each state."""
    arguments = (f"-endpoint={endpoint}", "-do=resolve", f"-target={TARGET}")
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*go, *arguments, stdin=pipe, stdout=pipe)
    assert child.stdout is not None
    try:
        yield child.stdout
    finally:
        child.kill()
        await child.wait()


async def local(client: Client, count: int) -> None:
    """Reads without an await."""
    for begin in range(0, count, 100):
        await naming.update(client, TARGET, add=[f"10.0.0.{number}:80" for number in range(begin, begin + 100)])
    began = time.perf_counter()
    async with client.resolve(TARGET) as web:
        assert len(web.endpoints) == count
        print(f"resolve {count} entries   {(time.perf_counter() - began) * 1e3:8.2f} ms")
        print(f"endpoints              {each(lambda: web.endpoints, 100_000):8.3f} us, the lambda included")
        print(f"pick                   {each(lambda: web.pick(), 100_000):8.3f} us")
    await client.delete(prefix=f"{TARGET}/")


async def main(arguments: Sequence[str]) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Registration and discovery of services.")
    parser.add_argument("--rounds", type=int, default=5, help="outages")
    parser.add_argument("--count", type=int, default=1000, help="registrations of one process")
    parser.add_argument("--changes", type=int, default=1000)
    options = parser.parse_args(arguments)
    go: list[str] = []
    try:
        go = await asyncio.to_thread(GoProgram("tests/support/golayers").prepare, default_cache())
    except UnavailableError as error:
        print(f"without Go's resolver: {error}")
    async with (
        EtcdServer(flags=["--unsafe-no-fsync"]) as server,
        Client(server.endpoint) as client,
        Client(server.endpoint) as other,
    ):
        await local(client, options.count)
        await change(client, other, server.endpoint, go, options.changes)
        await one(server, options.rounds)
        await many(server, options.count, options.rounds)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
