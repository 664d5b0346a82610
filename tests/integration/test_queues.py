"""Queues on real servers, and together with those of the official Go client. Most of their tests run on the fake."""

import asyncio
import json
from random import Random

import pytest

from etcd_aio import Client
from etcd_aio.errors import ItemInDoubtError, NoSpaceError, PermissionDeniedError, QueueTimeoutError
from etcd_aio.recipes import PriorityQueue, Queue
from etcd_aio.testing import EtcdCluster, EtcdServer
from tests.support.auth import QUICK_LOGINS, ROOT, WEB, enable_auth
from tests.support.full_store import skip_if_full_store_keeps_all
from tests.support.recipes import golayers

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

KINDS = pytest.mark.parametrize("kind", [Queue, PriorityQueue])
Kind = type[Queue] | type[PriorityQueue]


@KINDS
async def test_consumers_of_two_clients_share_the_items(
    shared_server: EtcdServer, client: Client, prefix: str, kind: Kind
) -> None:
    name = f"{prefix}q"
    async with Client(shared_server.endpoint) as other, other.exactly_once(prefix=f"{prefix}once/") as once:
        queues = [kind(client, name), kind(other, name, writer=once)]
        taken: list[bytes] = []

        async def consume(queue: Queue | PriorityQueue) -> None:
            taken.extend([(await queue.get(timeout=60)).key for _ in range(50)])

        consuming = [asyncio.ensure_future(consume(queue)) for queue in queues for _ in range(2)]
        put = await asyncio.gather(*(queue.put(f"{number}") for number in range(100) for queue in queues))
        await asyncio.gather(*consuming)
        assert sorted(taken) == sorted(put)
        assert await queues[0].size() == 0


@KINDS
async def test_waiting_outlasts_a_compaction(client: Client, prefix: str, kind: Kind) -> None:
    queue = kind(client, f"{prefix}q")
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0.3)
    put = await client.put(f"{prefix}other", "")
    await client.compact(put.revision)
    key = await queue.put("a")
    assert (await waiting).key == key


@pytest.mark.whole_store
@KINDS
async def test_go_and_ours_put_into_one_queue_and_take_from_it(
    shared_server: EtcdServer, client: Client, prefix: str, kind: Kind
) -> None:
    name, priority = f"{prefix}q", "-1" if kind is Queue else "100"
    queue = kind(client, name)

    async def enqueue(count: int) -> None:
        async with golayers("enqueue", shared_server.endpoint, name, "-priority", priority, "-count", f"{count}") as go:
            assert await go.line() == '"put"'

    # Go puts, and ours takes; in between ours puts, and its number is the next one.
    await enqueue(3)
    ours = await queue.put("own")
    await enqueue(2)
    keys = [item.key for item in await queue.peek(10)]
    assert keys.index(ours) == 3
    assert [(await queue.get(timeout=10)).text() for _ in range(6)] == ["go 0", "go 1", "go 2", "own", "go 0", "go 1"]
    # Ours puts, and Go takes: what is there, and what comes while it waits.
    await queue.put_all(["0", "1"])
    async with golayers("dequeue", shared_server.endpoint, name, "-priority", priority, "-count", "4") as go:
        assert [json.loads(await go.line()) for _ in range(3)] == ["taking", "0", "1"]
        for number in (2, 3):
            await asyncio.sleep(0.2)
            await queue.put(f"{number}")
            assert json.loads(await go.line()) == f"{number}"
    # Both take.
    async with golayers("dequeue", shared_server.endpoint, name, "-priority", priority, "-count", "10") as go:
        assert await go.line() == '"taking"'
        taken: list[str] = []

        async def take() -> None:
            async for item in queue:
                taken.append(item.text())
                if len(taken) == 10:
                    return

        taking = asyncio.ensure_future(take())
        for number in range(20):
            await queue.put(f"{number}")
        both = [json.loads(await go.line()) for _ in range(10)]
        await taking
        assert sorted(both + taken, key=int) == [f"{number}" for number in range(20)]


@KINDS
async def test_a_full_store_refuses_puts_and_serves_takes(kind: Kind) -> None:
    async with EtcdServer(flags=["--quota-backend-bytes=1000000"]) as server, Client(server.endpoint) as client:
        queue = kind(client, "q")
        await queue.put_all(["a", "b"])

        async def fill() -> None:
            for number in range(500):
                await client.put(f"k{number}", b"x" * 100_000)

        with pytest.raises(NoSpaceError):
            await fill()
        await skip_if_full_store_keeps_all(client)
        with pytest.raises(ItemInDoubtError) as raised:
            await queue.put("c")
        assert isinstance(raised.value.__cause__, NoSpaceError)
        assert [item.text() for item in await asyncio.gather(queue.get(), queue.get())] == ["a", "b"]
        assert await queue.size() == 0


@pytest.mark.whole_store
async def test_without_permission_every_call_is_refused() -> None:
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        async with (
            Client(server.endpoint, auth=ROOT, allow_insecure_auth=True) as root,
            Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client,
        ):
            await Queue(root, "q").put("a")
            queue = Queue(client, "q")
            for call in (queue.put("a"), queue.get(timeout=10), queue.size(), queue.peek()):
                with pytest.raises(PermissionDeniedError):
                    await call
            assert await Queue(root, "q").size() == 1


async def kills(cluster: EtcdCluster, draw: Random) -> None:
    while True:
        member = draw.choice(cluster.members)
        await member.kill()
        await asyncio.sleep(draw.random())
        await member.restart()
        await asyncio.sleep(1 + draw.random())


@pytest.mark.nightly
@KINDS
async def test_each_item_is_taken_once_or_named_while_members_are_killed(cluster: EtcdCluster, kind: Kind) -> None:
    clients = [Client(cluster.endpoints, timeout=60.0) for _ in range(4)]
    put: set[bytes] = set()
    taken: list[bytes] = []
    doubtful: set[bytes] = set()
    killing = asyncio.ensure_future(kills(cluster, Random(7)))

    async def produce(worker: int) -> None:
        queue = kind(clients[worker % 4], "q", timeout=60.0)
        for number in range(1_000):
            try:
                put.add(await queue.put(f"{worker}/{number}"))
            except ItemInDoubtError as error:
                doubtful.update(error.keys)

    async def consume(queue: Queue | PriorityQueue) -> None:
        while True:
            try:
                taken.append((await queue.get(timeout=20.0)).key)
            except ItemInDoubtError as error:
                doubtful.update(error.keys)
            except QueueTimeoutError:
                return

    queues = [kind(client, "q", timeout=60.0) for client in clients]
    consuming = [asyncio.ensure_future(consume(queues[n % 4])) for n in range(10)]
    await asyncio.gather(*(produce(worker) for worker in range(10)))
    killing.cancel()
    await asyncio.wait([killing])
    for member in cluster.members:
        if not member.is_running:
            await member.restart()
    await asyncio.gather(*consuming)
    assert len(taken) == len(set(taken)), "taken twice"
    assert put ^ set(taken) <= doubtful, "lost without a word, or never put"
    for client in clients:
        await client.aclose()
