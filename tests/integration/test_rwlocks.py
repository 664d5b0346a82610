"""Read-write locks on real servers: readers together, writers alone, in the order of arrival."""

import asyncio
import random

import pytest

from etcd_aio import Client, LockLostError, LockTimeoutError
from tests.support.locks import hold, keys, until, until_waiting
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.both_stores, pytest.mark.usefixtures("each_store")]


@pytest.fixture
def name(prefix: str) -> str:
    return prefix.rstrip("/")


async def waiting(client: Client, name: str) -> int:
    return len(await client.rwlock(name).contenders())


async def test_entering_a_read_write_lock_itself_says_what_to_enter(client: Client) -> None:
    with pytest.raises(TypeError, match=r"\.reading\(\) or \.writing\(\)"):
        async with client.rwlock("a"):  # type: ignore[attr-defined]
            pytest.fail("it is no block")


async def test_readers_hold_together_and_a_writer_waits_for_all(client: Client, name: str) -> None:
    rw = client.rwlock(name)
    end = asyncio.Event()
    readers = [hold(rw.reading(), until_set=end) for _ in range(3)]
    for _, held in readers:
        await asyncio.wait_for(held.wait(), PATIENCE)
    writer, writes = hold(rw.writing())
    with pytest.raises(LockTimeoutError):
        await rw.writing(timeout=0.2).acquire()
    assert not await rw.writing().try_acquire()
    assert not writes.is_set()
    end.set()
    await asyncio.wait_for(writes.wait(), PATIENCE)
    assert not await rw.reading().try_acquire()
    writer.cancel()
    await asyncio.wait([writer, *(task for task, _ in readers)])
    assert await rw.contenders() == ()


async def test_a_reader_behind_a_waiting_writer_waits_too(client: Client, name: str) -> None:
    rw = client.rwlock(name)
    end = asyncio.Event()
    first, held = hold(rw.reading(), until_set=end)
    await held.wait()
    writer, writes = hold(rw.writing())

    async def writer_waits() -> bool:
        return await waiting(client, name) == 2

    await until(writer_waits)
    with pytest.raises(LockTimeoutError):
        await rw.reading(timeout=0.2).acquire()
    reader, reads = hold(rw.reading())
    writer.cancel()
    await asyncio.wait_for(reads.wait(), PATIENCE)
    assert not writes.is_set()
    end.set()
    reader.cancel()
    await asyncio.wait([first, reader, writer])


async def test_the_keys_have_the_prefixes_of_the_recipe_of_go(client: Client, name: str) -> None:
    async with client.rwlock(name).reading() as reader:
        assert reader.key.startswith(f"{name}/read/".encode())
    async with client.rwlock(name).writing() as writer:
        assert writer.key.startswith(f"{name}/write/".encode())
        assert writer.fencing_token > 0
        (contender,) = await writer.contenders()
        assert contender.key == writer.key


async def test_keys_of_other_clients_count_whatever_they_are_called(client: Client, name: str) -> None:
    """Go's recipe names them by the time."""
    lease = await client.leases.grant(60)
    await client.put(f"{name}/read/1700000000000000000", "", lease=lease.id)
    rw = client.rwlock(name)
    with pytest.raises(LockTimeoutError):
        await rw.writing(timeout=0.2).acquire()
    async with rw.reading():
        pass
    await client.delete(prefix=f"{name}/")
    await client.put(f"{name}/write/1700000000000000000", "", lease=lease.id)
    for lock in (rw.reading(timeout=0.2), rw.writing(timeout=0.2)):
        with pytest.raises(LockTimeoutError):
            await lock.acquire()
    await client.leases.revoke(lease.id)


@pytest.mark.parametrize("kind", ["reading", "writing"])
async def test_data_with_a_lease_is_in_no_ones_way(client: Client, name: str, kind: str) -> None:
    lease = await client.leases.grant(60)
    for end in ("read/1", "write/1", "write/694d", f"read/{lease.id + 1:x}", "write/-5"):
        await client.put(f"{name}/{end}", "", lease=lease.id)
    async with getattr(client.rwlock(name), kind)(timeout=PATIENCE):
        pass
    await client.leases.revoke(lease.id)


@pytest.mark.parametrize("kind", ["reading", "writing"])
async def test_a_waiter_whose_lease_is_revoked_never_enters(client: Client, name: str, kind: str) -> None:
    """etcd-io/etcd#16221: Go's recipe enters."""
    rw = client.rwlock(name, ttl=60)
    end = asyncio.Event()
    writer, held = hold(rw.writing(), until_set=end)
    await held.wait()
    waiter, entered = hold(getattr(rw, kind)())

    async def is_waiting() -> bool:
        return await waiting(client, name) == 2

    await until(is_waiting)
    await client.leases.revoke((await rw.contenders())[1].lease)
    end.set()
    with pytest.raises(LockLostError):
        await asyncio.wait_for(waiter, PATIENCE)
    assert not entered.is_set()
    await writer


async def test_a_waiter_is_woken_by_each_writer_before_it(client: Client, name: str) -> None:
    """etcd-io/etcd#6408: Go's recipe spun for ever."""
    rw = client.rwlock(name)
    ends = [asyncio.Event() for _ in range(3)]
    writers = []
    for number, end in enumerate(ends):
        writers.append(hold(rw.writing(), until_set=end))
        await until_waiting(client, name, number + 1)
    readers = [hold(rw.reading()) for _ in range(2)]
    await until_waiting(client, name, 5)
    for (task, held), end in zip(writers, ends, strict=True):
        await asyncio.wait_for(held.wait(), PATIENCE)
        assert not any(reads.is_set() for _, reads in readers)
        end.set()
        await task
    for task, reads in readers:
        await asyncio.wait_for(reads.wait(), PATIENCE)
        task.cancel()
    await asyncio.wait([task for task, _ in readers])
    await until_waiting(client, name, 0)


async def test_a_history_of_many_readers_and_writers(client: Client, name: str, run_seed: int) -> None:
    chance = random.Random(run_seed)
    history: list[tuple[str, int]] = []  # "read", "write" or "end", with the token
    kinds: dict[int, str] = {}
    rw = client.rwlock(name)

    async def work(kind: str) -> None:
        await asyncio.sleep(chance.uniform(0, 0.2))
        async with rw.reading() if kind == "read" else rw.writing() as lock:
            kinds[lock.fencing_token] = kind
            history.append((kind, lock.fencing_token))
            await asyncio.sleep(chance.uniform(0, 0.005))
            history.append(("end", lock.fencing_token))

    await asyncio.gather(*(work("read") for _ in range(50)), *(work("write") for _ in range(5)))
    holding: set[int] = set()
    newest_writer = newest = most = 0
    for what, token in history:
        if what == "end":
            holding.remove(token)
            continue
        if what == "write":
            assert not holding, "a writer holds alone"
            assert token > newest, "after everything that came before it"
            newest_writer = token
        else:
            assert not any(kinds[other] == "write" for other in holding)
            assert token > newest_writer, "readers follow the writers that came before them"
        newest = max(newest, token)
        holding.add(token)
        most = max(most, len(holding))
    assert most > 1, "readers overlap"
    assert await keys(client, name) == []
