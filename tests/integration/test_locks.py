"""Locks on real servers: one holder at a time in the order of arrival, told of every loss in time, and no key left."""

# ruff: noqa: PT012 - the block is what is tested

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import anyio
import pytest

from etcd_aio import Client, EtcdError, Key, LeaseLostError, LockLostError, LockTimeoutError, Operation, PutResult, op
from etcd_aio.concurrency import Lock
from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    EmptyKeyError,
    InvalidRequestError,
    LeaseExpiredError,
    NoAvailableEndpointsError,
    NoSpaceError,
    NotHeldError,
    PermissionDeniedError,
)
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.auth import QUICK_LOGINS, ROOT, WEB, enable_auth
from tests.support.locks import hold, keys, metric, until, until_free, until_waiting
from tests.support.tampered import TamperedClient, is_entering, is_leaving
from tests.support.turns import ends_within, more
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_store")]


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
async def own_server() -> AsyncIterator[EtcdServer]:
    """A member of this test's own."""
    async with EtcdServer() as server:
        yield server


@pytest.fixture
async def tampered(shared_server: EtcdServer) -> AsyncIterator[TamperedClient]:
    async with TamperedClient(shared_server.endpoint) as client:
        yield client


@pytest.fixture
async def other(shared_server: EtcdServer) -> AsyncIterator[Client]:
    """Another process, as far as etcd can tell."""
    async with Client(shared_server.endpoint) as client:
        yield client


@pytest.fixture
def name(prefix: str) -> str:
    return prefix.rstrip("/")


# Holding.


async def test_a_lock_is_a_key_with_a_lease_and_leaves_nothing(tampered: TamperedClient, name: str) -> None:
    began = now()
    async with tampered.lock(name, ttl=20, value="me") as lock:
        (kv,) = (await tampered.range(prefix=name)).kvs
        assert kv.key == lock.key == f"{name}/{kv.lease:x}".encode()
        assert (kv.value, kv.create_revision) == (b"me", lock.fencing_token)
        assert (lock.is_held, lock.is_lost, lock.ttl, lock.name) == (True, False, 20, name.encode())
        assert 18.9 - (now() - began) < lock.remaining <= 19, "less the margin of a second"
        assert await tampered.txn().when(lock.held_condition()).commit()
    assert not lock.is_held
    assert lock.remaining == 0
    assert await keys(tampered, name) == []


async def test_an_uncontended_lock_takes_one_txn_to_acquire_and_one_to_release(
    tampered: TamperedClient, name: str
) -> None:
    async with tampered.lock(name):
        pass
    tampered.sent.clear()
    async with tampered.lock(name):
        assert [is_entering(one) for one in tampered.sent] == [True]
    assert [is_leaving(one) for one in tampered.sent] == [False, True]


async def test_the_default_value_says_who_holds(client: Client, name: str) -> None:
    async with client.lock(name) as lock:
        (contender,) = await lock.contenders()
        host, pid, *task = contender.value.decode().split(" ")
        assert host
        assert pid.isdigit()
        current = asyncio.current_task()
        assert current is not None
        assert " ".join(task) == current.get_name()
        assert (contender.key, contender.create_revision) == (lock.key, lock.fencing_token)


@pytest.mark.parametrize("cycles", [300, pytest.param(10_000, marks=pytest.mark.nightly)])
@pytest.mark.usefixtures("patient_close")
async def test_many_cycles_leave_one_lease_and_no_key(own_server: EtcdServer, cycles: int) -> None:
    async with Client(own_server.endpoint) as client:
        tokens = []
        for _ in range(cycles):
            async with client.lock("a") as lock:
                tokens.append(lock.fencing_token)
        assert len((await client.leases.list()).ids) == 1
        assert await keys(client, "a") == []
        assert tokens == sorted(set(tokens))
    async with Client(own_server.endpoint) as client:
        assert (await client.leases.list()).ids == (), "the close has revoked it"


async def test_ten_tasks_of_one_client_exclude_each_other(client: Client, name: str) -> None:
    """etcd-io/etcd#11364: with Go's session, two of them would share a key."""
    inside = 0
    order: list[int] = []

    async def work() -> None:
        nonlocal inside
        async with client.lock(name) as lock:
            inside += 1
            assert inside == 1
            order.append(lock.fencing_token)
            await asyncio.sleep(0.002)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(10)))
    assert len(order) == 10
    assert order == sorted(order)


async def test_contenders_are_listed_in_the_order_in_which_they_will_hold(
    client: Client, other: Client, name: str
) -> None:
    tasks = []
    for number in range(4):
        task, _ = hold((client, other)[number % 2].lock(name, value=str(number)))
        tasks.append(task)
        await until_waiting(client, name, number + 1)
    contenders = await client.lock(name).contenders()
    assert [one.value for one in contenders] == [b"0", b"1", b"2", b"3"]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await until_free(client, name)


async def test_nested_names_are_locks_of_their_own(client: Client, other: Client, name: str) -> None:
    async with other.lock(f"{name}/b"), other.lock(f"{name}/c"), other.lock(f"{name}/d"):
        async with client.lock(name, timeout=PATIENCE) as lock:
            assert len(await lock.contenders()) == 1
            assert not await other.lock(name).try_acquire()
        assert await client.lock(name).try_acquire()


def _locks(client: Client, name: str) -> dict[str, Callable[[], Any]]:
    """Everything that is held by a key below a name."""
    return {
        "lock": lambda: client.lock(name, timeout=PATIENCE),
        "election": lambda: client.election(name).lead(timeout=PATIENCE),
        "reader": lambda: client.rwlock(name).reading(timeout=PATIENCE),
        "writer": lambda: client.rwlock(name).writing(timeout=PATIENCE),
        "semaphore": lambda: client.semaphore(name, limit=1, timeout=PATIENCE),
    }


