"""Observers of a client that works on a real server."""

import asyncio

import pytest

from etcd_aio import Client
from etcd_aio.errors import StatusCode
from etcd_aio.observing import Observer, add_default, remove_default
from etcd_aio.testing import EtcdServer
from tests.support.auth import QUICK_LOGINS, ROOT, enable_auth
from tests.support.observer import Remembers
from tests.support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@pytest.mark.usefixtures("each_engine")
@pytest.mark.both_engines
async def test_calls_streams_watches_and_leases_are_told(shared_server: EtcdServer, prefix: str) -> None:
    seen = Remembers(metadata=[("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")])
    async with Client(shared_server.endpoint, observers=[seen]) as client:
        await client.put(f"{prefix}a", "1")
        assert seen.call.started.method == "KV/Put"
        assert seen.outcome.status is StatusCode.OK
        async with client.watch(prefix=prefix) as watcher:
            await client.put(f"{prefix}b", "1")
            event = await anext(watcher)
        (advance,) = seen.advances
        assert (advance.events, advance.revision, advance.pending) == (1, event.revision, 1)
        async with client.lease(10) as lease:
            await lease.keep_alive_once()
        assert [change.event for change in seen.leases] == ["granted", "renewed", "ended"]
        assert len({change.lease for change in seen.leases}) == 1
        opened = {change.method for change in seen.streams if change.event == "opened"}
        assert opened == {"Watch/Watch", "Lease/LeaseKeepAlive"}
        await until(lambda: [one.event for one in seen.streams].count("ended") == 2)
    assert [(one.state, one.health) for one in seen.endpoints] == [
        ("CONNECTING", "NOT_CONNECTED"),
        ("READY", "HEALTHY"),
        ("SHUTDOWN", "NOT_CONNECTED"),
    ]
    assert all(len(call.outcomes) == 1 for call in seen.calls)


async def test_logins_are_told() -> None:
    seen = Remembers()
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server)
        async with Client(server.endpoint, auth=ROOT, allow_insecure_auth=True, observers=[seen]) as client:
            await asyncio.gather(*(client.get("a") for _ in range(3)))
    assert [login.error for login in seen.logins] == [None]


async def test_default_observers_are_those_of_every_client_that_is_made_from_now_on(
    shared_server: EtcdServer, prefix: str
) -> None:
    before, seen, own = Client(shared_server.endpoint), Remembers(), Remembers()
    add_default(seen)
    add_default(seen)
    try:
        async with before, Client(shared_server.endpoint, observers=[own]) as client:
            await before.get(prefix)
            assert seen.calls == []
            await client.get(prefix)
            assert len(seen.calls) == len(own.calls) == 1
            remove_default(seen)
            await client.get(prefix)
            assert len(seen.calls) == 2, "a client keeps its observers"
    finally:
        remove_default(seen)
    async with Client(shared_server.endpoint) as client:
        await client.get(prefix)
    assert len(seen.calls) == 2


async def test_an_observer_that_overrides_nothing_is_never_called(shared_server: EtcdServer, prefix: str) -> None:
    async with Client(shared_server.endpoint, observers=[Observer()]) as client:
        assert (await client.put(prefix, "1")).revision > 0
