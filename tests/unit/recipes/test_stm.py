"""recipes/stm/: the anomalies of each level, opacity, conflicts, and lost answers, on a fake."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from etcd_aio import UNSET, Client, InvalidRequestError, KeyValue, RetryMode, Timeout
from etcd_aio.errors import (
    ClientUsageError,
    EmptyKeyError,
    EtcdError,
    EtcdTimeoutError,
    FutureRevisionError,
    LockLostError,
    TxnConflictError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Isolation, StmResult, Transaction
from etcd_aio.recipes.stm.turnstile import turnstile_of
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

LEVELS: Final[tuple[Isolation, ...]] = (
    "serializable_snapshot",
    "serializable",
    "repeatable_reads",
    "read_committed",
)
PINNED: Final = LEVELS[:2]


def number(kv: KeyValue | None) -> int:
    return 0 if kv is None else int(kv.text())


async def increment(tx: Transaction) -> int:
    value = number(await tx.get("n")) + 1
    tx.put("n", str(value))
    return value


class Meddler:
    """Does something between two steps of a function, in its first run only."""

    def __init__(self, client: Client, **puts: str) -> None:
        self.client, self.puts, self.runs = client, puts, 0

    async def __call__(self) -> None:
        self.runs += 1
        if self.runs == 1:
            for key, value in self.puts.items():
                if value:
                    await self.client.put(key, value)
                else:
                    await self.client.delete(key)


async def lost_update(client: Client, level: Isolation) -> bool:
    await client.put("n", "1")
    meddle = Meddler(client, n="10")

    async def function(tx: Transaction) -> None:
        value = number(await tx.get("n"))
        await meddle()
        tx.put("n", str(value + 1))

    await client.stm(function, isolation=level)
    return number(await client.get("n")) == 2


async def write_skew(client: Client, level: Isolation) -> bool:
    """Two doctors are on call, and each leaves if there is another one."""
    await client.put("a", "1")
    await client.put("b", "1")
    both_have_read = asyncio.Barrier(2)
    waits = {"a": True, "b": True}

    async def leave(own: str, tx: Transaction) -> None:
        on_call = number(await tx.get("a")) + number(await tx.get("b"))
        if waits[own]:
            waits[own] = False
            await both_have_read.wait()
        if on_call > 1:
            tx.put(own, "0")

    await asyncio.gather(*(client.stm(lambda tx, own=own: leave(own, tx), isolation=level) for own in "ab"))  # type: ignore[misc]
    return not number(await client.get("a")) + number(await client.get("b"))


async def read_skew(client: Client, level: Isolation) -> bool:
    """Whether any run of the function sees a state that never was: a + b is always 10."""
    await client.put("a", "5")
    await client.put("b", "5")
    seen: list[int] = []
    runs = 0

    async def function(tx: Transaction) -> None:
        nonlocal runs
        runs += 1
        a = number(await tx.get("a"))
        if runs == 1:
            await move(client)
        seen.append(a + number(await tx.get("b")))
        tx.put("c", "")

    async def move(client: Client) -> None:
        await client.stm(swap)

    async def swap(tx: Transaction) -> None:
        tx.put("a", "1")
        tx.put("b", "9")

    await client.stm(function, isolation=level)
    return set(seen) != {10}


async def committed_read_skew(client: Client, level: Isolation) -> bool:
    await client.put("a", "5")
    meddle = Meddler(client, a="1", b="9")

    async def function(tx: Transaction) -> int:
        a = number(await tx.get("a"))
        await meddle()
        return a + number(await tx.get("b"))

    return (await client.stm(function, isolation=level)).value == 14


async def non_repeatable_read(client: Client, level: Isolation) -> bool:
    await client.put("n", "1")
    meddle = Meddler(client, n="2")

    async def function(tx: Transaction) -> bool:
        first = number(await tx.get("n"))
        await meddle()
        return first != number(await tx.get("n"))

    return (await client.stm(function, isolation=level)).value


async def phantom(client: Client, level: Isolation) -> bool:
    await client.put("r/a", "1")
    meddle = Meddler(client, **{"r/b": "1"})

    async def function(tx: Transaction) -> None:
        found = await tx.range(prefix="r/")
        await meddle()
        tx.put("sum", str(sum(map(number, found))))

    await client.stm(function, isolation=level)
    return number(await client.get("sum")) == 1


async def vanished_row(client: Client, level: Isolation) -> bool:
    await client.put("r/a", "1")
    await client.put("r/b", "1")
    meddle = Meddler(client, **{"r/b": ""})

    async def function(tx: Transaction) -> None:
        found = await tx.range(prefix="r/")
        await meddle()
        tx.put("sum", str(sum(map(number, found))))

    await client.stm(function, isolation=level)
    return number(await client.get("sum")) == 2


async def overwritten_blindly(client: Client, level: Isolation) -> bool:
    """A key that was not read, and that has changed since the first read, is overwritten."""
    await client.put("a", "1")
    meddle = Meddler(client, b="other")

    async def function(tx: Transaction) -> int:
        await tx.get("a")
        await meddle()
        tx.put("b", "own")
        return 0

    result = await client.stm(function, isolation=level)
    return result.attempts == 1


Anomaly = Callable[[Client, Isolation], Awaitable[bool]]
# At which levels it appears.
ANOMALIES: Final[dict[Anomaly, frozenset[str]]] = {
    lost_update: frozenset({"read_committed"}),
    write_skew: frozenset({"read_committed"}),
    read_skew: frozenset({"repeatable_reads", "read_committed"}),
    committed_read_skew: frozenset({"read_committed"}),
    non_repeatable_read: frozenset({"read_committed"}),
    phantom: frozenset({"repeatable_reads", "read_committed"}),
    vanished_row: frozenset({"read_committed"}),
    overwritten_blindly: frozenset({"serializable", "repeatable_reads", "read_committed"}),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: anomaly.__name__)
async def test_anomalies_appear_as_the_table_of_the_levels_says(anomaly: Anomaly, level: Isolation) -> None:
    async with FakeEtcd(members=3) as fake, fake.client() as client:
        assert await anomaly(client, level) == (level in ANOMALIES[anomaly])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("anomaly", ANOMALIES, ids=lambda anomaly: anomaly.__name__)
async def test_a_member_that_is_behind_changes_nothing(
    anomaly: Anomaly, level: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        FakeEtcd(members=3) as fake,
        Client(fake.endpoints[:2], engine=fake.engine) as client,
        Client(fake.endpoints[2], engine=fake.engine, require_leader=False) as behind,
    ):
        fake.load({"old": "1"})
        await behind.get("old")
        fake.members[2].isolate()  # it serves what it had, to reads that ask for no more
        linearizable, too_new = client.do, 0

        async def do(operation: Any, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> Any:
            nonlocal too_new
            if not operation.serializable:
                return await linearizable(operation, timeout=timeout, retry=retry)
            try:
                return await behind.do(operation, timeout=timeout, retry=retry)
            except FutureRevisionError:
                too_new += 1
                raise

        monkeypatch.setattr(client, "do", do)
        assert await anomaly(client, level) == (level in ANOMALIES[anomaly])
        reads_twice = anomaly in (write_skew, read_skew, committed_read_skew, phantom, vanished_row)
        assert (too_new > 0) == (reads_twice and level in PINNED)


@pytest.mark.slow
@pytest.mark.parametrize("level", PINNED)
async def test_every_run_sees_one_state_under_a_thousand_commits(level: Isolation) -> None:
    keys = [f"acc/{i}" for i in range(4)]

    async def move(tx: Transaction, step: int) -> None:
        values = [number(await tx.get(key)) for key in keys]
        assert sum(values) == 400, "the state never was"
        tx.put(keys[step % 4], str(values[step % 4] - 1))
        tx.put(keys[(step + 1) % 4], str(values[(step + 1) % 4] + 1))

    async with FakeEtcd(latency=0.001) as fake, fake.client(timeout=None) as one, fake.client(timeout=None) as two:
        fake.load(dict.fromkeys(keys, "100"))

        async def work(client: Client, worker: int) -> int:
            runs = 0
            for step in range(25):
                runs += (await client.stm(lambda tx, at=step + worker: move(tx, at), isolation=level)).attempts  # type: ignore[misc]
            return runs

        runs = sum(await asyncio.gather(*(work(client, i) for i in range(20) for client in (one, two))))
        assert sum(map(int, fake.keys("acc/").values())) == 400
        assert runs > 1_000, "there were conflicts"
        assert not len(turnstile_of(one))


async def test_one_hot_key_takes_three_commits_each_at_most() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client(timeout=None) as client:

        async def work() -> list[StmResult[int]]:
            return [await client.stm(increment) for _ in range(10)]

        results = [one for found in await asyncio.gather(*(work() for _ in range(64))) for one in found]
        assert sorted(result.value for result in results) == list(range(1, 641))
        commits = sum(call.method == "KV/Txn" for call in fake.calls)
        assert commits <= 3 * 640
        assert commits < 1.5 * 640, "the turnstile works"
        assert len({result.revision for result in results}) == 640


async def test_contention_that_is_over_costs_nothing() -> None:
    async with FakeEtcd(latency=0.01) as fake, fake.client(timeout=None) as client:
        contention = turnstile_of(client).contend([b"n"])
        contention.measured(0.01)
        for conflicts in range(1, 10):
            contention.after_conflict(conflicts, lambda: 1.0)
        await asyncio.sleep(2)
        for value in range(1, 4):
            before = len(fake.calls)
            result = await client.stm(increment)
            assert (result.value, result.attempts) == (value, 1)
            assert len(fake.calls) == before + 2


async def test_the_values_that_a_conflict_tells_are_the_next_snapshot_as_a_whole() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        fake.load({"a": "5", "b": "5"})
        meddle = Meddler(client, a="1")
        revisions: list[int] = []

        async def function(tx: Transaction) -> int:
            a = number(await tx.get("a"))
            await meddle()
            revisions.append(tx.revision)
            if meddle.runs > 1:
                fake.load({"b": "100"})  # later than the snapshot of this run
                b = number(await tx.get("b"))
                return a + b
            tx.put("a", "2")
            return 0

        reads = len(fake.calls)
        assert (await client.stm(function)).value == 6, "of the revision of the snapshot"
        methods = [call.method for call in fake.calls[reads:]]
        assert methods == ["KV/Range", "KV/Put", "KV/Txn", "KV/Range"]
        assert revisions == [2, 3]


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_lost_answer_is_no_conflict(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client(retry="always") as client:
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1), pytest.raises(EtcdError) as raised:
            await client.stm(increment)
        assert raised.value.maybe_applied
        assert fake.keys() == ({b"n": b"1"} if is_applied else {})
        assert not len(turnstile_of(client))


@pytest.mark.parametrize("is_applied", [False, True])
async def test_exactly_once_resolves_a_lost_answer(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.exactly_once() as once:
        assert (await client.stm(increment, writer=once)).value == 1
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
            result = await client.stm(increment, writer=once)
        assert (result.value, result.attempts) == (2, 1)
        meddle = Meddler(client, n="10")

        async def function(tx: Transaction) -> None:
            value = number(await tx.get("n"))
            await meddle()
            tx.put("n", str(value + 1))

        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
            assert (await client.stm(function, writer=once)).attempts == 2
        assert fake.keys("n") == {b"n": b"11"}


async def test_a_lock_can_fence_it() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        lock = client.lock("l", on_lost="signal")
        await lock.acquire()
        assert (await client.stm(increment, writer=lock.fenced)).value == 1
        await client.delete(lock.key)
        with pytest.raises(LockLostError):
            await client.stm(increment, writer=lock.fenced)
        assert fake.keys("n") == {b"n": b"1"}


async def test_a_compaction_of_the_revision_begins_the_attempt_again() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        fake.load({"a": "1", "b": "1"})
        runs = 0

        async def function(tx: Transaction) -> int:
            nonlocal runs
            runs += 1
            a = number(await tx.get("a"))
            if runs == 1:
                fake.load({"a": "2", "b": "2"})
                fake.compact(fake.revision)
            b = number(await tx.get("b"))
            return a + b

        result = await client.stm(function)
        assert (result.value, runs) == (4, 2)


async def test_it_gives_up_and_names_the_keys() -> None:
    async with FakeEtcd() as fake, fake.client() as client:

        async def function(tx: Transaction) -> None:
            await tx.get("a")
            await tx.get("b")
            fake.load({"b": "x"})
            tx.put("a", "1")

        with pytest.raises(TxnConflictError) as raised:
            await client.stm(function, max_attempts=3)
        assert (raised.value.attempts_made, raised.value.conflicts) == (3, (b"b",))
        assert not raised.value.maybe_applied
        with pytest.raises(EtcdTimeoutError):
            await client.stm(function, max_attempts=10**6, timeout=0.5)
        assert fake.keys("a") == {}
        assert not len(turnstile_of(client))


async def test_the_timeout_bounds_the_function_and_the_turnstile() -> None:
    async with FakeEtcd() as fake, fake.client() as client:

        async def stuck(tx: Transaction) -> None:
            await tx.get("a")
            await asyncio.sleep(1e6)

        with pytest.raises(EtcdTimeoutError, match="function"):
            await client.stm(stuck, timeout=0.5)

        async def own_timeout(tx: Transaction) -> None:
            raise TimeoutError("of the function")

        with pytest.raises(TimeoutError, match="of the function"):
            await client.stm(own_timeout, timeout=0.5)
        held = await turnstile_of(client).enter(frozenset({b"n"}))
        with pytest.raises(EtcdTimeoutError, match="others of this client"):
            await client.stm(increment, timeout=0.5)
        turnstile_of(client).leave(held, None)
        assert (await client.stm(increment)).value == 1
        assert fake.keys() == {b"n": b"1"}


async def test_an_exception_of_the_function_commits_nothing() -> None:
    async with FakeEtcd() as fake, fake.client() as client:

        async def function(tx: Transaction) -> None:
            tx.put("a", "1")
            raise LookupError("no such account")

        with pytest.raises(LookupError):
            await client.stm(function)
        assert fake.keys() == {}


async def test_own_writes_are_seen_and_nothing_is_sent_without_writes() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        fake.load({"r/a": "1", "r/b": "2"})

        async def function(tx: Transaction) -> list[str]:
            tx.put("r/c", "3")
            tx.delete("r/a")
            assert await tx.get("r/a") is None
            c = await tx.get("r/c")
            assert c is not None
            assert (c.value, c.mod_revision) == (b"3", 0)
            found = await tx.get_all(["r/a", "r/b", "x"])
            assert [kv and kv.text() for kv in found.values()] == [None, "2", None]
            return [kv.key_text() for kv in await tx.range(prefix="r/")]

        result = await client.stm(function)
        assert result.value == ["r/b", "r/c"]
        assert fake.keys() == {b"r/b": b"2", b"r/c": b"3"}

        async def look(tx: Transaction) -> int:
            return number(await tx.get("r/b")) + number(await tx.get("r/c"))

        for level in LEVELS:
            before = len(fake.calls)
            found = await client.stm(look, isolation=level, prefetch=["r/b", "r/c"])
            assert (found.value, found.revision) == (5, 3 if level != "read_committed" else found.revision)
            sent = len(fake.calls) - before
            assert sent == {"repeatable_reads": 2, "read_committed": 3}.get(level, 1)
        assert (await client.stm(nothing)).revision == 0


async def nothing(tx: Transaction) -> None: ...


async def test_reads_of_several_tasks_of_one_function_are_of_one_revision() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:

        async def function(tx: Transaction) -> set[bytes]:
            kvs = await asyncio.gather(*(tx.get(key) for key in "abcd"))
            return {kv.value for kv in kvs if kv is not None}

        async def write() -> None:
            for i in range(200):
                fake.load(dict.fromkeys("abcd", f"{i}"))
                await asyncio.sleep(0.0001)

        fake.load(dict.fromkeys("abcd", "0"))
        writing = asyncio.ensure_future(write())
        for _ in range(5):
            assert len((await client.stm(function)).value) == 1
        await writing


async def test_a_transaction_ends_with_its_function() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        kept: list[Transaction] = []

        async def function(tx: Transaction) -> None:
            kept.append(tx)

        await client.stm(function)
        with pytest.raises(ClientUsageError, match="has ended"):
            kept[0].put("a", "1")
        with pytest.raises(ClientUsageError, match="has ended"):
            await kept[0].get("a")


async def test_limits_are_named() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        fake.load({f"r/{i:03}": "" for i in range(101)})

        async def wide(tx: Transaction) -> None:
            await tx.range(prefix="r/")

        async def long(tx: Transaction) -> None:
            for i in range(129):
                tx.put(f"k/{i}", "")

        async def full(tx: Transaction) -> None:
            for i in range(100):
                tx.put(f"k/{i}", "")
            await tx.get("a")

        with pytest.raises(InvalidRequestError, match=r"at most 100 keys; prefix='r/' has 101"):
            await client.stm(wide)
        with pytest.raises(InvalidRequestError, match="this one has 0, 129 and 0"):
            await client.stm(long)
        await client.stm(full)


async def test_wrong_arguments_are_refused() -> None:
    client: Any = Client("127.0.0.1:1")
    with pytest.raises(InvalidRequestError, match="isolation must be one of"):
        await client.stm(increment, isolation="snapshot")
    with pytest.raises(InvalidRequestError, match="max_attempts"):
        await client.stm(increment, max_attempts=0)
    with pytest.raises(EmptyKeyError):
        await client.stm(increment, prefetch=[""])
    with pytest.raises(TypeError, match="several keys"):
        await client.stm(increment, prefetch="abc")
    with pytest.raises(TypeError, match="async function"):
        await client.stm(7)
    with pytest.raises(TypeError, match="async def"):
        await client.stm(lambda tx: 7)
    assert not client.statistics()


@pytest.mark.parametrize("at", range(0, 60, 3))
async def test_cancelled_at_any_await_it_is_applied_or_not_and_nothing_stays(at: int) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("n")
        before = tasks()
        others = [asyncio.ensure_future(client.stm(increment)) for _ in range(3)]
        task = asyncio.ensure_future(client.stm(increment))
        for _ in range(at):
            await asyncio.sleep(0)
        task.cancel()
        ended = await asyncio.gather(task, *others, return_exceptions=True)
        done = sum(isinstance(one, StmResult) for one in ended)
        assert done >= 3
        applied = int(fake.keys()[b"n"])
        assert applied in (done, done + 1)
        assert not len(turnstile_of(client))
        await turns(5)
        assert tasks() <= before
