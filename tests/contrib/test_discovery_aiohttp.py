"""contrib/discovery/aiohttp.py: EtcdConnector and EtcdResolver: aiohttp connects to the endpoints of services."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp.abc import AbstractResolver, ResolveResult

from etcd_aio.contrib.discovery.aiohttp import EtcdConnector, EtcdResolver
from etcd_aio.fake import FakeEtcd
from etcd_aio.services import Endpoints, naming
from tests.support.http_service import HttpService
from tests.support.rolling import replaced_under_load
from tests.support.until import PATIENCE, until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def fake() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd() as fake:
        yield fake


def addresses(service: Endpoints) -> list[str]:
    return [endpoint.address for endpoint in service.endpoints]


async def get(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url) as response:
        return await response.text()


class Names(AbstractResolver):
    """Knows one name."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.is_closed = False

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append((host, port))
        if host != "node":
            raise OSError(None, "unknown")
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}]

    async def close(self) -> None:
        self.is_closed = True


async def test_the_port_of_the_endpoint_is_dialled_and_the_host_stays(fake: FakeEtcd) -> None:
    async with HttpService() as one, HttpService() as two, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address, two.address])
        async with etcd.resolve("svc/api") as service:
            connector = aiohttp.TCPConnector(
                resolver=EtcdResolver({"API": service}), use_dns_cache=False, force_close=True
            )
            async with aiohttp.ClientSession(connector=connector) as session:
                answers = [await get(session, "http://api:99/users") for _ in range(4)]
                assert await get(session, f"http://{one.address}/") == one.address
    assert sorted(answers) == sorted([one.address, two.address] * 2)
    assert {request.headers["host"] for request in two.requests} == {"api:99"}


async def test_endpoints_that_are_names_and_other_hosts_are_resolved_as_usual(fake: FakeEtcd) -> None:
    names = Names()
    async with HttpService() as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[f"node:{one.port}", "missing:1", "unix:/run/api"])
        async with etcd.resolve("svc/api") as service:
            async with aiohttp.ClientSession(
                connector=EtcdConnector({"api": service}, resolver=names, force_close=True)
            ) as session:
                assert [await get(session, "http://api/") for _ in range(2)] == [one.address] * 2
                assert set(names.asked) == {("node", one.port), ("missing", 1)}
                assert await get(session, f"http://node:{one.port}/") == one.address
                with pytest.raises(aiohttp.ClientConnectorError):
                    await get(session, "http://elsewhere/")
            assert not names.is_closed  # it is the application's


async def test_an_endpoint_whose_name_is_none_stops_no_request(fake: FakeEtcd) -> None:
    class Refuses(Names):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            raise UnicodeError("label empty or too long")

    async with HttpService() as one, fake.client() as etcd:
        for number, address in enumerate(("foo..bar:80", "x" * 64 + ":80", "odd:80", one.address)):
            await etcd.put(f"svc/api/{number}", f'{{"Addr":"{address}"}}')
        async with (
            etcd.resolve("svc/api") as service,
            aiohttp.ClientSession(
                connector=EtcdConnector({"api": service}, resolver=Refuses(), force_close=True)
            ) as session,
        ):
            assert [await get(session, "http://api/") for _ in range(4)] == [one.address] * 4
            await etcd.delete("svc/api/3")
            await service.wait_change()
            with pytest.raises(aiohttp.ClientConnectorError):
                await get(session, "http://api/")


async def test_the_resolver_that_is_made_is_closed(fake: FakeEtcd, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names()
    monkeypatch.setattr(aiohttp, "DefaultResolver", lambda: names)
    async with HttpService() as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[f"node:{one.port}"])
        async with etcd.resolve("svc/api") as service:
            async with aiohttp.ClientSession(connector=EtcdConnector({"api": service})) as session:
                assert await get(session, "http://api/") == one.address
            assert names.is_closed


async def test_an_endpoint_that_cannot_be_reached_is_passed_over(fake: FakeEtcd) -> None:
    async with HttpService() as gone:
        pass
    async with HttpService() as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[gone.address, one.address])
        async with (
            etcd.resolve("svc/api") as service,
            aiohttp.ClientSession(connector=EtcdConnector({"api": service}, force_close=True)) as session,
        ):
            assert [await get(session, "http://api/") for _ in range(4)] == [one.address] * 4


