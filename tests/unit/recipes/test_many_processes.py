"""recipes/: the cost of many processes at one name: keys read, calls for an item, progress."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Counter, IdAllocator, PriorityQueue, Queue

_LATENCY: Final = 0.001  # on average: with variation, so that nothing comes in the same order for ever

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

WRITERS, CHANGES = 16, 50
ITEMS, CONSUMERS = 240, 8


@asynccontextmanager
async def clients_of(fake: FakeEtcd, count: int) -> AsyncIterator[list[Client]]:
    """Clients, each with a network of its own."""
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(count):
            network = fake.network()
            network.links[0].latency = _LATENCY
            clients.append(await stack.enter_async_context(fake.client(engine=network.engine)))
        yield clients


async def keys_read_by_each_waiter(waiters: int) -> float:
    """Keys that the server sends until all of them stand in the line of a semaphore, for each of them."""
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        read = 0
        do = client.do

        async def counted(operation: Any, **options: Any) -> Any:
            nonlocal read
            result = await do(operation, **options)
            parts = getattr(result, "responses", (result,))
            read += sum(len(part.kvs) for part in parts if hasattr(part, "kvs"))
            return result

        client.do = counted  # type: ignore[method-assign]

        async def wait() -> None:
            async with client.semaphore("s", limit=1, ttl=60):
                pass

        async with client.semaphore("s", limit=1, ttl=60), asyncio.TaskGroup() as tasks:
            waiting = [tasks.create_task(wait()) for _ in range(waiters)]
            await asyncio.sleep(5)
            found = read
            for task in waiting:
                task.cancel()
        return found / waiters


async def test_a_waiter_of_a_semaphore_reads_as_many_keys_in_a_long_line_as_in_a_short_one() -> None:
    few, many = await keys_read_by_each_waiter(40), await keys_read_by_each_waiter(120)
    assert few > 1
    assert many < 1.5 * few


@pytest.mark.parametrize("kind", [Queue, PriorityQueue])
async def test_an_item_takes_few_calls_however_many_consumers_there_are(kind: Any) -> None:
    """Those of one consumer, and half as many again: consumers keep apart, and see what the others take."""

    async def calls(consumers: int) -> float:
        async with FakeEtcd() as fake, fake.client() as client, clients_of(fake, consumers) as clients:
            queue = kind(client, "q")
            for _ in range(0, ITEMS, 60):
                await queue.put_all(["x"] * 60)
            left = ITEMS
            before = len(fake.calls)

            async def take(own: Any) -> None:
                nonlocal left
                while left:
                    await own.get(timeout=None)
                    left -= 1
                    if not left:
                        everything.set()

            everything = asyncio.Event()
            tasks = [asyncio.create_task(take(kind(own, "q"))) for own in clients]
            await everything.wait()
            found = len(fake.calls) - before
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            return found / ITEMS

    alone, together = await calls(1), await calls(CONSUMERS)
    assert together < 1.5 * alone + 1


WRITES: dict[str, Callable[[Client], Callable[[], Awaitable[object]]]] = {
    "counter": lambda client: Counter(client, "c").add,
    "ids": lambda client: IdAllocator(client, "i", block=1).next,
    "priority queue": lambda client: lambda: PriorityQueue(client, "p").put("x", priority=1),
    "stm": lambda client: lambda: client.stm(_increment, max_attempts=1000),
}


async def _increment(tx: Any) -> None:
    kv = await tx.get("s")
    tx.put("s", str(int(kv.text() if kv else 0) + 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
async def test_processes_that_change_one_key_advance_together(name: str) -> None:
    """When the first one is done, the others have mostly made a half of their changes; a tenth without their waits."""
    done = dict.fromkeys(range(WRITERS), 0)
    async with FakeEtcd() as fake:
        first: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def change(number: int, client: Client) -> None:
            write = WRITES[name](client)
            for _ in range(CHANGES):
                await write()
                done[number] += 1
            if not first.done():
                first.set_result(sum(done.values()))

        async with clients_of(fake, WRITERS) as clients, asyncio.TaskGroup() as tasks:
            for number, client in enumerate(clients):
                tasks.create_task(change(number, client))
    assert first.result() > WRITERS * CHANGES / 4
