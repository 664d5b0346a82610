"""NotAwaitable: every object that is used by `async with` says so when it is awaited."""

from collections.abc import Callable
from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.errors import ClientUsageError
from etcd_aio.recipes import DoubleBarrier, Group, WorkQueue

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
    (lambda client: Group(client, "k").observe(), "async with group.observe("),
    (lambda client: Group(client, "k").ring(), "async with group.ring("),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("make", "says"), BLOCKS)
async def test_awaiting_says_what_to_write(make: Callable[[Client], Any], says: str) -> None:
    with pytest.raises(ClientUsageError) as caught:
        await make(Client("http://127.0.0.1:1"))
    assert says in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "make", [*(make for make, says in BLOCKS if "lock.reading" not in says), lambda client: client]
)
async def test_a_block_of_synchronous_code_says_what_to_write(make: Callable[[Client], Any]) -> None:
    block = make(Client("http://127.0.0.1:1"))
    with pytest.raises(ClientUsageError, match="write `async with` instead of `with`"), block:
        pass
