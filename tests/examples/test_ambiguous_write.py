"""The example of a write of unknown outcome, with more than one fault."""

import asyncio

import pytest

from etcd_aio import Client, NoAvailableEndpointsError
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.examples.load import load

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

KEY = "example/order"
TIMEOUT = 30.0  # seconds; on an idle machine milliseconds are enough

put_once = load("ambiguous_write").put_once


async def wait_for_value(client: Client, value: str) -> None:
    """Wait until the key has this value."""
    async with asyncio.timeout(TIMEOUT):
        while (kv := await client.get(KEY)) is None or kv.text() != value:  # noqa: ASYNC110 - there is no notification
            await asyncio.sleep(0.01)


async def test_maybe_applied_of_an_earlier_round_survives_a_later_round_that_was_not_applied(
    server: EtcdServer,
) -> None:
    async with (
        Client(server.endpoint) as direct,
        FaultProxy(server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=3.0) as client,
    ):
        before = await client.put(KEY, "free")
        proxy.black_hole("to_client")
        writing = asyncio.create_task(put_once(client, KEY, "mine", revision=before.revision))
        await wait_for_value(direct, "mine")  # so "not applied" would be wrong
        proxy.refuse()
        proxy.reset()
        with pytest.raises(NoAvailableEndpointsError) as caught:
            await writing
        assert caught.value.maybe_applied
        await direct.delete(KEY)


async def test_a_value_that_was_first_counts_as_written_even_if_it_was_overwritten(server: EtcdServer) -> None:
    async with (
        Client(server.endpoint) as direct,
        FaultProxy(server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=TIMEOUT) as client,
    ):
        before = await client.put(KEY, "free")
        proxy.black_hole("to_client")
        writing = asyncio.create_task(put_once(client, KEY, "mine", revision=before.revision))
        await wait_for_value(direct, "mine")
        proxy.refuse()
        proxy.reset()
        await direct.put(KEY, "theirs")
        proxy.heal()
        assert await writing
        await direct.delete(KEY)


async def test_the_result_is_false_if_another_writer_was_first(server: EtcdServer) -> None:
    async with Client(server.endpoint) as client:
        before = await client.put(KEY, "free")
        await client.put(KEY, "theirs")
        assert not await put_once(client, KEY, "mine", revision=before.revision)
        await client.delete(KEY)
        assert not await put_once(client, KEY, "mine", revision=before.revision)
