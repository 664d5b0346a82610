"""cache/cache.py, cache/local.py: a cache is used in its own loop; only reads from memory need none."""

import asyncio

import pytest

from etcd_aio.cache import Cache
from etcd_aio.errors import WrongLoopError
from etcd_aio.fake import FakeEtcd

pytestmark = pytest.mark.anyio


async def test_another_loop_is_refused() -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.cache(prefix="a/") as cache:
        revision = (await client.put("a/k", "v")).revision
        await cache.wait_revision(revision)

        assert isinstance(cache, Cache)

        async def use() -> None:
            for call in cache.changes, cache.batches:
                with pytest.raises(WrongLoopError):
                    call()
            for wait in (
                cache.wait_revision(revision, timeout=1),
                cache.wait_revision(revision + 1, timeout=1),
                cache.wait_current(max_staleness=1000, timeout=1),
                cache.wait_current(timeout=1),
                cache.read("a/k", timeout=1),
            ):
                with pytest.raises(WrongLoopError):
                    await wait
            assert cache.get("a/k") is not None

        await asyncio.to_thread(asyncio.run, use())
        assert cache.statistics().followers == 0
