"""A change of many keys in one revision: a fake delivers it to a watch whole, as a real server does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from etcd_aio import Client, EventType, op
from etcd_aio.fake import FakeEtcd
from etcd_aio.testing import EtcdServer
from tests.support.until import PATIENCE

pytestmark = pytest.mark.anyio

KEYS_AT_ONCE = 100


@pytest.fixture(params=["etcd", "fake", "served fake"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client of a server of this test's own: a real one, a fake, and a fake behind sockets."""
    async with AsyncExitStack() as stack:
        if request.param == "etcd":
            server = await stack.enter_async_context(EtcdServer())
            client = Client(server.endpoint, engine="native")
        else:
            fake = await stack.enter_async_context(FakeEtcd())
            served = request.param == "served fake"
            client = Client(await stack.enter_async_context(fake.serve())) if served else fake.client()
        yield await stack.enter_async_context(client)


@pytest.mark.parametrize("fragment", [None, False, True])
@pytest.mark.parametrize("number", [800, 2_000, 18_001])
async def test_the_deletion_of_a_range_is_delivered_whole(client: Client, number: int, fragment: bool | None) -> None:
    keys = [b"k/%06d" % index for index in range(number)]
    for start in range(0, number, KEYS_AT_ONCE):
        await client.txn().then(*(op.put(key, "") for key in keys[start : start + KEYS_AT_ONCE])).commit()
    async with asyncio.timeout(PATIENCE), client.watch(prefix="k/", fragment=fragment) as watcher:
        deleted = await client.delete(prefix="k/")
        batch = await watcher.next_batch()
    assert deleted.deleted == number
    assert batch.revision == deleted.header.revision
    assert {event.type for event in batch.events} == {EventType.DELETE}
    assert [event.kv.key for event in batch.events] == keys
