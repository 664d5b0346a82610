"""The fixtures. The public ones are synchronous; those that give a client open it in the loop of the test."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_etcd_aio.hooks import POOL, arguments_of
from pytest_etcd_aio.options import read_options
from pytest_etcd_aio.runner import loop_of
from pytest_etcd_aio.wanted import Wanted, unusable, wanted_from

if TYPE_CHECKING:
    from etcd_aio import Client
    from etcd_aio.config import ClientOptions
    from etcd_aio.fake import FakeEtcd
    from etcd_aio.fake.time import VirtualTimeLoop
    from pytest_etcd_aio.cluster import Cluster
    from pytest_etcd_aio.given import GivenServer
    from pytest_etcd_aio.loops import ClientLoop
    from pytest_etcd_aio.pool import Pool, Target
    from pytest_etcd_aio.proxy import Proxy
    from pytest_etcd_aio.server import Server


@pytest.fixture(scope="session")
def _etcd_pool(pytestconfig: pytest.Config) -> "Iterator[Pool]":
    from pytest_etcd_aio.pool import Pool

    pool = Pool(read_options(pytestconfig))
    pytestconfig.stash[POOL] = pool
    yield pool
    del pytestconfig.stash[POOL]
    pool.close()


@pytest.fixture(scope="session")
def _etcd_wanted(request: pytest.FixtureRequest) -> Wanted:
    wanted: Wanted = getattr(request, "param", Wanted())
    return wanted


@pytest.fixture
async def _etcd_loop_anyio() -> "ClientLoop":
    from pytest_etcd_aio.loops import ClientLoop

    return ClientLoop()


@pytest.fixture(scope="session")
def etcd_server(_etcd_pool: "Pool", _etcd_wanted: Wanted) -> "Server | GivenServer":
    """A real etcd server: `.endpoint`, `.kill()`, `.restart()`, `.pause()`, `.resume()`, `.stop()`.

    All tests share it, unless the marker `etcd` asks for another. After each test it runs again.
    """
    if (_etcd_wanted.nodes or 1) > 1:
        unusable(f"etcd(nodes={_etcd_wanted.nodes}) goes with the fixture etcd_cluster")
    return _etcd_pool.server(_etcd_wanted)


@pytest.fixture(scope="session")
def etcd_cluster(_etcd_pool: "Pool", _etcd_wanted: Wanted) -> "Cluster":
    """A cluster of three real servers: `.members`, `.leader()`, `.followers()`, `.isolate(member)`.

    Each member is as `etcd_server`. All tests share it, unless the marker `etcd` asks for another. After each test it
    is healthy again.
    """
    return _etcd_pool.cluster(_etcd_wanted)


@pytest.fixture(scope="session")
def etcd_endpoints(request: pytest.FixtureRequest, _etcd_pool: "Pool", _etcd_wanted: Wanted) -> tuple[str, ...]:
    """The endpoints of the server or the cluster that the test uses, for other clients."""
    return _target(request).endpoints


@pytest.fixture
def etcd_namespace(request: pytest.FixtureRequest, _etcd_pool: "Pool", _etcd_wanted: Wanted) -> Iterator[str]:
    """A prefix for the keys of the test, as text: `Client(etcd_endpoints, namespace=etcd_namespace)`.

    After the test all keys that begin with it are deleted, and the leases revoked that were granted during the test.
    """
    with _etcd_pool.namespace(_target(request)) as prefix:
        yield prefix


@pytest.fixture
def etcd_client(
    request: pytest.FixtureRequest, etcd_namespace: str, _etcd_pool: "Pool", _etcd_wanted: Wanted
) -> "Iterator[Client]":
    """A client of a real server, in the namespace `etcd_namespace`, for async tests.

    It is a client of `etcd_cluster` if the test uses that, and goes through `etcd_proxy` if the test uses that. Calls
    that concern the whole cluster, such as `compact`, are refused unless the test is marked with `etcd(private=True)`.
    """
    from pytest_etcd_aio.guard import client_class

    loop = loop_of(request)
    target = _target(request)
    access = target.access
    if "etcd_proxy" in request.fixturenames:
        proxy: Proxy = request.getfixturevalue("etcd_proxy")
        access = access.through(proxy.endpoint)
    with loop.opened(access.client(client_class(target), namespace=etcd_namespace)) as client:
        yield client


@pytest.fixture
def etcd_proxy(request: pytest.FixtureRequest, _etcd_pool: "Pool", _etcd_wanted: Wanted) -> "Iterator[Proxy]":
    """A TCP proxy before the server: `.delay(seconds)`, `.black_hole()`, `.cut()`, `.refuse()`, `.heal()`."""
    from etcd_aio.testing import FaultProxy
    from pytest_etcd_aio.proxy import Proxy

    if _etcd_wanted.is_cluster:
        unusable("etcd_proxy stands before one server, not before etcd_cluster")
    proxy = FaultProxy(_target(request).endpoints[0])
    _etcd_pool.portal.call(proxy.start)
    yield Proxy(_etcd_pool.portal, proxy)
    _etcd_pool.portal.call(proxy.aclose)


@pytest.fixture
def fake_etcd(request: pytest.FixtureRequest) -> "Iterator[FakeEtcd]":
    """An empty etcd in memory, without processes and sockets. The marker `etcd` may set `nodes` and `version`."""
    from pytest_etcd_aio.fakes import fake_for

    try:
        fake = fake_for(wanted_from(arguments_of(request.node)), read_options(request.config).version)
    except ValueError as error:
        unusable(str(error))
    yield fake
    fake.close()


@pytest.fixture
def fake_client(request: pytest.FixtureRequest, fake_etcd: "FakeEtcd") -> "Iterator[Client]":
    """A client of `fake_etcd`, for async tests."""
    loop = loop_of(request)
    options: ClientOptions = {}
    if arguments_of(request.node).get("auth"):
        from pytest_etcd_aio.cleaning import add_root
        from pytest_etcd_aio.fakes import ROOT

        with loop.opened(fake_etcd.client()) as first:
            loop.run(add_root(first, ROOT))
        options = {"auth": ROOT, "allow_insecure_auth": True}
    with loop.opened(fake_etcd.client(**options)) as client:
        yield client


@pytest.fixture(params=["fake", "etcd"])
def etcd_any(request: pytest.FixtureRequest, _etcd_wanted: Wanted) -> "Client":
    """A client for async tests that run twice: on `fake_etcd`, and on a real server as `etcd_client` does."""
    client: Client = request.getfixturevalue("fake_client" if request.param == "fake" else "etcd_client")
    return client


@pytest.fixture
def etcd_clock(request: pytest.FixtureRequest) -> "VirtualTimeLoop":
    """Virtual time, for async tests on `fake_etcd`: `await asyncio.sleep(3600)` returns at once, and leases expire.

    It is the loop of the test: `.time()` is the virtual time in seconds. If nothing can happen any more, the test ends
    with a `DeadlockError`.
    """
    if {"_etcd_pool", "etcd_any"} & set(request.fixturenames):
        unusable("etcd_clock is for fake_etcd only: a real server does not run in virtual time")
    loop = loop_of(request).loop
    from pytest_etcd_aio.virtual_time import virtual_loop

    return virtual_loop(loop)


def _target(request: pytest.FixtureRequest) -> "Target":
    """The server or the cluster that the test uses."""
    wanted: Wanted = request.getfixturevalue("_etcd_wanted")
    target: Target = request.getfixturevalue("etcd_cluster" if wanted.is_cluster else "etcd_server")
    return target
