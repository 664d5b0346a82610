"""A rolling replacement of five servers of a service, while requests come at a steady rate."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from etcd_aio import Client
from etcd_aio.base.aio import start_task
from etcd_aio.services import Endpoints
from tests.support.until import until

SERVERS: Final = 5
RATE: Final = 500  # requests a second
MOST: Final = 10  # requests under way: a machine that is too slow for the rate gets fewer
DRAIN: Final = 0.3  # seconds from the end of an entry to that of its server


class Service(Protocol):
    """A server that is reached at an address."""

    @property
    def address(self) -> str: ...


async def replaced_under_load(
    etcd: Client,
    service: Endpoints,
    make: Callable[[], AbstractAsyncContextManager[Service]],
    request: Callable[[], Awaitable[str]],
    *,
    balances_requests: bool = True,
) -> None:
    """Start five servers and replace each; meanwhile requests are made, which return the address that has answered.

    No request may fail, and each server gets some, unless connections are balanced instead of requests.
    """
    addresses: list[str] = []
    stops: list[asyncio.Event] = []
    running: list[asyncio.Task[None]] = []

    async def run(ready: asyncio.Event, stop: asyncio.Event) -> None:
        async with make() as server, etcd.register("svc/api", server.address, drain=DRAIN):
            addresses.append(server.address)
            ready.set()
            await stop.wait()

    async def start() -> None:
        ready, stop = asyncio.Event(), asyncio.Event()
        running.append(start_task(run(ready, stop), name="server"))
        stops.append(stop)
        await ready.wait()

    for _ in range(SERVERS):
        await start()
    await service.wait_endpoints(at_least=SERVERS)
    answers: list[asyncio.Task[str]] = []
    seen: set[str] = set()
    is_over = asyncio.Event()

    async def load() -> None:
        async def one() -> str:
            seen.add(answer := await request())
            return answer

        while not is_over.is_set():
            if sum(not answer.done() for answer in answers[-MOST:]) < MOST:
                answers.append(start_task(one(), name="request"))
            await asyncio.sleep(1 / RATE)

    loading = start_task(load(), name="load")
    for number in range(SERVERS):
        await start()
        new = addresses[-1]
        while new not in [endpoint.address for endpoint in service.endpoints]:
            await service.wait_change()
        if balances_requests:
            await until(lambda: seen.issuperset(addresses), answers)
        stops[number].set()
        await running[number]  # its socket is closed
    at_last = len(answers)
    await until(lambda: len(answers) > at_last + SERVERS, answers)
    is_over.set()
    await loading
    told = await asyncio.gather(*answers)
    print(f"{len(told)} requests while {SERVERS} servers were replaced")
    assert set(told[at_last:]) <= set(addresses[SERVERS:])
    assert set(told) <= set(addresses)
    assert len(set(addresses)) == 2 * SERVERS
    for stop in stops:
        stop.set()
    await asyncio.gather(*running)
