"""Sessions on real servers: several things on one lease, also when a request of one of them is in doubt."""

import asyncio
from contextlib import suppress

import pytest

from etcd_aio import Client, LeaseLostError, LockLostError, Operation
from etcd_aio.concurrency import Leadership, Lock
from etcd_aio.errors import ClientUsageError, EtcdError, LeadershipLostError
from etcd_aio.testing import EtcdServer
from tests.support.locks import hold, keys, until, until_free, until_waiting
from tests.support.tampered import TamperedClient, is_entering
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.both_stores, pytest.mark.usefixtures("each_store")]


@pytest.fixture
def name(prefix: str) -> str:
    return prefix.rstrip("/")


async def test_everything_of_a_session_has_its_lease_and_goes_with_it(client: Client, name: str) -> None:
    async with client.session(ttl=30) as session:
        await client.put(f"{name}-own", "x", lease=session.lease)
        async with (
            session.lock(name) as lock,
            session.semaphore(f"{name}-s", limit=2) as permit,
            session.rwlock(f"{name}-rw").reading() as reader,
        ):
            for held in (lock, permit, reader):
                assert held.key.endswith(f"/{session.id:x}".encode())
            found = await client.leases.time_to_live(session.id, keys=True)
            assert (found.granted_ttl, len(found.keys)) == (30, 4)
        left = session.lock(name)
        await left.acquire()
    assert (await client.leases.time_to_live(session.id)).is_expired
    assert (await client.range(prefix=name)).count == 0


async def test_it_is_used_only_while_it_is_entered(client: Client, name: str) -> None:
    session = client.session()
    with pytest.raises(ClientUsageError, match="async with"):
        await session.lock(name).acquire()
    with pytest.raises(ClientUsageError):
        session.lease  # noqa: B018 - reading it raises


async def test_ten_tasks_of_one_session_exclude_each_other(client: Client, name: str) -> None:
    """etcd-io/etcd#11364: with Go's session, two of them hold at once."""
    inside = 0
    turns: list[int] = []

    async def work(number: int) -> None:
        nonlocal inside
        async with session.lock(name):
            inside += 1
            assert inside == 1
            turns.append(number)
            await asyncio.sleep(0.002)
            inside -= 1

    async with client.session() as session:
        await asyncio.gather(*(work(number) for number in range(10)))
    assert turns == list(range(10)), "in the order of arrival"


async def test_a_task_that_gives_up_in_the_queue_of_a_session_wakes_the_next(client: Client, name: str) -> None:
    async with client.session() as session:
        end = asyncio.Event()
        first, held = hold(session.lock(name), until_set=end)
        await held.wait()
        second, _ = hold(session.lock(name))
        third, third_held = hold(session.lock(name))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second.cancel()
        end.set()
        await asyncio.wait_for(third_held.wait(), PATIENCE)
        third.cancel()
        await asyncio.wait([first, second, third])


@pytest.mark.parametrize("kind", ["lock", "reader", "permit"])
async def test_try_acquire_waits_for_no_other_task_of_the_session(client: Client, name: str, kind: str) -> None:
    async with client.session() as session:

        def make() -> Lock:
            if kind == "lock":
                return session.lock(name)
            return session.semaphore(name, limit=3) if kind == "permit" else session.rwlock(name).reading()

        holder, held = hold(make())
        queued, queued_held = hold(make())
        assert not await make().try_acquire(), "the others are entering"
        await held.wait()
        assert not await make().try_acquire()
        assert not queued_held.is_set()
        for task in (holder, queued):
            task.cancel()
        await asyncio.wait([holder, queued])
        async with make():
            assert not await make().try_acquire(), "by the same task, too"


async def test_two_tasks_that_try_at_once_do_not_wait_for_each_other(client: Client, name: str) -> None:
    async with client.session() as session:
        locks = [session.lock(name) for _ in range(2)]
        async with asyncio.timeout(PATIENCE):
            results = await asyncio.gather(*(lock.try_acquire() for lock in locks))
        assert sorted(results) == [False, True]


async def test_a_task_that_would_wait_for_itself_is_told(client: Client, name: str) -> None:
    async with client.session() as session:
        async with session.lock(name):
            with pytest.raises(ClientUsageError, match="already"):
                await session.lock(name).acquire()
        async with session.semaphore(name, limit=3):
            with pytest.raises(ClientUsageError, match="already"):
                await session.semaphore(name, limit=3).acquire()


