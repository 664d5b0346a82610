"""Real servers for the integration tests."""

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest
from anyio.from_thread import start_blocking_portal

from etcd_aio import Client
from etcd_aio.testing import EtcdCluster, EtcdServer

_prefixes = count()


@pytest.fixture(scope="session")
def shared_server() -> Iterator[EtcdServer]:
    """One member for tests that do it no harm; they keep to their own `prefix`.

    It lives in a loop of its own, in a thread of its own, so that every test may have whatever loop it wants.
    """
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer()) as server:
        yield server


@pytest.fixture
def prefix() -> str:
    """A prefix that no other test writes under."""
    return f"test-{next(_prefixes)}/"


@pytest.fixture
async def client(shared_server: EtcdServer) -> AsyncIterator[Client]:
    async with Client(shared_server.endpoint) as client:
        yield client


@pytest.fixture
async def cluster() -> AsyncIterator[EtcdCluster]:
    """Three members of this test's own, to do harm to."""
    async with EtcdCluster(size=3) as cluster:
        await cluster.wait_healthy()
        yield cluster
