"""recipes/: the second loop is refused at once, and nothing waits for ever."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from etcd_aio import Client
from etcd_aio.errors import WrongLoopError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Counter, Group, PriorityQueue, Queue, WorkQueue

pytestmark = pytest.mark.anyio

Call = Callable[[], Awaitable[object]]


def from_another_loop(call: Call) -> BaseException | None:
    """What a call raises in the loop of another thread; it has some seconds."""
    raised: list[BaseException] = []

    async def run() -> None:
        try:
            async with asyncio.timeout(5):
                await call()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    thread.join()
    return raised[0] if raised else None


@asynccontextmanager
async def used(client: Client, what: str) -> AsyncIterator[tuple[Call, Call]]:
    """A call that waits in this loop, and one for another loop, of the same object."""
    if what == "queue":
        queue = Queue(client, "q")
        yield queue.get, queue.get
    elif what == "priority queue":
        priority = PriorityQueue(client, "q")
        yield lambda: priority.put("a"), lambda: priority.put("b")
    elif what == "counter":
        counter = Counter(client, "c")
        yield counter.add, counter.add
    elif what == "worker":
        async with WorkQueue(client, "w").worker() as worker:
            yield worker.__anext__, worker.__anext__
    elif what == "views":
        async with Group(client, "g").cache() as members:
            views = members.changes()
            await anext(views)
            yield lambda: asyncio.sleep(60), views.__anext__
    else:
        async with Group(client, "g").ring() as ring:
            changes = ring.changes()
            await anext(changes)
            yield lambda: asyncio.sleep(60), changes.__anext__


@pytest.mark.parametrize("what", ["queue", "priority queue", "counter", "worker", "views", "ring"])
async def test_another_loop_is_refused(what: str) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("a")
        async with used(client, what) as (here, there):
            with fake.fault("KV/Txn", hang=what in ("counter", "priority queue")):
                waiting = asyncio.ensure_future(here())
                await asyncio.sleep(0.05)
                assert isinstance(await asyncio.to_thread(from_another_loop, there), WrongLoopError)
                assert not waiting.done()
                waiting.cancel()
                await asyncio.wait([waiting])