async def test_a_task_whose_last_attempt_is_still_cleaned_up_acquires_again(
    shared_server: EtcdServer, name: str
) -> None:
    async with TamperedClient(shared_server.endpoint) as client, client.session() as session:
        client.lose_answer(is_entering)
        for _ in range(3):
            with suppress(TimeoutError):
                async with asyncio.timeout(0), session.lock(name):
                    pass
        async with session.lock(name) as lock:
            assert await keys(client, name) == [lock.key]


async def test_it_stands_in_line_with_others(client: Client, shared_server: EtcdServer, name: str) -> None:
    async with Client(shared_server.endpoint) as other, client.session() as session:
        end = asyncio.Event()
        holder, held = hold(other.lock(name), until_set=end)
        await held.wait()
        waiter, entered = hold(session.lock(name))
        await until_waiting(client, name, 2)
        end.set()
        await asyncio.wait_for(entered.wait(), PATIENCE)
        waiter.cancel()
        await asyncio.wait([holder, waiter])
        await until_free(client, name)


async def test_a_lost_session_loses_its_locks(client: Client, shared_server: EtcdServer, name: str) -> None:
    """The block of the session ends by its loss, a lock in another task by its own."""
    ended: list[str] = []

    async def block() -> None:
        async with client.session(ttl=5) as session:
            tasks.append(asyncio.create_task(session.lock(f"{name}-b").acquire()))
            async with session.lock(name):
                started.set_result(session.id)
                try:
                    await asyncio.sleep(PATIENCE)
                finally:
                    ended.append("body")

    async def elsewhere() -> None:
        async with client.session(ttl=5, on_lost="signal") as session:
            holder, held = hold(session.lock(f"{name}-c"))
            await held.wait()
            other.set_result(session.id)
            with pytest.raises(LockLostError):
                await holder
            await session.lease.lost()
            ended.append("holder")

    loop = asyncio.get_running_loop()
    started, other = loop.create_future(), loop.create_future()
    tasks: list[asyncio.Task[None]] = []
    blocks = [asyncio.create_task(block()), asyncio.create_task(elsewhere())]
    for id_ in (started, other):
        await client.leases.revoke(await id_)
    await asyncio.wait(blocks, timeout=PATIENCE)
    with pytest.raises((LockLostError, LeaseLostError)):
        await blocks[0]
    with pytest.raises(LeaseLostError):
        await blocks[1]
    assert sorted(ended) == ["body", "holder"]
    await asyncio.wait(tasks)


@pytest.mark.parametrize("how", ["left", "revoked"])
async def test_what_other_tasks_hold_ends_before_the_session_does(
    client: Client, shared_server: EtcdServer, name: str, how: str
) -> None:
    """Also a block so young that its key is not watched yet."""
    order: list[str] = []
    held = asyncio.Event()

    async def body() -> None:
        async with session.lock(name):
            held.set()
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                order.append("out")

    async def next_one() -> None:
        async with other.lock(name):
            order.append("in")

    async with Client(shared_server.endpoint) as other, client.session() as session:
        holder = asyncio.create_task(body())
        await held.wait()
        waiter = asyncio.create_task(next_one())
        await until_waiting(client, name, 2)
        if how == "left":
            await session.__aexit__(None, None, None)
        else:
            await session.lease.revoke()
        with pytest.raises(LockLostError, match="session"):
            await holder
        await waiter
        assert order == ["out", "in"]


@pytest.mark.parametrize("how", ["left", "revoked", "orphaned"])
async def test_waiters_in_line_and_in_the_queue_are_told_of_the_end(
    client: Client, shared_server: EtcdServer, name: str, how: str
) -> None:
    async with Client(shared_server.endpoint) as other, other.lock(name), client.session(ttl=5) as session:
        in_line, _ = hold(session.lock(name))
        await until_waiting(client, name, 2)
        queued, _ = hold(session.lock(name))
        await asyncio.sleep(0)
        if how == "left":
            await session.__aexit__(None, None, None)
        elif how == "revoked":
            await session.lease.revoke()
        else:
            session.orphan()
        await asyncio.wait([in_line, queued], timeout=PATIENCE)
        for waiter in (in_line, queued):
            with pytest.raises(LockLostError, match="session"):
                await waiter
        with pytest.raises(LockLostError, match="session"):
            await session.lock(f"{name}-later").acquire()


