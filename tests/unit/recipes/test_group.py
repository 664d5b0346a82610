"""recipes/group/: groups and their rings, on a fake."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from etcd_aio import Client, InvalidRequestError, Key
from etcd_aio.errors import (
    CacheError,
    ClientUsageError,
    EmptyGroupError,
    EmptyKeyError,
    EtcdError,
    LeaseLostError,
    MemberConflictError,
    PermissionDeniedError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.releases import RELEASES
from etcd_aio.recipes import Group, HashRing, Ring
from tests.support.until import until
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


@pytest.fixture
async def fake() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd(latency=0.001) as fake:
        yield fake
    await turns(5)
    assert not {task.get_name() for task in tasks() if "membership" in task.get_name()}


# Members.


async def test_a_member_is_there_within_its_block(fake: FakeEtcd) -> None:
    async with fake.client() as client, fake.client() as other:
        group = Group(client, "workers")
        assert (await group.members()).members == ()
        async with group.join("host-1", value="10.0.0.1:80") as membership:
            assert membership.is_registered
            assert (membership.name, membership.key) == ("host-1", b"workers/host-1")
            async with Group(other, "workers").join("host-0"):
                view = await group.members()
                assert view.names == ("host-0", "host-1")
                member = view.get("host-1")
                assert member is not None
                assert (member.text(), member.key, member.revision) == (
                    *("10.0.0.1:80", membership.key, membership.revision),
                )
                assert member.lease in [lease.id for lease in fake.leases]
                assert view.get("host-2") is None
                assert repr(member) == f"GroupMember('host-1', value=<11 bytes>, revision={member.revision})"
            assert (await group.members()).names == ("host-1",)
            await membership.update("10.0.0.2:80")
            assert fake.keys() == {b"workers/host-1": b"10.0.0.2:80"}
        assert not membership.is_registered
        assert fake.keys() == {}
        assert fake.leases == ()


async def test_names_are_random_if_none_is_given(fake: FakeEtcd) -> None:
    async with fake.client() as client:
        group = Group(client, "workers")
        async with group.join() as one, group.join() as two:
            assert one.name != two.name
            assert (await group.members()).names == tuple(sorted((one.name, two.name)))


@pytest.mark.parametrize("method", ["Lease/LeaseGrant", "KV/Txn"])
async def test_a_call_without_an_answer_does_not_hold_it_up_for_ever(fake: FakeEtcd, method: str) -> None:
    async with fake.client() as client, Group(client, "workers").join("a", value=b"1") as membership:
        (lease,) = fake.leases
        with fake.fault(method, hang=True, times=1) as fault:
            await client.leases.revoke(lease.id)
            await until(lambda: fault.hits > 0)
        async with asyncio.timeout(60):
            await until(lambda: membership.is_registered and fake.keys() == {b"workers/a": b"1"})
        assert fault.hits == 1


async def test_a_lost_lease_is_healed(fake: FakeEtcd) -> None:
    async with fake.client() as client, Group(client, "workers").join("a", value=b"1") as membership:
        (lease,) = fake.leases
        losing = asyncio.ensure_future(membership.lost())
        await turns(3)
        await client.leases.revoke(lease.id)
        assert isinstance(await losing, LeaseLostError)
        assert not membership.is_registered
        await membership.update(b"2")  # while it is not there
        await membership.wait_registered()
        assert membership.is_registered
        assert fake.keys() == {b"workers/a": b"2"}


async def test_an_outage_that_is_longer_than_the_lease(fake: FakeEtcd) -> None:
    loop = asyncio.get_running_loop()
    async with fake.client() as client, Group(client, "workers", ttl=5).join("a") as membership:
        for member in fake.members:
            member.stop()
        began = loop.time()
        await membership.lost()
        assert loop.time() - began < 5.1, "it knows before etcd does"
        assert not membership.is_registered
        await asyncio.sleep(30)
        for member in fake.members:
            member.start()
        began = loop.time()
        await membership.wait_registered()
        assert loop.time() - began < 13
        assert list(fake.keys()) == [b"workers/a"]


@pytest.mark.parametrize("value", ["", "the same"])
async def test_a_name_that_is_taken_is_left_alone(fake: FakeEtcd, value: str) -> None:
    """Also with an equal value: two members of one name would not know of each other."""
    async with fake.client() as client, fake.client() as other:
        async with Group(client, "workers").join("a", value=value) as first:
            second = Group(other, "workers").join("a", value=value)
            async with second:
                assert not second.is_registered
                assert isinstance(second.error, MemberConflictError)
                assert second.error.lease == next(iter((await Group(client, "workers").members()).members)).lease
                await asyncio.sleep(60)
                assert first.is_registered
                assert not second.is_registered
                await first.aclose()
                await second.wait_registered()
                assert fake.keys() == {b"workers/a": value.encode()}
        assert fake.keys() == {}


async def test_a_name_is_taken_over_if_asked(fake: FakeEtcd) -> None:
    fake.load({"workers/a": "of before the crash"})
    async with fake.client() as client, Group(client, "workers").join("a", value="new", on_conflict="replace") as one:
        assert one.is_registered
        assert fake.keys() == {b"workers/a": b"new"}


async def test_an_error_on_entering_is_raised(fake: FakeEtcd) -> None:
    async with fake.client() as client:
        membership = Group(client, "workers").join("a")
        with fake.fault("Lease/LeaseGrant", status="NO_SPACE"), pytest.raises(EtcdError):
            await membership.__aenter__()
        assert repr(membership) == "<Membership 'workers/a' left>"
        with pytest.raises(ClientUsageError, match="entered once"):
            await membership.__aenter__()
        with pytest.raises(ClientUsageError, match=r"group\.join"):
            await membership.update(b"2")


async def test_other_keys_are_no_members(fake: FakeEtcd) -> None:
    fake.load({"workers": "1", "workers/": "2", "workers/sub/a": "3", "workers2/a": "5"})
    fake.load({b"workers/\xff": b"4"})
    async with fake.client() as client:
        group = Group(client, "workers")
        async with group.join("a"), group.ring() as ring, group.cache() as members:
            assert (await group.members()).names == ("a",)
            assert ring.assignment.members == ("a",)
            assert members.view.names == ("a",)


def made(client: Client, name: Any, ttl: Any, replicas: Any, arguments: dict[str, Any]) -> object:
    group = Group(client, name, **ttl)
    return group.ring(**replicas) if replicas else group.join(**arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("", {}, EmptyKeyError),
        ("workers/", {}, InvalidRequestError),
        (1, {}, TypeError),
        ("workers", {"ttl": 0}, InvalidRequestError),
        ("workers", {"ttl": 1.5}, TypeError),
        ("workers", {"member": ""}, EmptyKeyError),
        ("workers", {"member": "a/b"}, InvalidRequestError),
        ("workers", {"member": b"a"}, TypeError),
        ("workers", {"value": 1}, TypeError),
        ("workers", {"on_conflict": "take"}, InvalidRequestError),
        ("workers", {"replicas": 0}, InvalidRequestError),
    ],
)
async def test_bad_arguments_send_nothing(fake: FakeEtcd, name: Any, arguments: dict[str, Any], error: Any) -> None:
    async with fake.client() as client:
        ttl = {"ttl": arguments.pop("ttl")} if "ttl" in arguments else {}
        replicas = {"replicas": arguments.pop("replicas")} if "replicas" in arguments else None
        with pytest.raises(error):
            made(client, name, ttl, replicas, arguments)
        assert fake.revision == 1


# Observers.


async def test_every_change_is_observed(fake: FakeEtcd) -> None:
    async with fake.client() as client, fake.client() as other:
        group = Group(client, "workers")
        async with group.cache() as members:
            views = members.changes()
            first = await anext(views)
            assert first.members == ()
            waiting = asyncio.ensure_future(anext(views))
            await other.put("another", "key")
            await asyncio.sleep(1)
            assert not waiting.done()
            async with Group(other, "workers").join("a", value="1") as membership:
                second = await waiting
                assert (second.names, second.revision) == (("a",), membership.revision)
                step = asyncio.ensure_future(anext(views))
                await turns(3)
                step.cancel()  # loses nothing
                await membership.update("2")
                third = await anext(views)
                assert [member.text() for member in third.members] == ["2"]
            fourth = await anext(views)
            assert fourth.members == ()
            assert first.revision < second.revision < third.revision < fourth.revision
        with pytest.raises(ClientUsageError, match=r"group\.cache"):
            group.cache().changes()


async def test_in_an_outage_the_last_members_stay(fake: FakeEtcd) -> None:
    async with fake.client() as client:
        group = Group(client, "workers", ttl=5)
        async with group.join("a"), group.cache() as members, group.ring() as ring:
            assert (await anext(members.changes())).names == ("a",)
            for member in fake.members:
                member.stop()
            await asyncio.sleep(60)
            assert ring.owner("k").name == "a"
            assert ring.age >= 60


# Rings.


async def test_all_rings_agree_and_follow_the_members(fake: FakeEtcd) -> None:
    keys = [f"user/{number}" for number in range(200)]
    async with fake.client() as client, fake.client() as other:
        group = Group(client, "workers")
        async with group.ring() as ring, Group(other, "workers").ring() as another:
            with pytest.raises(EmptyGroupError):
                ring.owner("k")
            assert ring.owners("k", 2) == ()
            async with group.join("a", value="1"), group.join("b") as second:
                await ring.wait_current()
                await another.wait_current()
                assert [ring.owner(key) for key in keys] == [another.owner(key) for key in keys]
                assert [ring.owner(key).name for key in keys] == [HashRing(["a", "b"]).owner(key) for key in keys]
                assert {member.name for member in ring.owners("k", 5)} == {"a", "b"}
                assert [member.name for member in ring.members] == ["a", "b"]
                before, old = ring.epoch, ring.assignment
                assert before >= second.revision
                async with group.join("c"):
                    await ring.wait_current()
                    assert ring.epoch > before
                    assert ring.assignment.members == ("a", "b", "c")
                    assert old.members == ("a", "b"), "an assignment does not change"


async def test_the_epoch_is_that_of_the_assignment(fake: FakeEtcd) -> None:
    """It is a revision at which the members were these: a value or another key does not change it."""
    async with fake.client() as client:
        group = Group(client, "workers")
        async with group.join("a", value="1") as membership, group.ring() as ring:
            before, assignment = ring.epoch, ring.assignment
            await membership.update("2")
            await client.put("another", "key")
            await ring.wait_current()
            assert ring.owner("k").text() == "2"
            assert ring.epoch == before
            assert ring.assignment is assignment


@pytest.mark.parametrize("times", [1, 3])
async def test_the_epoch_grows_with_members_that_came_and_went_unseen(fake: FakeEtcd, times: int) -> None:
    """Those that were there in between have written with larger epochs."""
    async with fake.client() as client, fake.client() as other:
        group, others = Group(client, "workers"), Group(other, "workers")
        async with group.join("a"), group.ring() as ring, others.ring() as another:
            changes = ring.changes()
            assert (await anext(changes)).epoch == ring.epoch
            theirs = 0
            for _ in range(times):
                async with others.join("b"):
                    await another.wait_current()
                    theirs = another.epoch
            await another.wait_current()
            await ring.wait_current()
            assert ring.assignment.members == ("a",)
            assert ring.epoch == another.epoch > theirs
            told = await anext(changes)
            assert (told.epoch, told.members) == (ring.epoch, ("a",)), "the epoch alone has moved"


async def test_the_epoch_grows_when_a_member_has_left_and_joined_unseen(fake: FakeEtcd) -> None:
    async with fake.client() as client, fake.client() as other:
        group = Group(client, "workers")
        async with group.join("a"), group.ring() as ring, group.ring() as another:
            await other.put("workers/b", "")
            await ring.wait_current()
            before, changes = ring.epoch, ring.changes()
            await anext(changes)
            await other.delete("workers/b")
            await other.put("workers/b", "")
            await ring.wait_current()
            await another.wait_current()
            assert ring.assignment.members == ("a", "b")
            assert ring.epoch == another.epoch == before + 2
            while (told := await anext(changes)).epoch != ring.epoch:
                pass
            assert told.members == ("a", "b")


async def test_a_key_of_another_kind_below_the_name_does_not_move_the_epoch(fake: FakeEtcd) -> None:
    async with fake.client() as client:
        group = Group(client, "workers")
        async with group.join("a"), group.ring() as ring, Group(client, "workers/of-another").join("b"):
            epoch, assignment = ring.epoch, ring.assignment
            await client.put(b"workers/\xff", "")
            await ring.wait_current()
            assert (ring.epoch, ring.assignment) == (epoch, assignment)


async def test_the_points_of_many_members_are_computed_in_turns_of_the_loop(fake: FakeEtcd) -> None:
    async with fake.client() as client:
        for number in range(20):
            await client.put(f"workers/{number}", "")
        turns_taken = 0

        async def count() -> None:
            nonlocal turns_taken
            while True:
                turns_taken += 1
                await asyncio.sleep(0)

        ring = Group(client, "workers").ring(replicas=4096)
        points = ring._points
        async with ring:
            counting = asyncio.create_task(count())
            assert len(await points()) == 20
            counting.cancel()
            assert turns_taken >= 20


async def test_the_changes_of_a_ring(fake: FakeEtcd) -> None:
    async with fake.client() as client:
        group = Group(client, "workers")
        async with group.ring() as ring:
            changes = ring.changes()
            assert (await anext(changes)).members == ()
            async with group.join("a") as membership:
                assert (await anext(changes)).members == ("a",)
                waiting = asyncio.ensure_future(anext(changes))
                await membership.update("2")
                await asyncio.sleep(1)
                assert not waiting.done(), "the assignment is the same"
            assert (await waiting).members == ()
            await changes.aclose()


async def test_a_ring_that_was_left_tells_nothing(fake: FakeEtcd) -> None:
    async with fake.client() as client:
        ring: Ring = Group(client, "workers").ring()
        with pytest.raises(ClientUsageError, match=r"group\.ring"):
            ring.owner("k")
        async with ring:
            assert ring.assignment.members == ()
        for read in (lambda: ring.owner("k"), lambda: ring.epoch, lambda: ring.members, ring.changes):
            with pytest.raises(CacheError):
                read()


async def test_an_old_epoch_is_refused_where_a_newer_one_was_written(fake: FakeEtcd) -> None:
    """The pattern of the guide: a claim has the epoch of its writer."""

    async def claim(client: Client, name: str, epoch: int) -> bool:
        text = f"{epoch:020}"
        txn = client.txn().when(Key("claims/7").value > text).otherwise(*_put("claims/7", text))
        return not (await txn.commit()).succeeded

    async with fake.client() as client:
        assert await claim(client, "a", 9)
        assert await claim(client, "b", 10)
        assert not await claim(client, "a", 9)
        assert await claim(client, "b", 10)


def _put(key: str, value: str) -> tuple[Any, ...]:
    from etcd_aio import op

    return (op.put(key, value),)


async def test_a_user_without_the_permission(fake: FakeEtcd) -> None:
    async with fake.client() as client:
        with fake.fault("KV/Txn", status="PERMISSION_DENIED"), pytest.raises(PermissionDeniedError):
            await Group(client, "workers").join("a").__aenter__()


# The failure matrix; `tests/unit/layers/test_registration.py` has more of each row.


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_lost_answer_is_found_out(fake: FakeEtcd, is_applied: bool) -> None:
    async with fake.client() as client:
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=2):
            async with Group(client, "workers").join("a", value="1") as membership:
                assert membership.is_registered
                assert fake.keys() == {b"workers/a": b"1"}
        assert fake.keys() == {}


async def test_cancelling_the_block_deletes_the_key(fake: FakeEtcd) -> None:
    async def stay() -> None:
        async with Group(client, "workers").join("a"):
            await asyncio.sleep(1000)

    async with fake.client() as client:
        for seconds in (0.0, 0.001, 0.002, 0.003, 0.004, 0.1):
            task = asyncio.ensure_future(stay())
            await asyncio.sleep(seconds)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(1)
            assert fake.keys() == {}
            assert fake.leases == ()


async def test_a_full_store_is_waited_for(fake: FakeEtcd) -> None:
    async with fake.client() as client, Group(client, "workers").join("a") as membership:
        (lease,) = fake.leases
        with fake.fault("Lease/LeaseGrant", status="NO_SPACE"):
            await client.leases.revoke(lease.id)
            await membership.lost()
            await asyncio.sleep(60)
            assert not membership.is_registered
        await membership.wait_registered()
        assert list(fake.keys()) == [b"workers/a"]


@pytest.mark.parametrize("version", RELEASES)
async def test_a_member_stays_one_when_its_watch_is_compacted(version: str) -> None:
    async with FakeEtcd(version, latency=0.001) as fake, fake.client() as client:
        network = fake.network()
        async with fake.client(engine=network.engine) as other, Group(other, "g").join("m") as membership:
            await asyncio.sleep(1)
            (before,) = (await client.range(prefix="g/")).kvs
            network.refuse()
            network.reset()
            for number in range(5):
                await client.put("noise", f"{number}")
            fake.compact(fake.revision)
            await asyncio.sleep(0.5)
            network.heal()
            await asyncio.sleep(5)
            (after,) = (await client.range(prefix="g/")).kvs
            assert after == before
            assert membership.is_registered


@pytest.mark.parametrize("has_entry", [False, True])
async def test_a_member_is_there_in_a_store_that_was_restored(has_entry: bool) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        backup = fake.back_up()
        async with Group(client, "g", ttl=5).join("m", value="old") as membership:
            if has_entry:
                backup = fake.back_up()
            await membership.update("new")
            await client.put("noise", "")
            fake.members[0].stop()
            fake.restore(backup)
            fake.members[0].start()
            fake.elect(fake.members[0])
            await asyncio.sleep(8)
            assert list(fake.keys("g/").values()) == [b"new"]
            await membership.update("newer")
            assert list(fake.keys("g/").values()) == [b"newer"]


async def test_a_member_has_its_value_in_a_restored_store_whose_history_is_compacted() -> None:
    """As `etcdutl snapshot restore --bump-revision --mark-compacted` leaves it: with an older entry, and no past."""
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        network = fake.network()
        async with (
            fake.client(engine=network.engine) as other,
            Group(other, "g", ttl=5).join("m", value="old") as member,
        ):
            backup = fake.back_up()
            await member.update("new")
            network.refuse()
            network.reset()
            fake.members[0].stop()
            fake.restore(backup)
            fake.members[0].start()
            fake.elect(fake.members[0])
            for number in range(5):
                await client.put("noise", f"{number}")
            fake.compact(fake.revision)
            network.heal()
            await asyncio.sleep(8)
            assert list(fake.keys("g/").values()) == [b"new"]
            assert member.is_registered
