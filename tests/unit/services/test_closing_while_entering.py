"""services/kept_entry.py, cache/derived.py: blocks whose client another task closes while they are being entered."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.errors import EtcdError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Group
from etcd_aio.services import Registration

pytestmark = pytest.mark.anyio

BLOCKS: dict[str, Callable[[Client], Any]] = {
    "register": lambda client: Registration(client, "svc", "h:1"),
    "join": lambda client: Group(client, "g").join("a"),
    "resolve": lambda client: client.resolve("svc"),
    "ring": lambda client: Group(client, "g").ring(),
    "group cache": lambda client: Group(client, "g").cache(),
    "cache": lambda client: client.cache(prefix="c/"),
    "lock": lambda client: client.lock("l"),
    "session": lambda client: client.session(),
    "lease": lambda client: client.lease(5),
    "watch": lambda client: client.watch("k"),
}
STEPS = 40


@pytest.mark.parametrize("kind", BLOCKS)
async def test_the_task_that_enters_is_told_and_not_cancelled(kind: str) -> None:
    outcomes: set[str] = set()
    for steps in range(STEPS):
        async with FakeEtcd() as fake:
            client = await fake.client().connect()

            async def enter(client: Client = client) -> None:
                async with BLOCKS[kind](client):
                    await asyncio.sleep(0)

            task = asyncio.create_task(enter())
            for _ in range(steps):
                await asyncio.sleep(0)
            is_done = task.done()
            await client.aclose()
            await asyncio.wait([task], timeout=10)
            assert not task.cancelled(), f"cancelled by nothing, after {steps} steps"
            error = task.exception()
            assert error is None or isinstance(error, EtcdError)
            outcomes.add("done" if is_done else type(error).__name__)
    assert "done" in outcomes
    assert len(outcomes) > 1