async def test_a_holder_that_revokes_its_session_is_not_cut_short(client: Client, name: str) -> None:
    async with client.session() as session:
        lock = session.lock(name)
        await lock.acquire()
        await session.lease.revoke()
        assert lock.is_lost
        with pytest.raises(LockLostError, match="revoked by this process"):
            await lock.release()
        assert (await client.leases.time_to_live(session.id)).is_expired


async def test_a_key_in_doubt_is_swept_until_the_session_ends(shared_server: EtcdServer, name: str) -> None:
    """The lease lives on, so a late copy of an entry that was given up is applied, and its key must go."""
    async with TamperedClient(shared_server.endpoint) as client, client.session() as session:
        caught: asyncio.Future[Operation[object]] = asyncio.get_running_loop().create_future()

        async def stuck(operation: Operation[object]) -> None:
            if is_entering(operation) and not caught.done():
                caught.set_result(operation)
                await asyncio.Event().wait()

        client.before = stuck
        task = asyncio.create_task(session.lock(name).acquire())
        entry = await caught
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(3):
            await client.really_do(entry)
            await until_free(client, name)
        async with session.lock(name) as lock:
            assert not await client.really_do(entry), "it comes too late"
            assert await keys(client, name) == [lock.key]
            await asyncio.sleep(0.2)
            assert await keys(client, name) == [lock.key], "it is not swept while it is in use"
        await client.really_do(entry)
        await until_free(client, name)
    with pytest.raises(EtcdError):
        async with Client(shared_server.endpoint) as other:
            await other.do(entry)

    async def no_sweep_is_left() -> bool:
        return not any("sweep" in task.get_name() for task in asyncio.all_tasks())

    await until(no_sweep_is_left)


async def test_an_orphan_is_not_revoked_and_its_keys_stay(shared_server: EtcdServer, name: str) -> None:
    async with Client(shared_server.endpoint) as client:
        async with client.session(ttl=5) as session, session.lock(name) as lock:
            key, token = lock.key, lock.fencing_token
            assert session.orphan() == session.id
            assert lock.is_held
        kv = await client.get(key)
        assert kv is not None
        assert kv.create_revision == token
        assert not (await client.leases.time_to_live(session.id)).is_expired
        await until_free(client, name)


async def test_closing_the_client_releases_what_other_tasks_hold_on_sessions(
    shared_server: EtcdServer, name: str
) -> None:
    """Of a session in the same task, and of one whose own block goes on; and those that wait are told."""
    end = asyncio.Event()

    async def own() -> None:
        async with client.session(ttl=60) as session, session.lock(f"{name}-a"):
            await end.wait()

    async with Client(shared_server.endpoint) as other, Client(shared_server.endpoint) as client:
        session = client.session(ttl=60, on_lost="signal")
        await session.__aenter__()
        second, held = hold(session.lock(f"{name}-b"))
        await held.wait()
        tasks = [asyncio.create_task(own()), second, hold(session.lock(f"{name}-b"))[0]]
        await until_waiting(other, f"{name}-a", 1)
        await client.aclose()
        for task in tasks:
            with pytest.raises(LockLostError, match="closed"):
                await asyncio.wait_for(task, PATIENCE)
        assert await keys(other, f"{name}-a") == []
        assert await keys(other, f"{name}-b") == []
        with pytest.raises(LeaseLostError):
            await session.__aexit__(None, None, None)


@pytest.mark.parametrize("ends", ["session", "client"])
async def test_run_ends_with_its_session(shared_server: EtcdServer, name: str, ends: str) -> None:
    """Whether it leads or waits: on a session there is no other lease to stand with."""
    leads = asyncio.Event()

    async def work(leadership: Leadership) -> None:
        leads.set()
        await asyncio.sleep(PATIENCE)

    async with (
        Client(shared_server.endpoint) as other,
        Client(shared_server.endpoint) as client,
        other.election(f"{name}-b").lead(),
    ):
        session = client.session(ttl=20, on_lost="signal")
        await session.__aenter__()
        running = [asyncio.create_task(session.election(f"{name}-{each}").run(work)) for each in "ab"]
        await leads.wait()
        await until_waiting(other, f"{name}-b", 2)
        if ends == "session":
            await session.__aexit__(None, None, None)
        else:
            await client.aclose()
        for task in running:
            with pytest.raises(LeadershipLostError):
                await asyncio.wait_for(task, PATIENCE)
