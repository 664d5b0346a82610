"""Every await of every public coroutine of an election is cancelled: no key, lease, watch or task stays."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.concurrency import Election, Leadership
from etcd_aio.testing import EtcdServer
from tests.support.locks import metric, until
from tests.support.turns import ends_within, more
from tests.support.until import until_keys

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("patient_close")]


async def lead(election: Election) -> None:
    async with election.lead("a") as leadership:
        await leadership.proclaim("b")


async def resign(election: Election) -> None:
    async with election.lead("a") as leadership:
        await leadership.resign()


async def run(election: Election) -> None:
    async def work(leadership: Leadership) -> None:
        await leadership.proclaim("b")

    await election.run(work)


async def leader(election: Election) -> None:
    await election.leader()


async def observe(election: Election) -> None:
    async with election.changes() as leaders:
        await anext(leaders)


async def lost(election: Election) -> None:
    async with election.lead("a") as leadership:
        await leadership.lost()


@pytest.mark.parametrize("is_taken", [False, True])
@pytest.mark.parametrize("act", [lead, resign, run, leader, observe, lost], ids=lambda act: act.__name__)
async def test_nothing_stays(act: Callable[[Election], Awaitable[Any]], is_taken: bool) -> None:
    async with EtcdServer() as server, Client(server.endpoint) as other, AsyncExitStack() as stack:
        if is_taken:
            await stack.enter_async_context(other.election("e", ttl=300).lead("other"))
        taken = await until_keys(other, "e/", int(is_taken))
        async with Client(server.endpoint) as client:
            election = client.election("e", ttl=200)
            turns = 1  # with 0, the action never begins
            while turns < 400:
                is_done = await ends_within(turns, act(election))
                assert await until_keys(other, "e/", int(is_taken)) == taken, f"after {turns} turns"
                if is_done:
                    break
                turns = more(turns)
            assert turns > 3

        async def is_clean() -> bool:
            leases = len((await other.leases.list()).ids)
            # The leader's own key is watched when its block has lasted for a while.
            watches = await metric(server, "etcd_debugging_mvcc_watcher_total")
            return watches <= int(is_taken) and leases == int(is_taken)

        await until(is_clean)
        tasks = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio le")]
        assert is_taken or tasks == []
