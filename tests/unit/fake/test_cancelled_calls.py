"""fake/unary_call.py, fake/connection.py: calls that are cancelled at each of their awaits, and fakes that are dropped:
nothing is half done, nothing stays.
"""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from etcd_aio import Client, op
from etcd_aio.fake import FakeEtcd
from tests.support.turns import ends_within, more

pytestmark = pytest.mark.anyio

Action = Callable[[Client], Awaitable[object]]


async def _watch(client: Client) -> None:
    async with client.watch("a", start_revision=2) as watcher:
        await anext(watcher)


async def _keep(client: Client) -> None:
    async with client.lease(20) as lease:
        await client.put("kept", "", lease=lease)


async def _txn(client: Client) -> None:
    await client.txn().then(op.put("a", "2"), op.delete("b"), op.put("c", "3", lease=7)).commit()


async def _scan(client: Client) -> None:
    async for _ in client.scan(all_keys=True):
        pass


ACTIONS: Final[dict[str, Action]] = {
    "get": lambda client: client.get("a"),
    "range": lambda client: client.range(all_keys=True),
    "put": lambda client: client.put("a", "2"),
    "put with a lease": lambda client: client.put("a", "2", lease=7),
    "delete": lambda client: client.delete(all_keys=True),
    "txn": _txn,
    "compact": lambda client: client.compact(3),
    "grant": lambda client: client.leases.grant(20, id=9),
    "revoke": lambda client: client.leases.revoke(7),
    "renew": lambda client: client.leases.keep_alive_once(7),
    "time to live": lambda client: client.leases.time_to_live(7, keys=True),
    "leases": lambda client: client.leases.list(),
    "members": lambda client: client.cluster.members(),
    "status": lambda client: client.maintenance.status(client.endpoints[0]),
    "alarms": lambda client: client.maintenance.alarms(),
    "user": lambda client: client.auth.user_add("u", "pw"),
    "role": lambda client: client.auth.role_add("r"),
    "versions": lambda client: client.versions(),
    "watch": _watch,
    "lease": _keep,
    "scan": _scan,
}


def _state(fake: FakeEtcd) -> tuple[Any, ...]:
    """What clients could tell apart. Leases that a client names itself have large ids, and times are left out."""
    cluster = fake._cluster
    leases = sorted(tuple(sorted(lease.keys)) for lease in cluster.leases.all())
    return (
        *(fake.keys(), fake.revision, cluster.store.compacted, leases),
        *(cluster.users.users(), cluster.users.roles(), len(cluster.nodes[0].hub)),
    )


async def _played(action: Action, turns: int | None, *, is_connected: bool) -> tuple[bool, tuple[Any, ...]]:
    """Run an action on a new fake, cancelled after so many turns; whether it had ended, and the state then."""
    async with FakeEtcd() as fake:
        fake.load({"a": "1", "b": "1"})
        async with fake.client() as other:
            await other.leases.grant(20, id=7)
            await other.put("b", "2", lease=7)
        async with fake.client() as client:
            if is_connected:
                await client.get("a")
            if turns is None:
                await action(client)
                is_done = True
            else:
                is_done = await ends_within(turns, action(client))
            await client.get("a")  # the client still works
        state = _state(fake)
    return is_done, state


@pytest.mark.parametrize("is_connected", [True, False], ids=["connected", "new"])
@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
async def test_a_cancelled_call_leaves_the_state_before_or_after(action: Action, is_connected: bool) -> None:
    before = (await _played(lambda client: client.get("a"), None, is_connected=True))[1]
    after = (await _played(action, None, is_connected=is_connected))[1]
    between = before
    if action is _keep:  # it is several calls: the lease may be there, with its key or without
        between = (before[0], before[1], *before[2:3], [(), *before[3]], *before[4:])
    turns, is_done = 0, False
    while not is_done:
        is_done, state = await _played(action, turns, is_connected=is_connected)
        assert state in (before, after, between), turns
        turns = more(turns)
    assert turns > 2
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio")] == []


async def _make_and_drop(number: int) -> "weakref.ref[FakeEtcd]":
    """A fake: most are only made, others have a client, and a few end with much under way."""
    fake = FakeEtcd(members=1 + number % 3)
    if number % 20 == 0:
        async with fake, fake.client() as client:
            async with client.lease(20) as lease, client.watch("a") as watcher:
                await client.put("a", "1", lease=lease)
                await anext(watcher)
            await client.leases.grant(20)
            fake.members[0].pause()
    elif number % 2:
        async with fake, fake.client() as client:
            await client.put("a", "1")
    return weakref.ref(fake)


@pytest.mark.slow
async def test_a_thousand_fakes_leave_no_task_and_no_reference() -> None:
    tasks = asyncio.all_tasks()
    left = [await _make_and_drop(number) for number in range(1000)]
    await asyncio.sleep(0)
    gc.collect()
    assert sum(one() is not None for one in left) == 0
    assert asyncio.all_tasks() == tasks
