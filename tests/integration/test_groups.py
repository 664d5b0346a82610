"""Groups and schedules on a real server; most of their tests run on the fake."""

import asyncio
import time
from collections import Counter

import pytest

from etcd_aio import Client
from etcd_aio.recipes import Group, HashRing, Schedule, Tick
from etcd_aio.testing import EtcdServer
from tests.support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def test_members_come_and_go(shared_server: EtcdServer, client: Client, prefix: str) -> None:
    async with Client(shared_server.endpoint) as other:
        ours, theirs = Group(client, f"{prefix}g"), Group(other, f"{prefix}g")
        async with theirs.cache() as members, theirs.ring() as ring, ours.join("a", value="1") as membership:
            views = members.changes()
            async with theirs.join("b"):
                await ring.wait_current()
                assert (await ours.members()).names == ("a", "b")
                assert ring.assignment == HashRing(["a", "b"], epoch=ring.epoch)
                await membership.update("2")
                while [member.text() for member in (await anext(views)).members] != ["2", ""]:
                    pass
            while (await anext(views)).names != ("a",):
                pass
            assert ring.owner("k").text() == "2"
    assert len(await client.range(prefix=prefix)) == 0


async def test_a_member_whose_lease_is_revoked_comes_back(client: Client, prefix: str) -> None:
    group = Group(client, f"{prefix}g", ttl=5)
    async with group.join("a") as membership:
        (member,) = (await group.members()).members
        await client.leases.revoke(member.lease)
        await membership.lost()
        await membership.wait_registered()
        (again,) = (await group.members()).members
        assert again.lease != member.lease


@pytest.mark.parametrize("claim", [False, True])
async def test_each_tick_runs_once(shared_server: EtcdServer, client: Client, prefix: str, claim: bool) -> None:
    ran: Counter[bytes] = Counter()

    async def work(tick: Tick) -> None:
        ran[tick.key] += 1
        await client.txn().when(tick.newest_condition()).then().commit()

    async with Client(shared_server.endpoint) as other:
        began = time.time()
        runs = [
            asyncio.ensure_future(Schedule(own, f"{prefix}s", every=1, catch_up="all", claim=claim, keep=60).run(work))
            for own in (client, other, client, other)
        ]
        await until(lambda: len(ran) >= 3, runs)
        for run in runs:
            run.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*runs, return_exceptions=True)
        )
        assert set(ran.values()) == {1}
        assert min(ran) > f"{prefix}s/runs/{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(began))}".encode()
        records = await client.range(prefix=f"{prefix}s/runs/", keys_only=True)
        assert ran.keys() <= {kv.key for kv in records}
