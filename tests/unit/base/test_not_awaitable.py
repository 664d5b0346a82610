"""base/not_awaitable.py: every object that is used by `async with` says so when it is awaited."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.base.not_awaitable import AsyncBlock
from etcd_aio.contrib.config import LiveConfig
from etcd_aio.contrib.web import Singleton
from etcd_aio.errors import ClientUsageError
from etcd_aio.fake import FakeEtcd
from etcd_aio.mirror import follow
from etcd_aio.recipes import DoubleBarrier, Group, WorkQueue
from release.public import PUBLIC

BLOCKS: list[tuple[Callable[[Client], Any], str]] = [
    (lambda client: client.lease(10), "async with client.lease("),
    (lambda client: client.watch("k"), "async with client.watch("),
    (lambda client: client.cache(prefix="k"), "async with client.cache("),
    (lambda client: client.lock("k"), "async with client.lock("),
    (lambda client: client.semaphore("k", limit=2), "async with client.semaphore("),
    (lambda client: client.rwlock("k"), "async with lock.reading("),
    (lambda client: client.rwlock("k").reading(), "async with client.lock("),
    (lambda client: client.election("k").lead("v"), "async with election.lead("),
    (lambda client: client.session(), "async with client.session("),
    (lambda client: client.exactly_once(), "async with client.exactly_once("),
    (lambda client: client.register("k", "a:1"), "async with client.register("),
    (lambda client: client.resolve("k"), "async with client.resolve("),
    (lambda client: DoubleBarrier(client, "k", count=2), "async with DoubleBarrier("),
    (lambda client: WorkQueue(client, "k").worker(), "async with queue.worker()"),
    (lambda client: Group(client, "k").join(), "async with group.join("),
    (lambda client: Group(client, "k").cache(), "async with group.cache("),
    (lambda client: Group(client, "k").ring(), "async with group.ring("),
    (lambda client: client.election("k").changes(), "async with election.changes("),
    (lambda client: follow(client, "k/"), "async with follow("),
    (lambda client: LiveConfig(client, dict, prefix="k/"), "async with LiveConfig("),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("make", "says"), BLOCKS)
async def test_awaiting_says_what_to_write(make: Callable[[Client], Any], says: str) -> None:
    with pytest.raises(ClientUsageError) as caught:
        await make(Client("http://127.0.0.1:1"))
    assert says in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "make",
    [*(make for make, says in BLOCKS if "lock.reading" not in says), lambda client: client, lambda _: FakeEtcd()],
)
async def test_a_block_of_synchronous_code_says_what_to_write(make: Callable[[Client], Any]) -> None:
    block = make(Client("http://127.0.0.1:1"))
    with pytest.raises(ClientUsageError, match="write `async with` instead of `with`"), block:
        pass


OF_OTHERS = "etcd_aio.contrib.", "etcd_aio.testing", "pytest_etcd_aio"  # of frameworks, or without the client


def test_every_public_block_says_so() -> None:
    modules = {name: resolve_name(name) for name in PUBLIC if not name.startswith(OF_OTHERS)}
    blocks = {
        f"{name}.{member}": value
        for name, module in modules.items()
        for member, value in ((each, getattr(module, each)) for each in dir(module))
        if isinstance(value, type) and hasattr(value, "__aenter__") and not value.__module__.startswith(OF_OTHERS)
    }
    assert len(blocks) > 20
    assert {name for name, block in blocks.items() if not issubclass(block, AsyncBlock)} == {
        "etcd_aio.concurrency.Election"  # no block: its `async with` names `election.lead()`
    }


def test_the_blocks_of_contrib_say_so() -> None:
    assert issubclass(LiveConfig, AsyncBlock)
    assert issubclass(Singleton, AsyncBlock)
