"""fake/host.py, fake/watchers.py: answers never come at once, and their order is one that a server could give."""

import asyncio
from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING

import pytest

from etcd_aio import Client
from etcd_aio.errors import NoLeaderError
from etcd_aio.fake import FakeEtcd
from tests.faults.linearizable import Read, Write, judge

if TYPE_CHECKING:
    from collections.abc import Awaitable

pytestmark = pytest.mark.anyio

KEYS = ("a", "b", "c")


async def _history(seed: int, members: int) -> tuple[list[Write | Read], dict[bytes, list[tuple[int, bool]]]]:
    """Calls of several clients at once, in steps of the loop, and the changes of the keys."""
    random = Random(seed)
    done: list[Write | Read] = []
    step = 0

    async def count_steps() -> None:
        nonlocal step
        while True:
            await asyncio.sleep(0)
            step += 1

    async def worker(client: Client, number: int) -> None:
        for count in range(12):
            called, key = step, random.choice(KEYS)
            kind = random.random()
            if kind < 0.4:
                put = await client.put(key, f"{number}/{count}")
                done.append(Write(called, step, put.header.revision))
            elif kind < 0.55:
                gone = await client.delete(key)
                if gone.deleted:
                    done.append(Write(called, step, gone.header.revision))
            else:
                found = await client.range(all_keys=True)
                seen = dict.fromkeys((key.encode() for key in KEYS), None) | {
                    one.key: one.mod_revision for one in found
                }
                done.append(Read(called, step, seen))

    async with FakeEtcd(members=members, seed=seed) as fake, fake.client() as first, fake.client() as second:
        counting = asyncio.ensure_future(count_steps())
        await asyncio.gather(*(worker(client, number) for number in range(4) for client in (first, second)))
        counting.cancel()
        changes: dict[bytes, list[tuple[int, bool]]] = defaultdict(list)
        for change in fake._cluster.store.changes(2, fake.revision):
            changes[change.key].append((change.mod_revision, bool(change.version)))
    return done, changes


@pytest.mark.parametrize("members", [1, 3])
async def test_the_order_of_concurrent_calls_is_one_that_a_real_server_could_give(members: int) -> None:
    for seed in range(25):
        operations, changes = await _history(seed, members)
        assert judge(operations, changes) == [], seed
        assert max(one.returned - one.called for one in operations) > 0


async def test_no_answer_comes_in_the_step_of_its_request() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.put("a", "1")
        watcher = client.watch("a")
        calls: dict[str, Awaitable[object]] = {
            "get": client.get("a"),
            "delete": client.delete("b"),
            "txn": client.txn().commit(),
            "grant": client.leases.grant(20),
            "status": client.maintenance.status(client.endpoints[0]),
            "users": client.auth.user_list(),
            "watch": watcher.__aenter__(),
        }
        for name, call in calls.items():
            task = asyncio.ensure_future(call)
            await asyncio.sleep(0)  # it has run, and its request was sent
            assert not task.done(), name
            await task
        await watcher.aclose()


@pytest.mark.virtual_time
async def test_an_isolated_member_tells_no_progress() -> None:
    async with FakeEtcd(members=3) as fake:
        member = fake.members[2]
        client = Client(member.endpoint, engine=fake.engine, require_leader=False)
        async with client, client.watch("a", progress_notify=True) as watcher:
            fake.load({"a": "1"})
            assert (await anext(watcher)).value == b"1"
            member.isolate()
            isolated_at = fake.revision
            fake.load({"a": "2", "b": "2"})
            await watcher.request_progress()
            await asyncio.sleep(1300)  # two of etcd's intervals
            assert watcher.revision == isolated_at
            with pytest.raises(NoLeaderError):
                async with Client(member.endpoint, engine=fake.engine) as strict:
                    await strict.get("a", retry="never", timeout=0.5)
            stale = await client.get("a", serializable=True)
            assert stale is not None
            assert stale.value == b"1"
            member.heal()
            assert (await anext(watcher)).value == b"2"
