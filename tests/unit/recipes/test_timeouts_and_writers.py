"""recipes/, recipes/calls.py: recipes keep their timeout or that of their client; a forwarding writer is no worse."""

from typing import Any

import pytest

from etcd_aio import Client, DeleteResult, EtcdTimeoutError, PutResult, Txn
from etcd_aio.errors import ItemInDoubtError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Barrier, Counter, IdAllocator, Kubernetes, PriorityQueue, Queue, WorkQueue

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

CALLS: dict[str, Any] = {
    "queue": lambda client: Queue(client, "q").put("v"),
    "priority queue": lambda client: PriorityQueue(client, "q").put("v"),
    "work queue": lambda client: WorkQueue(client, "q").put("v"),
    "counter": lambda client: Counter(client, "n").add(),
    "ids": lambda client: IdAllocator(client, "n").next(),
    "barrier": lambda client: Barrier(client, "b").hold(),
    "optimistic write": lambda client: client.kubernetes().optimistic_put("k", "v", 0),
    "exactly once": lambda client: client.exactly_once().put("k", "v"),
}


CALLS_OF_THEIR_OWN: dict[str, Any] = {
    "queue": lambda client: Queue(client, "q", timeout=2.0).put("v"),
    "size of a queue": lambda client: Queue(client, "q", timeout=2.0).size(),
    "priority queue": lambda client: PriorityQueue(client, "q", timeout=2.0).put("v"),
    "work queue": lambda client: WorkQueue(client, "q", timeout=2.0).put("v"),
    "counter": lambda client: Counter(client, "n", timeout=2.0).get(),
    "ids": lambda client: IdAllocator(client, "n", timeout=2.0).next(),
    "optimistic write": lambda client: Kubernetes(client, timeout=2.0).optimistic_put("k", "v", 0),
    "kubernetes get": lambda client: Kubernetes(client, timeout=2.0).get("k"),
    "kubernetes list": lambda client: Kubernetes(client, timeout=2.0).list("k"),
    "kubernetes count": lambda client: Kubernetes(client, timeout=2.0).count("k"),
}


class Forwarding:
    """All that a `Writer` needs, and nothing else."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def put(self, *args: Any, **options: Any) -> PutResult:
        put: Any = self._client.put
        result: PutResult = await put(*args, **options)
        return result

    async def delete(self, *args: Any, **options: Any) -> DeleteResult:
        return await self._client.delete(*args, **options)

    def txn(self) -> Txn:
        return self._client.txn()


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_gives_up_when_a_call_of_the_client_would(name: str) -> None:
    async with FakeEtcd() as fake, fake.client(timeout=30.0) as client:
        await client.get("k")
        began = client.backend.shared.clock()
        with fake.fault("KV/Txn", hang=True), fake.fault("KV/Put", hang=True), fake.fault("KV/Range", hang=True):
            if name == "exactly once":
                async with client.exactly_once() as once:
                    with pytest.raises(EtcdTimeoutError):
                        await once.put("k", "v")
            else:
                with pytest.raises((EtcdTimeoutError, ItemInDoubtError)):
                    await CALLS[name](client)
        assert 29.9 <= client.backend.shared.clock() - began < 40.0


@pytest.mark.parametrize("name", CALLS_OF_THEIR_OWN)
async def test_a_recipe_with_a_timeout_of_its_own_keeps_that(name: str) -> None:
    async with FakeEtcd() as fake, fake.client(timeout=30.0) as client:
        await client.get("k")
        began = client.backend.shared.clock()
        with (
            fake.fault("KV/Txn", hang=True),
            fake.fault("KV/Range", hang=True),
            pytest.raises((EtcdTimeoutError, ItemInDoubtError)),
        ):
            await CALLS_OF_THEIR_OWN[name](client)
        assert 1.9 <= client.backend.shared.clock() - began < 10.0


async def test_a_lost_answer_costs_a_forwarding_writer_no_item() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = Queue(client, "q", writer=Forwarding(client))
        await queue.put("job")
        with fake.fault("KV/Txn", reset=True, after_apply=False, times=1):
            item = await queue.get(timeout=10.0)
        assert item.value == b"job"
        assert await queue.size() == 0