@pytest.mark.parametrize("kind", ["lock", "election", "reader", "writer", "semaphore"])
async def test_data_below_the_name_blocks_nothing_whatever_it_looks_like(
    client: Client, other: Client, name: str, kind: str
) -> None:
    lease = await other.leases.grant(60)
    for tail in ("0", "42", "2024", "cafe", "-4d", "config", "7/cafe"):
        for between in ("", "read/", "write/"):
            await other.put(f"{name}/{between}{tail}", "data")
    await other.put(f"{name}/beef", "data", lease=lease.id)  # of another name than its lease
    assert await other.election(name).leader() is None
    assert await other.lock(name).contenders() == ()
    for _ in range(2):
        async with _locks(client, name)[kind]() as held:
            assert held.fencing_token
            if kind != "election":
                assert len(await held.contenders()) == 1
            if kind not in ("election", "reader"):
                assert not await _locks(other, name)[kind]().try_acquire()
    if kind != "election":
        lock = _locks(client, name)[kind]()
        assert await lock.try_acquire()
        waiting = asyncio.create_task(_locks(other, name)[kind]().acquire())
        await until_waiting(client, name, 24)
        await lock.release()
        await waiting
    await other.leases.revoke(lease)


@pytest.mark.parametrize("kind", ["lock", "election", "writer"])
async def test_a_key_that_is_put_without_its_lease_is_a_contenders_no_more(
    client: Client, other: Client, name: str, kind: str
) -> None:
    """As an operator might do by hand: etcd would never delete it."""
    order: list[str] = []

    async def wait() -> None:
        async with _locks(client, name)[kind]():
            order.append("next")

    waiting, fenced, key = None, None, b""
    with pytest.raises(EtcdError, match=r"its key is gone: it was put by another client"):
        async with _locks(other, name)[kind]() as held:
            waiting = asyncio.create_task(wait())
            await until_waiting(client, name, 2)
            key, fenced = held.key, held.fenced
            await asyncio.sleep(0.6)  # until its key is watched
            try:
                await client.put(key, "by hand")  # the watch may tell before the answer comes
                await asyncio.sleep(PATIENCE)
            finally:
                order.append("told")
    assert waiting is not None
    assert fenced is not None
    async with asyncio.timeout(PATIENCE):
        await waiting
    assert sorted(order) == ["next", "told"]
    with pytest.raises(NotHeldError):
        await fenced.put(f"{name}-x", "late")
    await client.delete(key)
    await until_free(client, name)


