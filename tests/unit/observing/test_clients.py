"""observing/observer.py: told of clients at their first use, and when they are closed."""

import gc
import weakref

import pytest

from etcd_aio import ClientClosedError
from etcd_aio.fake import FakeEtcd
from etcd_aio.observing import ObservedClient, Observer
from tests.support.observer import Remembers

pytestmark = pytest.mark.anyio


async def test_a_client_is_told_at_its_first_use_and_when_it_closes() -> None:
    seen = Remembers()
    async with FakeEtcd() as fake:
        client = fake.client(observers=[seen])
        assert seen.clients == []
        await client.get("a")
        await client.get("a")
        assert (seen.clients, seen.closed) == ([client], [])
        await client.aclose()
        await client.aclose()
        with pytest.raises(ClientClosedError):
            await client.get("a")
    assert (seen.clients, seen.closed) == ([client], [client])


async def test_a_client_that_was_never_used_is_not_told() -> None:
    seen = Remembers()
    async with FakeEtcd() as fake:
        await fake.client(observers=[seen]).aclose()
    assert (seen.clients, seen.closed) == ([], [])


async def test_an_observer_that_raises_keeps_no_client_from_its_start_and_its_close() -> None:
    class Broken(Observer):
        def client_started(self, client: ObservedClient) -> None:
            raise ValueError(client)

        def client_closed(self, client: ObservedClient) -> None:
            raise ValueError(client)

    async with FakeEtcd() as fake, fake.client(observers=[Broken()]) as client:
        await client.put("a", "1")
    assert repr(client) == "<Client closed>"


async def test_observers_keep_no_client_alive() -> None:
    class Weak(Observer):
        def client_started(self, client: ObservedClient) -> None:
            self.client = weakref.ref(client)

    seen = Weak()
    async with FakeEtcd() as fake:
        async with fake.client(observers=[seen]) as client:
            await client.get("a")
        del client
        gc.collect()
    assert seen.client() is None
