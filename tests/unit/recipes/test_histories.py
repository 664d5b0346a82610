"""recipes/stm/: under faults each commit has read the state just before it, and none is applied twice.

Transactions append numbers of their own to lists. Each that commits has a revision, so the order of all is known, and
the lists that each one has read must be those before its revision. What raised an error with `maybe_applied` is applied
once or not at all; what raised another error is not applied.
"""

import asyncio
from random import Random
from typing import Any

import pytest

from etcd_aio import Client, EtcdError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Counter, StmResult, Transaction
from etcd_aio.recipes.calls import seconds_left
from etcd_aio.recipes.stm import stm as stm_module

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

KEYS = ("a", "b", "c")
Lists = dict[str, tuple[int, ...]]


class History:
    """What the transactions have seen, and how they ended."""

    def __init__(self) -> None:
        self.committed: dict[int, tuple[Lists, dict[str, int]]] = {}  # by revision: what was read, and appended
        self.in_doubt: list[int] = []
        self.refused: list[int] = []

    def check(self, fake: FakeEtcd) -> None:
        """Compare it with the changes of the store."""
        state: Lists = dict.fromkeys(KEYS, ())
        before: dict[int, Lists] = {}
        for kv in fake.changes():
            if kv.key_text() not in KEYS:
                continue
            before.setdefault(kv.mod_revision, dict(state))
            numbers = tuple(map(int, kv.text().split()))
            assert numbers[:-1] == state[kv.key_text()], "an append to another list than the one before"
            state[kv.key_text()] = numbers
        for revision, (read, appended) in self.committed.items():
            there = before[revision]
            assert read == {key: there[key] for key in read}, f"revision {revision} read another state"
            for key, number in appended.items():
                assert state[key].count(number) == 1, "applied twice, or lost"
        everything = [number for numbers in state.values() for number in numbers]
        for number in self.refused:
            assert number not in everything, "it was refused, and is there"
        for key in KEYS:
            assert len(set(state[key])) == len(state[key]), "applied twice"


async def append(client: Client, history: History, number: int, draw: Random, **options: Any) -> None:
    """One transaction: it reads some lists, and appends its number to one of them or two."""
    keys = draw.sample(KEYS, draw.randint(1, 3))
    changed = draw.sample(keys, min(len(keys), draw.randint(1, 2)))
    read: Lists = {}

    async def function(tx: Transaction) -> None:
        read.clear()
        for key in keys:
            kv = await tx.get(key)
            read[key] = () if kv is None else tuple(map(int, kv.text().split()))
        for key in changed:
            tx.put(key, " ".join(map(str, (*read[key], number))))

    try:
        result: StmResult[None] = await client.stm(function, timeout=20.0, **options)
    except EtcdError as error:
        (history.in_doubt if error.maybe_applied else history.refused).append(number)
    else:
        history.committed[result.revision] = dict(read), dict.fromkeys(changed, number)


async def trouble(fake: FakeEtcd, draw: Random) -> None:
    """Members stop, answers are lost, the history is compacted."""
    while True:
        await asyncio.sleep(draw.random() * 0.2)
        match draw.randrange(4):
            case 0:
                member = draw.choice(fake.members)
                member.stop()
                await asyncio.sleep(draw.random() * 0.5)
                member.start()
            case 1:
                member = draw.choice(fake.members)
                member.isolate()
                await asyncio.sleep(draw.random() * 0.5)
                member.heal()
            case 2:
                with fake.fault("KV/Txn", reset=True, after_apply=draw.random() < 0.7, times=draw.randint(1, 3)):
                    await asyncio.sleep(0.05)
            case _:
                with fake.fault("KV/Range", reset=True, times=2):
                    await asyncio.sleep(0.05)


async def histories(seed: int, *, exactly_once: bool = False) -> History:
    history, draw = History(), Random(seed)
    async with FakeEtcd(members=3, seed=seed, latency=0.001) as fake:
        causing = asyncio.ensure_future(trouble(fake, Random(f"trouble {seed}")))
        clients = [fake.client() for _ in range(2)]

        async def work(worker: int) -> None:
            client = clients[worker % 2]
            async with client.exactly_once() as once:
                options = {"writer": once} if exactly_once else {}
                for step in range(20):
                    await append(client, history, worker * 1000 + step, draw, **options)
                    await asyncio.sleep(draw.random() * 0.05)

        await asyncio.gather(*(work(worker) for worker in range(8)))
        causing.cancel()
        for client in clients:
            await client.aclose()
        history.check(fake)
    return history


async def test_histories_under_faults_are_strictly_serializable() -> None:
    runs = [await histories(seed) for seed in range(3)]
    assert all(len(history.committed) > 80 for history in runs)
    assert any(history.in_doubt for history in runs), "answers were lost"


async def test_exactly_once_leaves_no_doubt() -> None:
    history = await histories(7, exactly_once=True)
    assert not history.in_doubt
    assert len(history.committed) > 140


async def several_histories() -> None:
    for seed in range(10):
        await histories(seed)


async def test_a_lost_answer_that_is_taken_for_a_conflict_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def repeating(self: Any, reads: Any) -> Any:
        txn = reads.commit()
        return await self._calls.store.do(txn, timeout=seconds_left(self._deadline), retry="always")

    monkeypatch.setattr(stm_module.StmCall, "_commit", repeating)
    with pytest.raises(AssertionError, match=r"read another state|applied twice"):
        await several_histories()


async def test_counters_under_faults_are_exact() -> None:
    draw = Random(3)
    async with FakeEtcd(members=3, latency=0.001) as fake, fake.client() as one, fake.client() as two:
        causing = asyncio.ensure_future(trouble(fake, draw))
        values: list[int] = []

        async def work(counter: Counter) -> None:
            for _ in range(50):
                values.append(await counter.add())
                await asyncio.sleep(0.01)

        async with one.exactly_once() as first, two.exactly_once() as second:
            pairs = ((one, first), (two, second))
            counters = [Counter(client, "n", writer=once, timeout=60.0) for client, once in pairs]
            await asyncio.gather(*(work(counter) for counter in counters for _ in range(4)))
        causing.cancel()
        assert sorted(values) == list(range(1, 401))
        assert fake.keys("n") == {b"n": b"400"}