async def test_a_fenced_write_is_refused_once_the_key_has_lost_its_lease(
    client: Client, other: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etcd_aio.concurrency.held.WATCH_AFTER", PATIENCE)
    with pytest.raises(LockLostError, match="etcd has refused a fenced write"):
        async with client.lock(name) as lock:
            await other.put(lock.key, "by hand")
            await lock.fenced.put(f"{name}-x", "late")
    assert await other.get(f"{name}-x") is None


async def test_try_acquire_writes_nothing_if_the_lock_is_taken(client: Client, other: Client, name: str) -> None:
    async with client.lock(name):
        before = (await client.range(name)).revision
        lock = other.lock(name)
        assert not await lock.try_acquire()
        assert (await client.range(name)).revision == before
        assert not lock.is_held
        with pytest.raises(NotHeldError):
            await lock.release()
    assert await lock.try_acquire()
    assert lock.is_held
    await lock.release()
    assert await keys(client, name) == []


async def test_try_acquire_that_comes_second_gives_its_place_up(
    tampered: TamperedClient, other: Client, name: str
) -> None:
    lock = other.lock(name)

    async def overtaken(operation: Operation[object]) -> None:
        if is_entering(operation):
            await lock.acquire()

    tampered.before = overtaken
    assert not await tampered.lock(name).try_acquire()
    assert await keys(other, name) == [lock.key]
    await lock.release()


async def test_a_timeout_ends_the_wait_and_leaves_no_key(client: Client, other: Client, name: str) -> None:
    async with other.lock(name) as held:
        with pytest.raises(LockTimeoutError, match=re.escape(f"{name}/")) as caught:
            async with client.lock(name, timeout=2):  # enough to get in line
                pytest.fail("never entered")
        assert isinstance(caught.value, TimeoutError)
        assert await keys(client, name) == [held.key]
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_each_acquisition_may_have_a_timeout_of_its_own(client: Client, other: Client, name: str) -> None:
    async with client.lock(name):
        for lock, seconds in ((other.lock(name), 0.2), (other.lock(name, timeout=PATIENCE), 0.2)):
            with pytest.raises(LockTimeoutError):
                await lock.acquire(timeout=seconds)
        short = other.lock(name, timeout=0.2)
        with pytest.raises(InvalidRequestError, match=r"try_acquire\(\) does not wait"):
            await short.acquire(timeout=0)
        waiting = asyncio.create_task(short.acquire(timeout=None))
        await asyncio.sleep(0.5)
        assert not waiting.done()
    await waiting
    await short.release()
    assert await keys(client, name) == []


async def test_a_timeout_of_the_caller_leaves_no_key(client: Client, other: Client, name: str) -> None:
    async with other.lock(name) as held:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.lock(name).acquire()
        with anyio.move_on_after(0.2) as scope:
            await client.lock(name).acquire()
        assert scope.cancelled_caught
        assert await keys(client, name) == [held.key]


async def test_it_is_used_again_but_by_one_task_at_a_time(client: Client, name: str) -> None:
    lock = client.lock(name)
    for _ in range(2):
        async with lock:
            with pytest.raises(ClientUsageError, match="reentrant"):
                await lock.acquire()
            with pytest.raises(ClientUsageError, match=r"another (task|thread)"):
                await asyncio.create_task(lock.acquire())
    for use in (lambda: lock.key, lambda: lock.fencing_token, lambda: lock.fenced, lock.held_condition):
        with pytest.raises(NotHeldError):
            use()


async def test_a_reentrant_lock_is_entered_again_by_its_task(client: Client, name: str) -> None:
    lock = client.lock(name, reentrant=True)
    async with lock:
        token = lock.fencing_token
        async with lock:
            assert await lock.try_acquire()
            assert lock.fencing_token == token
            await lock.release()
        assert lock.is_held
        with pytest.raises(ClientUsageError):
            await asyncio.create_task(lock.acquire())
    assert not lock.is_held
    assert await keys(client, name) == []


async def test_a_reentrant_lock_that_is_lost_is_not_entered_again(client: Client, other: Client, name: str) -> None:
    lock = client.lock(name, reentrant=True, on_lost="signal")
    await lock.acquire()
    (contender,) = await lock.contenders()
    await other.leases.revoke(contender.lease)
    await lock.lost()
    async with other.lock(name):
        with pytest.raises(LockLostError):
            await lock.acquire()
        with pytest.raises(LockLostError):
            await lock.try_acquire()
    with pytest.raises(LockLostError):
        await lock.release()
    async with lock:
        assert lock.is_held, "it may be used again"


async def test_a_body_that_raises_releases_all_the_same(client: Client, name: str) -> None:
    with pytest.raises(LookupError):
        async with client.lock(name):
            raise LookupError
    assert await keys(client, name) == []


async def test_a_released_block_is_left_quietly(client: Client, name: str) -> None:
    async with client.lock(name) as lock:
        await lock.release()
        assert await keys(client, name) == []


async def test_leaving_a_released_block_spares_the_next_holder_of_the_object(
    client: Client, other: Client, name: str
) -> None:
    lock = client.lock(name)
    released, held, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with lock:
            await lock.release()
            released.set()
            await held.wait()
        left.set()

    async def second() -> None:
        await released.wait()
        async with lock:
            held.set()
            await left.wait()
            assert lock.is_held
            assert not await other.lock(name).try_acquire()
        assert await keys(client, name) == []

    await asyncio.gather(first(), second())


async def test_leaving_a_block_releases_what_was_acquired_again_within_it(client: Client, name: str) -> None:
    async with client.lock(name) as lock:
        await lock.release()
        await lock.acquire()
    assert not lock.is_held


async def test_a_block_may_be_left_in_another_task(client: Client, name: str) -> None:
    lock = client.lock(name, on_lost="signal")
    for _ in range(2):
        await asyncio.create_task(lock.__aenter__())
        await asyncio.create_task(lock.__aexit__(None, None, None))
        assert not lock.is_held
        assert await keys(client, name) == []


def test_wrong_arguments_are_refused_before_anything_is_sent() -> None:
    client = Client()
    with pytest.raises(EmptyKeyError):
        client.lock("")
    refused: list[dict[str, Any]] = [{"ttl": 0}, {"margin": -1.0}, {"margin": 4.0}, {"timeout": -1}, {"on_lost": "?"}]
    for options in refused:
        with pytest.raises(InvalidRequestError):
            client.lock("a", **options)
    without_time: list[Callable[[], Lock]] = [
        lambda: client.lock("a", timeout=0),
        lambda: client.rwlock("a").reading(timeout=0),
        lambda: client.rwlock("a").writing(timeout=0.0),
        lambda: client.semaphore("a", limit=1, timeout=0),
    ]
    for make in without_time:
        with pytest.raises(InvalidRequestError, match=r"above 0.*try_acquire\(\)"):
            make()
    wrong: list[dict[str, Any]] = [{"ttl": 2.5}, {"margin": "1"}, {"reentrant": 1}, {"value": 3}]
    for options in wrong:
        with pytest.raises(TypeError):
            client.lock("a", **options)


# Losing.


async def test_a_block_whose_key_is_deleted_is_cancelled(client: Client, other: Client, name: str) -> None:
    lock = client.lock(name)
    with pytest.raises(LockLostError, match="its key is gone"):
        async with lock:
            await asyncio.sleep(0.6)
            await other.delete(lock.key)
            await asyncio.sleep(PATIENCE)
    assert not lock.is_lost, "of the next block"
    assert await keys(client, name) == []


async def test_a_block_whose_lease_is_revoked_is_cancelled(client: Client, other: Client, name: str) -> None:
    with pytest.raises(LockLostError):
        async with client.lock(name) as lock:
            (contender,) = await lock.contenders()
            await other.leases.revoke(contender.lease)
            await asyncio.sleep(PATIENCE)


async def test_a_short_block_is_told_of_a_revoked_lease_by_its_renewal(
    client: Client, other: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etcd_aio.concurrency.held.WATCH_AFTER", PATIENCE)
    with pytest.raises(LockLostError) as caught:
        async with client.lock(name, ttl=2) as lock:
            (contender,) = await lock.contenders()
            await other.leases.revoke(contender.lease)
            await asyncio.sleep(PATIENCE)
    assert isinstance(caught.value.__cause__, LeaseExpiredError)


async def test_with_signal_the_block_goes_on_and_leaving_raises(client: Client, other: Client, name: str) -> None:
    with pytest.raises(LockLostError):
        async with client.lock(name, on_lost="signal") as lock:
            await asyncio.sleep(0.6)
            await other.delete(lock.key)
            async with asyncio.timeout(PATIENCE):
                error = await lock.lost()
            assert lock.is_lost
            assert not lock.is_held
            assert isinstance(error, LockLostError)
            with pytest.raises(LockLostError):
                await lock.fenced.put(f"{name}-x", "v")


async def test_a_release_of_a_lost_lock_raises_and_lets_a_cancellation_go_on(
    client: Client, other: Client, name: str
) -> None:
    lock = client.lock(name)

    async def hold_by_hand() -> None:
        await lock.acquire()
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            await lock.release()

    for is_cancelled_too in (False, True):
        task = asyncio.create_task(hold_by_hand())
        await until_waiting(client, name, 1)
        await asyncio.sleep(0.6)
        await other.delete(prefix=f"{name}/")
        lost = asyncio.create_task(lock.lost())
        await asyncio.wait([lost, task], return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        lost.cancel()
        if is_cancelled_too and not task.done():
            task.cancel()
        with pytest.raises((LockLostError, asyncio.CancelledError)):
            await task
        assert not lock.is_held
        with pytest.raises(NotHeldError):
            await lock.release()
    lock = client.lock(name, on_lost="signal")
    await lock.acquire()
    await asyncio.sleep(0.6)
    await other.delete(lock.key)
    await asyncio.wait_for(lock.lost(), PATIENCE)
    try:
        raise LookupError
    except LookupError:
        with pytest.raises(LockLostError):
            await lock.release()


async def test_lost_tells_of_a_release_too(client: Client, name: str) -> None:
    async with client.lock(name) as lock:
        waiting = asyncio.create_task(lock.lost())
        await asyncio.sleep(0)
    assert await waiting is None
    with pytest.raises(NotHeldError):
        await lock.lost()


async def test_a_loss_and_another_cancellation_at_once_is_a_cancellation(
    client: Client, other: Client, name: str
) -> None:
    task, held = hold(client.lock(name))
    await held.wait()
    await asyncio.sleep(0.6)
    await other.delete(prefix=f"{name}/")

    async def is_told() -> bool:
        return task.cancelling() > 0 or task.done()

    await until(is_told)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, LockLostError)):
        await task


async def test_cut_off_the_block_ends_before_another_holds(own_server: EtcdServer) -> None:
    async with FaultProxy(own_server.endpoint) as proxy, Client(own_server.endpoint) as other:
        client = Client(proxy.endpoint)
        ended = 0.0
        entered = asyncio.Event()

        async def work() -> None:
            nonlocal ended
            try:
                async with client.lock("a", ttl=3, margin=0.5) as lock:
                    entered.set()
                    while not lock.is_lost:  # noqa: ASYNC110 - a body that looks
                        await asyncio.sleep(0.01)
            finally:
                ended = now()

        task = asyncio.create_task(work())
        await entered.wait()
        proxy.black_hole()
        async with asyncio.timeout(PATIENCE), other.lock("a"):
            taken = now()
            assert 0 < ended < taken
        with pytest.raises(LockLostError):
            await task
        proxy.heal()
        await client.aclose()


async def test_the_loss_without_a_member_says_why_it_was_not_renewed(own_server: EtcdServer) -> None:
    async with Client(own_server.endpoint) as client:
        with pytest.raises(LockLostError) as raised:
            async with client.lock("a", ttl=5, margin=0.5):
                await own_server.kill()
                await asyncio.sleep(PATIENCE)
        assert isinstance(raised.value.__cause__, NoAvailableEndpointsError)
        await own_server.restart()


async def test_after_a_stop_of_the_loop_all_of_100_holders_find_themselves_lost_and_no_fenced_write_is_applied(
    own_server: EtcdServer,
) -> None:
    number = 100
    inside = asyncio.Barrier(number + 1)
    go_on = asyncio.Event()

    async def work(client: Client, at: int) -> None:
        with pytest.raises(LockLostError):
            async with client.lock(f"a{at}", ttl=5, on_lost="signal") as lock:
                fenced = lock.fenced
                await inside.wait()
                await go_on.wait()
                assert lock.is_lost, "at the first look"
                with pytest.raises(LockLostError):
                    await fenced.put(f"written{at}", "late")
                await client.put(f"unfenced{at}", "late")  # nothing but the fence stops it

    async with Client(own_server.endpoint) as client:
        async with asyncio.TaskGroup() as group:
            for at in range(number):
                group.create_task(work(client, at))
            await inside.wait()
            go_on.set()
            time.sleep(6.0)  # noqa: ASYNC251 - nothing of this process runs, for longer than the TTL
        assert (await client.range(prefix="written", count_only=True)).count == 0
        assert (await client.range(prefix="unfenced", count_only=True)).count == number


async def test_is_lost_is_right_in_another_thread_while_the_loop_is_blocked(client: Client, name: str) -> None:
    seen: list[bool] = []
    with pytest.raises(LockLostError):
        async with client.lock(name, ttl=2, on_lost="signal") as lock:

            def look() -> None:
                time.sleep(3.0)
                seen.append(lock.is_lost)

            looking = asyncio.create_task(asyncio.to_thread(look))
            await asyncio.sleep(0.05)
            time.sleep(3.5)  # noqa: ASYNC251
            await looking
            assert seen == [True]


async def test_a_waiter_whose_lease_is_revoked_never_enters(client: Client, other: Client, name: str) -> None:
    """etcd-io/etcd#11456, #9921, #11429."""
    release = asyncio.Event()
    task, held = hold(other.lock(name), until_set=release)
    await held.wait()
    waiter, entered = hold(client.lock(name, ttl=60))
    await until_waiting(client, name, 2)
    contender = (await client.lock(name).contenders())[1]
    await other.leases.revoke(contender.lease)
    release.set()
    with pytest.raises(LockLostError):
        await asyncio.wait_for(waiter, PATIENCE)
    assert not entered.is_set()
    await task


async def test_a_waiter_whose_lease_is_revoked_raises_while_the_holder_stays(
    client: Client, other: Client, name: str
) -> None:
    """etcd-io/etcd#19597: with Go's mutex it waits on."""
    async with other.lock(name):
        waiter, entered = hold(client.lock(name, ttl=4))
        await until_waiting(client, name, 2)
        contender = (await client.lock(name).contenders())[1]
        await other.leases.revoke(contender.lease)
        with pytest.raises(LockLostError) as caught:
            await asyncio.wait_for(waiter, PATIENCE)
        assert isinstance(caught.value.__cause__, LeaseLostError)
        assert not entered.is_set()


async def test_when_a_middle_waiter_goes_nobody_enters_early(client: Client, other: Client, name: str) -> None:
    """microsoft/etcd3#176."""
    async with other.lock(name) as lock:
        middle, _ = hold(client.lock(name, value="middle"))
        await until_waiting(client, name, 2)
        last, entered = hold(client.lock(name, value="last"))
        await until_waiting(client, name, 3)
        middle.cancel()
        with pytest.raises(asyncio.CancelledError):
            await middle
        await until_waiting(client, name, 2)
        contenders = await lock.contenders()
        assert [one.value for one in contenders[1:]] == [b"last"]
        assert not entered.is_set()
    async with asyncio.timeout(PATIENCE):
        await entered.wait()
    last.cancel()
    await asyncio.wait([last])


# Doubt.


async def test_a_release_that_is_repeated_leaves_the_next_holder_alone(
    tampered: TamperedClient, other: Client, name: str
) -> None:
    """etcd-io/etcd#22082: Go's unlock deletes the key even if another client holds it by then."""
    async with tampered.lock(name):
        pass
    release = tampered.sent[-1]
    assert is_leaving(release)
    async with tampered.lock(name) as lock:
        await tampered.really_do(release)
        assert await keys(other, name) == [lock.key], "the same key, of the next acquisition"
    async with other.lock(name) as lock:
        await tampered.really_do(release)
        assert await keys(other, name) == [lock.key]


async def test_an_entry_whose_answer_is_lost_is_repeated_and_its_lease_is_not_used_again(
    tampered: TamperedClient, name: str
) -> None:
    lost = tampered.lose_answer(is_entering)
    async with tampered.lock(name) as lock:
        entry = await lost
        (kv,) = (await tampered.range(prefix=name)).kvs
        assert kv.create_revision == lock.fencing_token
    assert (await tampered.leases.time_to_live(kv.lease)).is_expired, "revoked"
    with pytest.raises(EtcdError):
        await tampered.really_do(entry)
    assert await keys(tampered, name) == []


async def test_an_entry_that_is_applied_after_the_release_creates_no_key(tampered: TamperedClient, name: str) -> None:
    late = tampered.hold_back(is_entering)
    async with tampered.lock(name):
        entry = await late
    async with tampered.lock(name) as lock:
        with pytest.raises(EtcdError):
            await tampered.really_do(entry)
        assert await keys(tampered, name) == [lock.key]
    assert await keys(tampered, name) == []


async def test_an_entry_that_is_cancelled_without_an_answer_creates_no_key(tampered: TamperedClient, name: str) -> None:
    """The copy on its way is refused, since its lease is revoked."""
    caught: asyncio.Future[Operation[object]] = asyncio.get_running_loop().create_future()

    async def stuck(operation: Operation[object]) -> None:
        if is_entering(operation) and not caught.done():
            caught.set_result(operation)
            await asyncio.Event().wait()

    tampered.before = stuck
    task = asyncio.create_task(tampered.lock(name).acquire())
    entry = await caught
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(EtcdError):
        await tampered.really_do(entry)
    assert await keys(tampered, name) == []


async def test_a_release_that_fails_goes_on_in_the_background(
    tampered: TamperedClient, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "etcd_aio.locks")
    gone = EtcdError("no answer")
    tampered.refuse(is_leaving, gone)
    async with tampered.lock(name) as lock:
        lease = lock.key.decode().rpartition("/")[2]
    await until_free(tampered, name)

    async def is_told() -> bool:
        return any("is released" in record.message for record in caplog.records)

    await until(is_told)
    said = [(record.levelname, record.message) for record in caplog.records if record.name == "etcd_aio.locks"]
    assert said == [
        (
            "WARNING",
            f"lock '{name}' could not be released yet; this goes on in the background, until its lease 0x{lease} ends "
            "at the latest: no answer",
        ),
        ("INFO", f"lock '{name}' is released now"),
    ]


async def test_an_entry_that_is_refused_leaves_no_lease(tampered: TamperedClient, name: str) -> None:
    before = set((await tampered.leases.list()).ids)
    tampered.refuse(is_entering, NoSpaceError())
    with pytest.raises(NoSpaceError):
        await tampered.lock(name, ttl=77).acquire()

    async def is_revoked() -> bool:
        ids = set((await tampered.leases.list()).ids) - before
        return not [one for one in ids if (await tampered.leases.time_to_live(one)).granted_ttl == 77]

    await until(is_revoked)
    async with tampered.lock(name):
        pass


async def test_an_idle_lease_that_was_revoked_is_replaced(client: Client, other: Client, name: str) -> None:
    async with client.lock(name, ttl=300) as lock:
        (contender,) = await lock.contenders()
    await other.leases.revoke(contender.lease)
    async with client.lock(name, ttl=300) as lock:
        assert lock.is_held
        assert str(contender.lease) not in lock.key.decode()


async def test_an_idle_lease_that_was_revoked_is_replaced_however_many_there_are(
    client: Client, other: Client, name: str
) -> None:
    locks = [client.lock(f"{name}-{at}", ttl=300) for at in range(4)]
    await asyncio.gather(*(lock.acquire() for lock in locks))
    leases = [(await lock.contenders())[0].lease for lock in locks]
    await asyncio.gather(*(lock.release() for lock in locks))
    for lease in leases:
        await other.leases.revoke(lease)
    async with client.lock(name, ttl=300) as lock:
        assert lock.is_held


async def test_compaction_at_every_step_is_not_noticed(tampered: TamperedClient, other: Client, name: str) -> None:
    """etcd-io/etcd#9715, #9386, #21128: Go's mutex watches from an old revision."""

    async def compacting(operation: Operation[object]) -> None:
        await other.put("x", "")
        await other.compact((await other.put("x", "")).revision)

    tampered.before = compacting
    release = asyncio.Event()
    holder, held = hold(other.lock(name), until_set=release)
    await held.wait()
    waiter, entered = hold(tampered.lock(name))
    await until_waiting(other, name, 2)
    release.set()
    async with asyncio.timeout(PATIENCE):
        await entered.wait()
    waiter.cancel()
    await asyncio.wait([waiter, holder])
    await until_free(other, name)


async def test_in_a_full_store_a_lock_is_refused_and_held_ones_are_released() -> None:
    async with EtcdServer(flags=["--quota-backend-bytes=1000000"]) as server, Client(server.endpoint) as client:
        held = client.lock("a", ttl=60)
        permit = client.semaphore("s", limit=2, ttl=60)
        await held.acquire()
        await permit.acquire()

        async def fill() -> None:
            for number in range(500):
                await client.put(f"k{number}", b"x" * 100_000)

        with pytest.raises(NoSpaceError):
            await fill()
        with pytest.raises(NoSpaceError):
            await client.lock("b", ttl=60).acquire()
        with pytest.raises(NoSpaceError):
            await client.semaphore("s", limit=2, ttl=60).acquire()
        assert await keys(client, "b") == []
        assert await keys(client, "s") == [permit.key]
        await held.release()
        await permit.release()
        assert await keys(client, "a") == []
        assert await keys(client, "s") == []


@pytest.mark.whole_store
async def test_without_permission_it_is_refused_and_the_error_names_the_key(caplog: pytest.LogCaptureFixture) -> None:
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)
        async with (
            Client(server.endpoint, auth=ROOT, allow_insecure_auth=True) as root,
            Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client,
        ):
            with pytest.raises(PermissionDeniedError, match="other/a/"):
                await client.lock("other/a").acquire()
            assert await keys(root, "other/a") == []
            async with client.lock("app/a") as lock:
                assert lock.is_held
            async with client.lock("app/b", ttl=5) as lock:
                await root.auth.user_revoke_role(WEB[0], "app")
            assert any("could not be released yet" in record.message for record in caplog.records)
            await until_free(root, "app/b")


