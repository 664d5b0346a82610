"""contrib/discovery/httpx.py, contrib/discovery/running.py: httpx and httpx2 send requests to services."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any

import pytest
import trustme

from etcd_aio.contrib.discovery.httpx import EtcdTransport
from etcd_aio.errors import ClientUsageError, InvalidRequestError
from etcd_aio.fake import FakeEtcd
from etcd_aio.services import Endpoints, NewEndpoint, naming
from tests.support.h2_service import H2Service
from tests.support.http_service import HttpService
from tests.support.rolling import replaced_under_load
from tests.support.until import PATIENCE, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[name for name in ("httpx", "httpx2") if find_spec(name) is not None])
def library(request: pytest.FixtureRequest) -> Any:
    """The library; nothing of the module examined knows which one it is."""
    return pytest.importorskip(request.param)


@pytest.fixture
async def fake() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd() as fake:
        yield fake


def addresses(service: Endpoints) -> list[str]:
    return [endpoint.address for endpoint in service.endpoints]


async def test_requests_go_to_the_endpoints_and_the_host_stays(library: Any, fake: FakeEtcd) -> None:
    async with HttpService() as one, HttpService() as two, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address, two.address])
        async with (
            etcd.resolve("svc/api") as service,
            library.AsyncClient(timeout=PATIENCE, transport=EtcdTransport({"API": service})) as client,
        ):
            answers = [(await client.get("http://api/users?a=1", headers={"x-a": "b"})).text for _ in range(4)]
            assert sorted(answers) == sorted([one.address, two.address] * 2)
            plain = await client.get(f"http://{one.address}/plain")
            assert plain.text == one.address
            posted = await client.post("http://api:99/users", content=b"body")
            assert str(posted.request.url) == "http://api:99/users"
    requests = one.requests + two.requests
    assert {request.headers["host"] for request in requests} == {"api", one.address, "api:99"}
    assert [request.body for request in requests if request.headers["host"] == "api:99"] == [b"body"]
    assert [request.headers.get("x-a") for request in requests].count("b") == 4
    assert one.connections == 2  # that of the endpoint, and that of the host
    assert two.connections == 1


async def test_a_connection_that_cannot_be_made_is_tried_elsewhere_and_left_out(library: Any, fake: FakeEtcd) -> None:
    async with HttpService() as gone:
        pass
    async with HttpService() as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[gone.address, one.address])
        made: list[Any] = []

        class Counting(library.AsyncHTTPTransport):  # type: ignore[misc]
            attempts = 0

            async def handle_async_request(self, request: Any) -> Any:
                Counting.attempts += request.url.port == gone.port
                return await super().handle_async_request(request)

        def make() -> Any:
            made.append(Counting())
            return made[-1]

        async with etcd.resolve("svc/api") as service:
            transport = EtcdTransport({"api": service}, transport=make, eject=60)
            async with library.AsyncClient(timeout=PATIENCE, transport=transport) as client:
                answers = [(await client.get("http://api/")).text for _ in range(6)]
                assert answers == [one.address] * 6
                assert Counting.attempts == 1  # then it was left out
                await naming.update(etcd, "svc/api", remove=[one.address])
                await until(lambda: addresses(service) == [gone.address])
                with pytest.raises(library.ConnectError):  # the only one is tried all the same
                    await client.get("http://api/")
                assert Counting.attempts == 2
            none = EtcdTransport({"api": service}, retries=0)
            await naming.update(etcd, "svc/api", add=[one.address])
            await until(lambda: len(service.endpoints) == 2)
            async with library.AsyncClient(timeout=PATIENCE, transport=none) as client:
                failed = 0
                for _ in range(2):
                    try:
                        await client.get("http://api/")
                    except library.ConnectError:
                        failed += 1
                assert failed == 1
    assert len(made) == 2


async def test_a_service_without_endpoints(library: Any, fake: FakeEtcd) -> None:
    async with fake.client() as etcd:
        service = etcd.resolve("svc/api")
        async with library.AsyncClient(timeout=PATIENCE, transport=EtcdTransport({"api": service})) as client:
            with pytest.raises(ClientUsageError):
                await client.get("http://api/")
            async with service:
                with pytest.raises(library.ConnectError, match="'api' has no endpoint"):
                    await client.get("http://api/")
                await naming.update(etcd, "svc/api", add=["unix:/run/api"])
                await service.wait_endpoints()
                with pytest.raises(library.ConnectError, match="'api' has no endpoint"):
                    await client.get("http://api/")


async def test_an_address_that_the_library_refuses_is_no_endpoint_to_use(library: Any, fake: FakeEtcd) -> None:
    async with HttpService() as one, fake.client() as etcd:
        await etcd.put("svc/api/0", '{"Addr":"\u00fc_x:1"}')
        async with (
            etcd.resolve("svc/api") as service,
            library.AsyncClient(timeout=PATIENCE, transport=EtcdTransport({"api": service})) as client,
        ):
            with pytest.raises(library.ConnectError):
                await client.get("http://api/")
            await naming.update(etcd, "svc/api", add=[one.address])
            await service.wait_endpoints(at_least=2)
            assert [(await client.get("http://api/")).text for _ in range(3)] == [one.address] * 3


async def test_an_endpoint_that_is_gone_is_drained(library: Any, fake: FakeEtcd) -> None:
    """Its idle connections are closed at once; a request that is under way gets its answer."""
    async with HttpService() as one, HttpService() as two, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address, two.address])
        async with (
            etcd.resolve("svc/api") as service,
            library.AsyncClient(timeout=PATIENCE, transport=EtcdTransport({"api": service})) as client,
        ):
            for _ in range(2):
                await client.get("http://api/")
            two.answers.clear()
            under_way = [asyncio.create_task(client.get("http://api/")) for _ in range(2)]
            await until(lambda: two.idle == 0)
            await naming.update(etcd, "svc/api", remove=[one.address, two.address], add=["127.0.0.1:1"])
            await until(lambda: addresses(service) == ["127.0.0.1:1"])
            await until(lambda: one.idle == 0)
            two.answers.set()
            assert sorted([(await task).text for task in under_way]) == sorted([one.address, two.address])
            await until(lambda: two.idle == 0)


async def test_what_is_not_over_after_the_drain_is_cut_off(library: Any, fake: FakeEtcd) -> None:
    async with HttpService() as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address])
        async with (
            etcd.resolve("svc/api") as service,
            library.AsyncClient(timeout=PATIENCE, transport=EtcdTransport({"api": service}, drain=0.05)) as client,
        ):
            one.answers.clear()
            under_way = asyncio.create_task(client.get("http://api/"))
            await until(lambda: len(one.requests) == 1)
            await naming.update(etcd, "svc/api", remove=[one.address])
            with pytest.raises((library.TransportError, RuntimeError)):
                await under_way
            one.answers.set()


async def test_a_cancelled_request_is_not_under_way_any_more(library: Any, fake: FakeEtcd) -> None:
    async with HttpService() as one, HttpService() as two, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address, two.address])
        async with etcd.resolve("svc/api") as service:
            transport = EtcdTransport({"api": service}, pick="power_of_two")
            async with library.AsyncClient(timeout=PATIENCE, transport=transport) as client:
                one.answers.clear()
                waiting: list[asyncio.Task[Any]] = []
                while not one.requests:
                    waiting.append(asyncio.create_task(client.get("http://api/")))
                    await until(lambda: len(one.requests) + len(two.requests) == len(waiting))
                await until(lambda: all(task.done() for task in waiting[:-1]))
                # The other one has none under way, so it gets all of them.
                answers = [(await client.get("http://api/")).text for _ in range(10)]
                assert answers == [two.address] * 10
                waiting[-1].cancel()
                await asyncio.wait(waiting)
                assert [pool.running for pool in transport._services["api"].pools] == [0, 0]
                one.answers.set()  # either may get the next one
                async with client.stream("GET", "http://api/") as response:
                    assert sum(pool.running for pool in transport._services["api"].pools) == 1
                    del response
                assert sum(pool.running for pool in transport._services["api"].pools) == 0


async def test_a_body_that_is_a_stream_is_sent_once(library: Any, fake: FakeEtcd) -> None:
    """If no connection was made, it was not touched; if one broke, the request has failed."""
    async with HttpService() as gone:
        pass
    begun: list[str] = []

    async def body(name: str) -> AsyncIterator[bytes]:
        begun.append(name)
        yield b"part "
        yield b"part"

    async with HttpService() as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[gone.address, one.address])
        async with etcd.resolve("svc/api") as service:
            async with library.AsyncClient(timeout=PATIENCE, transport=EtcdTransport({"api": service})) as client:
                for name in "ab":
                    assert (await client.post("http://api/", content=body(name))).text == one.address
                assert begun == ["a", "b"]
                assert [request.body for request in one.requests] == [b"part part"] * 2
            async with await asyncio.start_server(_hang_up, "127.0.0.1", 0) as broken:
                port = broken.sockets[0].getsockname()[1]
                await naming.update(etcd, "svc/api", add=[f"127.0.0.1:{port}"], remove=[gone.address, one.address])
                await until(lambda: addresses(service) == [f"127.0.0.1:{port}"])
                async with library.AsyncClient(
                    timeout=PATIENCE, transport=EtcdTransport({"api": service}, retries=5)
                ) as client:
                    with pytest.raises(library.TransportError):
                        await client.post("http://api/", content=body("c"))
                assert begun == ["a", "b", "c"]


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    writer.close()


async def test_cookies_and_redirects_belong_to_the_service(library: Any, fake: FakeEtcd) -> None:
    async with HttpService() as one, HttpService() as two, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address])
        await naming.update(etcd, "svc/web", add=[two.address])
        async with (
            etcd.resolve("svc/api") as api,
            etcd.resolve("svc/web") as web,
            library.AsyncClient(timeout=PATIENCE, transport=EtcdTransport({"api": api, "web.example": web})) as client,
        ):
            one.extra = ["Set-Cookie: a=1; Path=/"]
            await client.get("http://api/")
            await client.get("http://web.example/")
            one.extra, one.status = ["Location: /next"], "302 Found"
            found = await client.get("http://api/first")
            assert found.next_request is not None
            assert str(found.next_request.url) == "http://api/next"
            one.extra = ["Location: http://web.example/there"]
            assert (await client.get("http://api/first", follow_redirects=True)).text == two.address
    assert [request.headers.get("cookie") for request in one.requests] == [None, "a=1", "a=1"]
    assert [request.headers.get("cookie") for request in two.requests] == [None, None]
    assert [request.headers["host"] for request in two.requests] == ["web.example", "web.example"]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def served_as(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_the_name_of_the_service_is_verified(library: Any, fake: FakeEtcd, authority: trustme.CA) -> None:
    """Not the address of the endpoint; what its metadata says counts only if the application wants that."""
    context = trusting(authority)

    def make() -> Any:
        return library.AsyncHTTPTransport(verify=context)

    async with (
        HttpService(served_as(authority, "api")) as named,
        HttpService(served_as(authority, "127.0.0.1")) as numbered,
        HttpService(served_as(authority, "node1")) as node,
        fake.client() as etcd,
    ):
        await naming.update(etcd, "svc/a", add=[named.address])
        await naming.update(etcd, "svc/b", add=[numbered.address])
        await naming.update(etcd, "svc/c", add=[NewEndpoint(node.address, {"server_name": "node1"})])
        async with etcd.resolve("svc/a") as a, etcd.resolve("svc/b") as b, etcd.resolve("svc/c") as c:
            for service, options, is_trusted in (
                (a, {}, True),
                (b, {}, False),
                (c, {}, False),
                (c, {"server_name": "metadata"}, True),
                (a, {"server_name": "metadata"}, True),
                (b, {"server_name": "metadata"}, False),
            ):
                transport = EtcdTransport({"api": service}, transport=make, **options)  # type: ignore[arg-type]
                async with library.AsyncClient(timeout=PATIENCE, transport=transport) as client:
                    if is_trusted:
                        assert (await client.get("https://api/")).status_code == 200
                    else:
                        with pytest.raises(library.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                            await client.get("https://api/")
    assert node.requests[0].headers["host"] == "api"


async def test_two_services_at_one_address_share_no_connection(
    library: Any, fake: FakeEtcd, authority: trustme.CA
) -> None:
    """A connection that was verified as one of them says nothing about the other one."""
    context = trusting(authority)
    async with HttpService(served_as(authority, "api")) as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address])
        async with etcd.resolve("svc/api") as service:
            transport = EtcdTransport(
                {"api": service, "web": service}, transport=lambda: library.AsyncHTTPTransport(verify=context)
            )
            async with library.AsyncClient(timeout=PATIENCE, transport=transport) as client:
                await client.get("https://api/")
                with pytest.raises(library.ConnectError):
                    await client.get("https://web/")


async def test_http2(library: Any, fake: FakeEtcd, authority: trustme.CA) -> None:
    """Many requests share the connection of an endpoint."""
    context = trusting(authority)
    served = served_as(authority, "api")
    async with H2Service(served) as one, H2Service(served) as two, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address, two.address])
        async with etcd.resolve("svc/api") as service:
            transport = EtcdTransport(
                {"api": service}, transport=lambda: library.AsyncHTTPTransport(verify=context, http2=True)
            )
            async with library.AsyncClient(timeout=PATIENCE, transport=transport) as client:
                first = [await client.get("https://api/") for _ in range(2)]
                answers = await asyncio.gather(*(client.get("https://api/") for _ in range(20)))
    assert {answer.http_version for answer in (*first, *answers)} == {"HTTP/2"}
    assert sorted(answer.text for answer in answers) == sorted([one.address, two.address] * 10)
    assert (one.connections, two.connections) == (1, 1)
    assert one.authorities | two.authorities == {"api"}


async def test_closing_leaves_nothing(library: Any, fake: FakeEtcd) -> None:
    async with HttpService() as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address])
        async with etcd.resolve("svc/api") as service:
            transport = EtcdTransport({"api": service})
            async with library.AsyncClient(timeout=PATIENCE, transport=transport) as client:
                await client.get("http://api/")
                await client.get(f"http://{one.address}/")
                assert one.idle == 2
            await until(lambda: one.idle == 0)
            assert not service._listeners
            with pytest.raises(RuntimeError):
                await transport.handle_async_request(library.Request("GET", "http://api/"))
            await transport.aclose()


async def test_wrong_arguments(fake: FakeEtcd) -> None:
    async with fake.client() as etcd:
        service = etcd.resolve("svc/api")
        wrongs: list[dict[str, Any]] = [
            {"pick": "best"},
            {"retries": -1},
            {"eject": -1},
            {"drain": -1},
            {"server_name": "any"},
        ]
        for wrong in wrongs:
            with pytest.raises(InvalidRequestError):
                EtcdTransport({"api": service}, **wrong)


async def test_five_servers_are_replaced_under_load(fake: FakeEtcd) -> None:
    """No request fails."""
    library: Any = pytest.importorskip("httpx2")
    async with AsyncExitStack() as stack:
        etcd = await stack.enter_async_context(fake.client())
        service = await stack.enter_async_context(etcd.resolve("svc/api"))
        client = await stack.enter_async_context(
            library.AsyncClient(timeout=PATIENCE, transport=EtcdTransport({"api": service}))
        )

        async def request() -> str:
            return str((await client.get("http://api/")).text)

        await replaced_under_load(etcd, service, HttpService, request)


@pytest.mark.parametrize("host", ["api", "other"])
async def test_a_request_that_begins_while_it_is_closed_leaves_no_connection(
    library: Any, fake: FakeEtcd, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    create = library.create_ssl_context

    def create_slowly() -> object:
        assert may_end.wait(PATIENCE)
        return create()

    monkeypatch.setattr(library, "create_ssl_context", create_slowly)
    async with HttpService() as one, fake.client() as etcd:
        await naming.update(etcd, "svc/api", add=[one.address])
        async with etcd.resolve("svc/api") as service:
            transport = EtcdTransport({"api": service})
            async with library.AsyncClient(timeout=PATIENCE, transport=transport) as client:
                url = "http://api/" if host == "api" else f"http://{one.address}/"
                beginning = asyncio.create_task(client.get(url))
                await until(lambda: transport._making.locked())
                await transport.aclose()
                may_end.set()
                with pytest.raises(RuntimeError, match="the transport is closed"):
                    await beginning
    assert one.connections == 0


async def test_requests_to_other_hosts_that_begin_together_share_a_transport(library: Any, fake: FakeEtcd) -> None:
    async with HttpService() as one, fake.client() as etcd, etcd.resolve("svc/api") as service:
        transport = EtcdTransport({"api": service})
        async with library.AsyncClient(timeout=PATIENCE, transport=transport) as client:
            await asyncio.gather(*(client.get(f"http://{one.address}/") for _ in range(3)))
        await until(lambda: one.idle == 0)  # closed with the client
