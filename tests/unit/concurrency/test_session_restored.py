"""concurrency/session_leases.py: in another store, deleted keys come back and the application's stay."""

import asyncio

import pytest

from etcd_aio import Client
from etcd_aio.base import HandOver
from etcd_aio.concurrency import session_leases as module
from etcd_aio.fake import FakeEtcd

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def restart(fake: FakeEtcd) -> None:
    fake.members[0].stop()
    await asyncio.sleep(0.5)
    fake.members[0].start()
    fake.elect(fake.members[0])


@pytest.mark.parametrize("is_in_use", [False, True])
async def test_keys_that_are_back_are_deleted_and_others_of_the_lease_stay(is_in_use: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, client.session(ttl=10) as session:
        for name in ("a", "b"):
            async with session.lock(name):
                pass
        for key in (f"a/{session.id:x}", f"b/{session.id:x}", f"own/{session.id:x}"):
            await client.put(key, "", lease=session.lease)
        if is_in_use:
            session._leases._queues[b"a/"] = HandOver(lambda _: None)  # as if it were being acquired
        await restart(fake)
        await asyncio.sleep(5)
        own = f"own/{session.id:x}".encode()
        assert set(fake.keys()) == ({own, f"a/{session.id:x}".encode()} if is_in_use else {own})
        assert session._leases._sweeping is not None
        assert session._leases._sweeping.done() is not is_in_use


async def test_many_names_in_doubt_take_one_task_and_few_calls() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, client.session(ttl=10) as session:
        for number in range(50):
            loan = await session._leases.borrow(10, f"{number}/".encode())
            assert loan is not None
            await loan.revoke()
        sweeps = [task for task in asyncio.all_tasks() if "sweep" in task.get_name()]
        assert len(sweeps) == 1
        before = len(fake.calls)
        await asyncio.sleep(100)
        assert len(fake.calls) - before < 40
        assert not fake.watchers
        await client.put(f"7/{session.id:x}", "", lease=session.lease)
        await asyncio.sleep(7)
        assert not fake.keys()


async def test_the_oldest_names_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_NAMES", 3)
    leases = Client("127.0.0.1:1").session()._leases
    leases.id = 1
    for name in (b"a/", b"b/", b"c/", b"a/", b"d/"):
        loan = await leases.borrow(60, name)
        assert loan is not None
        loan.give_back()
    assert list(leases._used) == [b"c/", b"a/", b"d/"]