# Fencing.


async def test_fenced_writes_are_writes(client: Client, name: str) -> None:
    async with client.lock(name) as lock:
        fenced = lock.fenced
        put = await fenced.put(f"{name}-a", "1", prev_kv=True)
        assert isinstance(put, PutResult)
        assert put.prev_kv is None
        result = await fenced.txn().when(Key(f"{name}-a").value == "2").then(op.put(f"{name}-b", "x")).commit()
        assert not result
        get = op.get(f"{name}-a")
        result = await fenced.txn().when(Key(f"{name}-a").value == "1").then(op.put(f"{name}-b", "x"), get).commit()
        assert result
        found = result[get]
        assert found is not None
        assert found.value == b"1"
        result = await fenced.txn().then(op.put(f"{name}-c", "x"), get).commit()
        assert result.succeeded
        assert len(result.responses) == 2
        assert result.revision > put.revision
        assert (await fenced.delete(prefix=f"{name}-")).deleted == 3


async def test_fenced_writes_can_be_applied_exactly_once(tampered: TamperedClient, other: Client, name: str) -> None:
    async with tampered.exactly_once() as once, tampered.lock(name, on_lost="signal") as lock:
        fenced = lock.fenced_by(once)
        lost = tampered.lose_answer(lambda one: isinstance(one, op.TxnOp) and f"{name}-a" in repr(one))
        put = await fenced.put(f"{name}-a", "1")
        assert lost.done()
        kv = await other.get(f"{name}-a")
        assert kv is not None
        assert (kv.version, kv.mod_revision) == (1, put.revision)
        get = op.get(f"{name}-a")
        result = await fenced.txn().when(Key(f"{name}-a").value == "1").then(op.put(f"{name}-b", "x"), get).commit()
        assert result
        assert result[get] is not None
        assert (await fenced.delete(prefix=f"{name}-")).deleted == 2
        await other.delete(lock.key)
        with pytest.raises(LockLostError):
            await fenced.put(f"{name}-a", "late")
        with pytest.raises(LockLostError):
            await lock.release()
    assert await other.get(f"{name}-a") is None