async def test_a_service_without_endpoints(fake: FakeEtcd) -> None:
    async with (
        fake.client() as etcd,
        etcd.resolve("svc/api") as service,
        aiohttp.ClientSession(connector=EtcdConnector({"api": service})) as session,
    ):
        with pytest.raises(aiohttp.ClientConnectorError, match="no endpoint"):
            await get(session, "http://api/")


async def test_connections_to_an_endpoint_that_is_gone_are_closed(fake: FakeEtcd) -> None:
    """Idle ones at once, those in use after their response; there are no new ones to it."""
    async with HttpService() as one, HttpService() as two, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address])
        async with (
            etcd.resolve("svc/api") as service,
            aiohttp.ClientSession(connector=EtcdConnector({"api": service})) as session,
        ):
            one.answers.clear()
            first = [asyncio.create_task(get(session, "http://api/")) for _ in range(3)]
            await until(lambda: len(one.requests) == 3)
            one.answers.set()
            await asyncio.gather(*first)
            assert one.idle == 3
            one.answers.clear()
            under_way = asyncio.create_task(get(session, "http://api/"))
            await until(lambda: len(one.requests) == 4)
            await naming.update(etcd, "svc/api", add=[two.address], remove=[one.address])
            await until(lambda: addresses(service) == [two.address])
            await until(lambda: one.idle == 0)
            assert [await get(session, "http://api/") for _ in range(3)] == [two.address] * 3
            assert not under_way.done()
            one.answers.set()
            assert await under_way == one.address
            await until(lambda: one.idle == 0)
            assert [await get(session, "http://api/") for _ in range(3)] == [two.address] * 3
            assert one.connections == 3
            assert two.connections == 1  # pooled as usual
            await naming.update(etcd, "svc/api", add=["127.0.0.1:1"])
            await until(lambda: len(service.endpoints) == 2)
            assert two.idle == 1  # those of endpoints that stay are left alone


async def test_an_endpoint_that_goes_while_it_is_dialled_is_used_once(fake: FakeEtcd) -> None:
    names = Names()
    async with HttpService() as one, HttpService() as two, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address])
        async with etcd.resolve("svc/api") as service:

            class Slow(EtcdConnector):
                """A connector that has made a connection when the endpoint goes."""

                async def _wrap_create_connection(self, *arguments: Any, **options: Any) -> Any:
                    made = await super()._wrap_create_connection(*arguments, **options)
                    if not two.requests:
                        await naming.update(etcd, "svc/api", add=[two.address], remove=[one.address])
                        await until(lambda: addresses(service) == [two.address])
                    return made

            async with aiohttp.ClientSession(connector=Slow({"api": service}, resolver=names)) as session:
                assert await get(session, "http://api/") == one.address
                await until(lambda: one.idle == 0)
                assert await get(session, "http://api/") == two.address


async def test_the_name_of_the_service_is_verified(fake: FakeEtcd) -> None:
    authority = trustme.CA()
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    served = []
    for name in "api", "127.0.0.1":
        served.append(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
        authority.issue_cert(name).configure_cert(served[-1])
    async with HttpService(served[0]) as one, HttpService(served[1]) as other, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address])
        await naming.update(etcd, "svc/other", add=[other.address])
        async with (
            etcd.resolve("svc/api") as api,
            etcd.resolve("svc/other") as wrong,
            aiohttp.ClientSession(connector=EtcdConnector({"api": api, "other": wrong}, ssl=trust)) as session,
        ):
            assert await get(session, "https://api/") == one.address
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await get(session, "https://other/")


async def test_closing_leaves_nothing(fake: FakeEtcd) -> None:
    async with HttpService() as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address])
        async with etcd.resolve("svc/api") as service:
            async with aiohttp.ClientSession(connector=EtcdConnector({"api": service})) as session:
                await get(session, "http://api/")
            await until(lambda: one.idle == 0)
            assert not service._listeners


async def test_five_servers_are_replaced_under_load(fake: FakeEtcd) -> None:
    """No request fails."""
    async with AsyncExitStack() as stack:
        etcd = await stack.enter_async_context(fake.client())
        service = await stack.enter_async_context(etcd.resolve("svc/api"))
        timeout = aiohttp.ClientTimeout(PATIENCE)
        connector = EtcdConnector({"api": service})
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, timeout=timeout))
        await replaced_under_load(
            etcd, service, HttpService, lambda: get(session, "http://api/"), balances_requests=False
        )
