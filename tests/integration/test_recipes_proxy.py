"""Every recipe through etcd's grpc-proxy: the page about other servers says that all work."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdServer
from tests.support.grpc_proxy import grpc_proxy
from tests.support.recipe_cases import CASES, RecipeCase

pytestmark = [pytest.mark.anyio, pytest.mark.nightly]


@pytest.fixture
async def client(shared_server: EtcdServer, tmp_path: Path) -> AsyncIterator[Client]:
    async with grpc_proxy(shared_server, tmp_path) as endpoint, Client(endpoint, timeout=30) as client:
        yield client


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_recipe(client: Client, prefix: str, case: RecipeCase) -> None:
    await case.use(client, f"{prefix}name")


async def test_locks_elections_caches_and_exactly_once_writes(client: Client, prefix: str) -> None:
    async with client.lock(f"{prefix}lock"), client.election(f"{prefix}leader").lead("a"):
        pass
    async with client.rwlock(f"{prefix}rw").writing(), client.semaphore(f"{prefix}permits", limit=1):
        pass
    async with client.exactly_once() as once:
        await once.put(f"{prefix}key", "1")
    async with client.cache(prefix=prefix) as cache:
        kv = await cache.read(f"{prefix}key", timeout=30)
        assert kv is not None