async def test_fenced_writes_whose_answers_are_lost_say_that_they_are_replayed(
    tampered: TamperedClient, name: str
) -> None:
    def answer_is_lost() -> None:
        tampered.lose_answer(lambda one: isinstance(one, op.TxnOp) and f"{name}-a" in repr(one))

    async with tampered.exactly_once() as once, tampered.lock(name) as lock:
        fenced = lock.fenced_by(once)
        first = await fenced.put(f"{name}-a", "0")
        assert not first.is_replayed
        assert first.header.cluster_id
        answer_is_lost()
        put = await fenced.put(f"{name}-a", "1", prev_kv=True)
        assert put.is_replayed
        assert put.prev_kv is not None
        assert put.prev_kv.value == b"0"
        answer_is_lost()
        plain = await fenced.txn().then(op.put(f"{name}-a", "2")).commit()
        assert plain.is_replayed
        answer_is_lost()
        conditional = await fenced.txn().when(Key(f"{name}-a").value == "2").then(op.put(f"{name}-a", "3")).commit()
        assert conditional.succeeded
        assert conditional.is_replayed
        answer_is_lost()
        deletion = await fenced.delete(f"{name}-a")
        assert deletion.deleted == 1
        assert deletion.is_replayed
        assert first.revision < put.revision < plain.revision < conditional.revision < deletion.revision


