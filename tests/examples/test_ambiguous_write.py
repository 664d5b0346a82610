"""The example of a write of unknown outcome, when more than one thing goes wrong."""

import asyncio

import pytest

from etcd_aio import Client, NoAvailableEndpointsError
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.examples.load import load

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

KEY = "example/order"
PATIENCE = 30.0  # seconds for what takes milliseconds, on a machine that is busy

put_once = load("ambiguous_write").put_once


async def holds(client: Client, value: str) -> None:
    """Return once the key holds this value."""
    async with asyncio.timeout(PATIENCE):
        while (kv := await client.get(KEY)) is None or kv.text() != value:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


async def test_a_later_round_that_fails_for_sure_does_not_hide_that_an_earlier_one_may_have_been_applied(
    server: EtcdServer,
) -> None:
    async with (
        Client(server.endpoint) as direct,
        FaultProxy(server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=1.0) as client,
    ):
        before = await client.put(KEY, "free")
        proxy.cut_after(0, "to_client", connection="open")
        proxy.refuse()
        with pytest.raises(NoAvailableEndpointsError) as caught:
            await put_once(client, KEY, "mine", revision=before.revision)
        assert caught.value.maybe_applied
        await holds(direct, "mine")  # so it may not say that it was not written
        await direct.delete(KEY)


async def test_a_value_that_won_and_was_overwritten_has_won(server: EtcdServer) -> None:
    async with (
        Client(server.endpoint) as direct,
        FaultProxy(server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=PATIENCE) as client,
    ):
        before = await client.put(KEY, "free")
        proxy.cut_after(0, "to_client", connection="open")
        proxy.refuse()
        writing = asyncio.create_task(put_once(client, KEY, "mine", revision=before.revision))
        await holds(direct, "mine")
        await direct.put(KEY, "theirs")
        proxy.accept()
        assert await writing
        await direct.delete(KEY)


async def test_whoever_comes_second_is_told(server: EtcdServer) -> None:
    async with Client(server.endpoint) as client:
        before = await client.put(KEY, "free")
        await client.put(KEY, "theirs")
        assert not await put_once(client, KEY, "mine", revision=before.revision)
        await client.delete(KEY)
        assert not await put_once(client, KEY, "mine", revision=before.revision)