async def test_a_fenced_write_after_the_ownership_is_refused_by_etcd(
    client: Client, other: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etcd_aio.concurrency.held.WATCH_AFTER", PATIENCE)
    with pytest.raises(LockLostError):
        async with client.lock(name, on_lost="signal") as lock:
            await other.delete(lock.key)
            assert not lock.is_lost, "it is not known here"
            with pytest.raises(LockLostError):
                await lock.fenced.put(f"{name}-x", "v")
            assert lock.is_lost
    assert await client.get(f"{name}-x") is None


@pytest.mark.parametrize("asks", ["client", "call"])
async def test_a_fenced_write_whose_repetition_is_refused_may_have_been_applied(
    shared_server: EtcdServer, client: Client, name: str, asks: str
) -> None:
    """Its first copy is applied and its answer lost; the key is deleted before the second one arrives."""
    write = f"{name}-x"

    async def meddle(key: bytes) -> None:
        async with client.watch(write) as watcher:
            proxy.cut_after(0, "to_client", connection="open")
            proxy.refuse()
            written.set()
            await anext(watcher)
        await client.delete(key)
        proxy.heal()

    written = asyncio.Event()
    retry: Any = "always" if asks == "client" else "safe"
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint, retry=retry) as repeating:
        lock = repeating.lock(name, on_lost="signal")
        await lock.acquire()
        meddling = asyncio.create_task(meddle(lock.key))
        await written.wait()
        with pytest.raises(EtcdError) as raised:
            if asks == "client":
                await lock.fenced.put(write, "1")
            else:
                await lock.fenced.txn().then(op.put(write, "1")).commit(retry="always")
        assert raised.value.maybe_applied
        await meddling
        with suppress(LockLostError):
            await lock.release()


async def test_a_fenced_write_that_arrives_after_the_release_is_not_applied(
    tampered: TamperedClient, name: str
) -> None:
    late = tampered.hold_back(lambda one: is_entering(one) and one.when[0].operand > 0)
    async with tampered.lock(name) as lock:
        fenced = lock.fenced
        with pytest.raises(EtcdError):
            await fenced.put(f"{name}-x", "late")
    async with tampered.lock(name):
        assert not await tampered.really_do(await late)
    assert await tampered.get(f"{name}-x") is None
    with pytest.raises(NotHeldError):
        await fenced.put(f"{name}-x", "v")


# Closing.


@pytest.mark.usefixtures("patient_close")
async def test_closing_releases_the_locks_of_other_tasks_and_revokes_idle_leases(own_server: EtcdServer) -> None:
    client = Client(own_server.endpoint)
    task, held = hold(client.lock("a", ttl=100))
    await held.wait()
    waiter, _ = hold(client.lock("a", ttl=100))
    async with client.lock("b", ttl=100):
        pass
    await until_waiting(client, "a", 2)
    await asyncio.wait_for(client.aclose(), PATIENCE)
    for ended in (task, waiter):
        with pytest.raises(LockLostError) as caught:
            await asyncio.wait_for(ended, PATIENCE)
        assert isinstance(caught.value.__cause__, LeaseLostError)
        assert isinstance(caught.value.__cause__.__cause__, ClientClosedError)
    async with Client(own_server.endpoint) as other:
        assert (await other.leases.list()).ids == ()
        assert await keys(other, "a") == []
    with pytest.raises(ClientClosedError):
        await client.lock("a").acquire()
    assert not {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio")}


async def test_closing_within_the_block_is_not_cut_short(shared_server: EtcdServer, name: str) -> None:
    client = Client(shared_server.endpoint)
    is_closed = False
    with pytest.raises(LockLostError):
        async with client.lock(name, ttl=2):
            await client.aclose()
            is_closed = True
    assert is_closed
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_idle_leases_are_revoked_after_a_while(own_server: EtcdServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etcd_aio.lease.pool.IDLE_SECONDS", 0.2)
    async with Client(own_server.endpoint) as client:
        async with AsyncExitStack() as stack:
            for number in range(12):
                await stack.enter_async_context(client.lock(f"a{number}"))
            assert len((await client.leases.list()).ids) == 12

        async def are_revoked() -> bool:
            return (await client.leases.list()).ids == ()

        await until(are_revoked)


# Crowds.


@pytest.mark.parametrize("number", [100, pytest.param(1000, marks=pytest.mark.nightly)])
async def test_a_release_wakes_one_of_many_in_the_order_of_arrival(own_server: EtcdServer, number: int) -> None:
    sent = 'grpc_server_msg_sent_total{grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"}'
    async with Client(own_server.endpoint, timeout=PATIENCE) as client, Client(own_server.endpoint) as other:
        first = other.lock("a", ttl=60)
        await first.acquire()
        turns: list[int] = []

        async def work(at: int) -> None:
            async with client.lock("a", ttl=60, value=str(at)) as lock:
                turns.append(lock.fencing_token)

        tasks = [asyncio.create_task(work(at)) for at in range(number)]
        await until_waiting(other, "a", number + 1)

        async def all_watch() -> bool:
            return await metric(own_server, "etcd_debugging_mvcc_watcher_total") >= number

        await until(all_watch)
        events = "etcd_debugging_mvcc_events_total"
        before, reads = await metric(own_server, events), await metric(own_server, sent)
        await first.release()
        async with asyncio.timeout(PATIENCE * 3):
            await asyncio.gather(*tasks)
        assert turns == sorted(turns)
        assert len(turns) == number
        delivered = await metric(own_server, events) - before
        assert delivered <= 1.1 * number, "one waiter for each release"
        looks = await metric(own_server, sent) - reads
        assert looks <= 1.1 * number + 10, "no waiter but the next sends a call"


# Cancellation.

Action = Callable[[Lock], Awaitable[object]]


async def sweep(
    make: Callable[[], Lock], act: Action, other: Client, *, is_held: bool = False, late: bool = False
) -> int:
    """Cancel an action after each number of turns of the loop, until it ends or that is large. Returns the number.

    Args:
        make: makes the lock.
        act: the action.
        other: a client that looks.
        is_held: the lock is held before.
        late: its key may go a moment after the action has ended.
    """
    before = await keys(other, "a")
    turns = 1  # with 0, the action never begins
    while turns < 600:
        lock = make()
        if is_held:
            await lock.acquire()
        is_done = await ends_within(turns, act(lock))
        if lock.is_held:
            assert not is_held
            await lock.release()
        if is_done:
            break
        if is_held or late:
            await until_waiting(other, "a", len(before))
        else:
            assert await keys(other, "a") == before, f"after {turns} turns"
        turns = more(turns)
    return turns


async def until_clean(server: EtcdServer, other: Client, held: int) -> None:
    """Wait until nothing is left but so many locks of the other client."""

    async def is_clean() -> bool:
        watches = await metric(server, "etcd_debugging_mvcc_watcher_total")
        leases = len((await other.leases.list()).ids)
        names = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio")]
        own = [name for name in names if re.search("lock|semaphore|revocation|session|sweep|mark", name)]
        return watches <= held and leases == held and len(own) <= 2 * held

    await until(is_clean)


@pytest.mark.parametrize(
    ("method", "is_taken"),
    [
        *((method, False) for method in ("acquire", "try_acquire", "release", "contenders", "lost")),
        *((method, True) for method in ("acquire", "try_acquire", "contenders")),
    ],
)
@pytest.mark.usefixtures("patient_close")
async def test_cancelled_at_every_turn_of_the_loop_and_nothing_stays(
    own_server: EtcdServer, method: str, is_taken: bool
) -> None:
    async with Client(own_server.endpoint) as other, AsyncExitStack() as stack:
        if is_taken:
            await stack.enter_async_context(other.lock("a", ttl=300))
        async with Client(own_server.endpoint) as client:

            async def action(lock: Lock) -> None:
                if method == "lost":
                    async with client.lock("b", ttl=200) as lock:
                        await lock.lost()
                else:
                    await getattr(lock, method)()

            turns = await sweep(lambda: client.lock("a", ttl=200), action, other, is_held=method == "release")
            assert turns >= 3
        assert await keys(other, "b") == []
        await until_clean(own_server, other, int(is_taken))


@pytest.mark.parametrize("kind", ["reader", "writer", "head", "not the head", "of a session"])
@pytest.mark.usefixtures("patient_close")
async def test_waiters_of_every_kind_are_cancelled_at_every_turn(own_server: EtcdServer, kind: str) -> None:
    async with Client(own_server.endpoint) as other, AsyncExitStack() as stack:
        held = 1
        if kind in ("reader", "writer"):
            await stack.enter_async_context(other.rwlock("a", ttl=300).writing())
        elif kind == "of a session":
            await stack.enter_async_context(other.lock("a", ttl=300))
        else:
            await stack.enter_async_context(other.semaphore("a", limit=1, ttl=300))
        if kind == "not the head":
            held = 2
            waiter, _ = hold(other.semaphore("a", limit=1, ttl=300))
            await until_waiting(other, "a", 2)
            stack.callback(waiter.cancel)
        async with Client(own_server.endpoint) as client, client.session(ttl=200) as session:
            make: dict[str, Callable[[], Lock]] = {
                "reader": lambda: client.rwlock("a", ttl=200).reading(),
                "writer": lambda: client.rwlock("a", ttl=200).writing(),
                "head": lambda: client.semaphore("a", limit=1, ttl=200),
                "not the head": lambda: client.semaphore("a", limit=1, ttl=200),
                "of a session": lambda: session.lock("a"),
            }
            # A session cannot be revoked, so a late copy of a request is swept.
            late = kind == "of a session"
            assert await sweep(make[kind], lambda lock: lock.acquire(), other, late=late) > 100
        await until_clean(own_server, other, held)


@pytest.mark.usefixtures("patient_close")
async def test_the_first_acquisition_of_a_client_is_cancelled_at_every_turn(own_server: EtcdServer) -> None:
    """Without a lease in the pool: the grant may be cancelled too."""
    async with Client(own_server.endpoint) as other:
        turns = 0
        is_done = False
        while not is_done:
            async with Client(own_server.endpoint) as client:
                await client.get("a")
                lock = client.lock("a", ttl=200)
                is_done = await ends_within(turns, lock.acquire())
                if is_done:
                    await lock.release()
                turns += 1
            assert await keys(other, "a") == []
            assert (await other.leases.list()).ids == ()
        assert turns > 5
