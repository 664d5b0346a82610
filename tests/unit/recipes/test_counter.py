"""recipes/counter/, recipes/combiner.py: combined calls, conflicts, limits, lost answers, cancellation, on a fake."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from etcd_aio import InvalidRequestError, TxnResult, op
from etcd_aio.base.contention import Contention
from etcd_aio.errors import CounterError, CounterLimitError, EmptyKeyError, EtcdError, EtcdTimeoutError, ResultLostError
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Counter, IdAllocator
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def txns(fake: FakeEtcd) -> int:
    return sum(call.method == "KV/Txn" for call in fake.calls)


async def test_a_thousand_calls_at_a_time_are_a_few_txns() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        counter = Counter(client, "n")
        values = await asyncio.gather(*(counter.add(1) for _ in range(1000)))
        assert sorted(values) == list(range(1, 1001))
        assert txns(fake) <= 20
        assert fake.keys() == {b"n": b"1000"}
        assert await counter.get() == 1000


async def test_calls_that_come_while_a_txn_is_under_way_are_the_next_one() -> None:
    async with FakeEtcd(latency=0.01) as fake, fake.client() as client:
        counter = Counter(client, "n")
        assert await counter.add(5) == 5
        first = asyncio.ensure_future(counter.add(1))
        await turns(5)
        later = [asyncio.ensure_future(counter.add(10)) for _ in range(7)]
        assert await first == 6
        assert await asyncio.gather(*later) == [16, 26, 36, 46, 56, 66, 76]
        assert txns(fake) == 3


async def test_processes_share_it() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as one, fake.client() as two, fake.client() as three:
        counters = [Counter(client, "n") for client in (one, two, three)]

        async def work(counter: Counter) -> list[int]:
            return [await counter.add(1) for _ in range(100)]

        values = await asyncio.gather(*(work(counter) for counter in counters for _ in range(3)))
        assert sorted(value for found in values for value in found) == list(range(1, 901))
        assert fake.keys() == {b"n": b"900"}


async def test_limits() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        counter = Counter(client, "n", minimum=0, maximum=10)
        assert await counter.add(8) == 8
        results = await asyncio.gather(*(counter.add(n) for n in (3, 2, 1, -4)), return_exceptions=True)
        assert [one if isinstance(one, int) else type(one) for one in results] == [
            CounterLimitError,
            10,
            CounterLimitError,
            6,
        ]
        revision = (await client.put("n", "1")).revision
        with pytest.raises(CounterLimitError, match="-2 would pass its minimum of 0") as raised:
            await counter.add(-2)
        assert (raised.value.value, fake.revision) == (1, revision), (
            "judged by the newest value, and nothing is written"
        )
        await client.put("n", "0")
        assert await counter.add(10) == 10, "with what it remembered, 1, it would have been refused"
        await client.put("n", "20")
        assert await counter.add(-1) == 19, "towards the limits is allowed"
        with pytest.raises(InvalidRequestError, match="outside of the limits"):
            await counter.set(11)


async def test_set_with_and_without_an_expected_value() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        counter = Counter(client, "n")
        assert await counter.get() == 0
        assert await counter.set(5, expected=0)
        assert not await counter.set(7, expected=6)
        assert await counter.set(7, expected=5)
        assert await counter.set(-3)
        assert await counter.add(1) == -2
        assert fake.keys() == {b"n": b"-2"}


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_lost_answer_is_raised_for_all_that_were_in_it(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client(retry="always") as client:
        counter = Counter(client, "n")
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
            results = await asyncio.gather(*(counter.add(1) for _ in range(5)), return_exceptions=True)
        assert all(isinstance(one, EtcdError) and one.maybe_applied for one in results)
        assert await counter.add(1) == (6 if is_applied else 1)


@pytest.mark.parametrize("is_applied", [False, True])
async def test_exactly_once_counts_exactly(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.exactly_once() as once:
        counter = Counter(client, "n", writer=once)
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=3):
            assert await asyncio.gather(*(counter.add(1) for _ in range(5))) == [1, 2, 3, 4, 5]
        assert fake.keys("n") == {b"n": b"5"}


async def test_a_value_that_is_no_number() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        counter = Counter(client, "n")
        for value in ("", "x", "1.5", "--1", "+1", " 1", "\u0661"):
            await client.put("n", value)
            for call in (counter.add(1), counter.get(), counter.set(1, expected=0)):
                with pytest.raises(CounterError, match="not a whole number"):
                    await call
        assert await counter.set(3)
        assert await counter.add(1) == 4
        assert fake.revision > 1


async def test_a_timeout_says_whether_it_may_have_been_added() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        counter = Counter(client, "n", timeout=1.0)
        await counter.add(1)
        with fake.fault("KV/Txn", hang=True):
            both = [asyncio.ensure_future(counter.add(1, timeout=t)) for t in (0.5, 0.9)]
            await turns(5)
            late = asyncio.ensure_future(counter.add(1, timeout=0.2))
            results = await asyncio.gather(*both, late, return_exceptions=True)
        assert [isinstance(one, EtcdTimeoutError) for one in results] == [True] * 3
        assert all(str(one).startswith("the counter b'n' was not changed in time") for one in results)
        assert [isinstance(one, EtcdError) and one.maybe_applied for one in results] == [True, True, False]
        before = int(fake.keys()[b"n"])
        assert await counter.add(1) == before + 1


@pytest.mark.parametrize("at", range(12))
async def test_cancelled_at_any_await_others_are_served_and_nothing_stays(at: int) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("n")
        before = tasks()
        counter = Counter(client, "n")
        task = asyncio.ensure_future(counter.add(100))
        for _ in range(at):
            await asyncio.sleep(0)
        task.cancel()
        other = asyncio.ensure_future(counter.add(1))
        await asyncio.wait([task, other])
        assert other.result() in (1, 101)
        await turns(10)
        assert fake.keys()[b"n"] == f"{other.result()}".encode()
        alone = asyncio.ensure_future(counter.add(1000))
        for _ in range(at):
            await asyncio.sleep(0)
        alone.cancel()
        await asyncio.wait([alone])
        await turns(10)
        assert tasks() <= before


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_what_ends_before_it_is_sent_is_not_added(is_cancelled: bool) -> None:
    """Two calls wait for the read before the txn; one of them ends, and says that it was not added."""
    async with FakeEtcd() as fake, fake.client() as client:
        counter = Counter(client, "n", timeout=None)
        with fake.fault("KV/Range", delay=5.0, times=1):
            ending = asyncio.ensure_future(counter.add(1, timeout=None if is_cancelled else 2.0))
            staying = asyncio.ensure_future(counter.add(10))
            await asyncio.sleep(3)
            ending.cancel()
            ended = await asyncio.gather(ending, return_exceptions=True)
            assert isinstance(ended[0], asyncio.CancelledError if is_cancelled else EtcdTimeoutError)
            assert not getattr(ended[0], "maybe_applied", False)
            assert await staying == 10
        assert fake.keys() == {b"n": b"10"}
        assert await counter.add(1) == 11


async def test_what_is_sent_for_no_caller_ends() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        counter = Counter(client, "n", timeout=None)
        await counter.add(1)
        before = tasks()
        with fake.fault("KV/Txn", hang=True):
            both = [asyncio.ensure_future(counter.add(1)) for _ in range(2)]
            await turns(20)
            both[0].cancel()
            await turns(20)
            assert not both[1].done()
            assert not tasks() <= before, "it goes on for the other one"
            both[1].cancel()
            await turns(20)
            assert tasks() <= before
        assert await counter.add(1) in (2, 4)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_pause_for_no_caller_ends(is_cancelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that has met conflicts waits before its next change: not any longer than its callers do."""
    async with FakeEtcd(latency=0.05) as fake, fake.client() as client:
        counter = Counter(client, "n")
        await counter.add(1)
        monkeypatch.setattr(Contention, "before_change", lambda contention, random: 0.7)
        before, sent = tasks(), len(fake.calls)
        adding = asyncio.ensure_future(counter.add(1, timeout=None if is_cancelled else 0.3))
        await asyncio.sleep(0.2)
        if is_cancelled:
            adding.cancel()
        with pytest.raises(asyncio.CancelledError if is_cancelled else EtcdTimeoutError) as raised:
            await adding
        assert not getattr(raised.value, "maybe_applied", False)
        await turns()
        assert tasks() <= before
        await asyncio.sleep(5)
        assert len(fake.calls) == sent
        assert await counter.add(1) == 2


async def test_ids_are_given_once() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as one, fake.client() as two:
        allocators = [IdAllocator(one, "ids", block=7), IdAllocator(two, "ids", block=11)]
        given = await asyncio.gather(*(ids.next() for ids in allocators for _ in range(100)))
        assert len(set(given)) == 200
        assert min(given) == 1
        sent = len(fake.calls)
        assert allocators[0].left == -100 % 7
        for _ in range(allocators[0].left):
            await allocators[0].next()
        assert len(fake.calls) == sent


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_block_whose_answer_is_lost_is_left_out(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        ids = IdAllocator(client, "ids", block=10)
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
            given = [await ids.next() for _ in range(15)]
        assert given == list(range(11, 26) if is_applied else range(1, 16))
        assert fake.keys() == {b"ids": b"30" if is_applied else b"20"}


async def test_ids_of_eight_processes_under_leader_kills() -> None:
    async with FakeEtcd(members=3, latency=0.001) as fake:
        given: list[int] = []

        async def process() -> None:
            async with fake.client(timeout=60.0) as client:
                ids = IdAllocator(client, "ids", block=100, timeout=60.0)
                given.extend([await ids.next() for _ in range(10_000)])

        async def kill() -> None:
            while True:
                await asyncio.sleep(0.05)
                leader = next(member for member in fake.members if member.is_leader)
                leader.stop()
                await asyncio.sleep(0.5)
                leader.start()

        killing = asyncio.ensure_future(kill())
        await asyncio.gather(*(process() for _ in range(8)))
        killing.cancel()
        assert len(given) == len(set(given)) == 80_000


async def test_ids_end_in_time() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        ids = IdAllocator(client, "ids", timeout=0.5)
        with fake.fault("KV/Txn", hang=True):
            results = await asyncio.gather(*(ids.next() for _ in range(3)), return_exceptions=True)
        assert all(isinstance(one, EtcdTimeoutError) for one in results)
        assert await ids.next(timeout=5.0) in (1001, 2001)
        assert tasks() is not None


@pytest.mark.parametrize("sign", [1, -1])
async def test_a_number_that_could_not_be_read_any_more_is_not_put(sign: int) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        counter = Counter(client, "n")
        largest = 10**1000 - 1
        await counter.set(sign * largest)
        with pytest.raises(CounterLimitError, match="1000 digits") as raised:
            await counter.add(sign)
        assert raised.value.value == sign * largest
        assert await counter.add(-sign) == await counter.get() == sign * (largest - 1)
        fake.load({"n": b"-" * (sign < 0) + b"1" * 5000})
        for call in (counter.get(), counter.add(), counter.set(1, expected=2), IdAllocator(client, "n").next()):
            with pytest.raises(CounterError, match="not a whole number"):
                await call
        await counter.set(1)
        assert await counter.add() == 2


async def test_wrong_arguments_are_refused() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        made: Any = Counter
        for wrong in ({"minimum": 3, "maximum": 2}, {"timeout": -1}):
            with pytest.raises(InvalidRequestError):
                made(client, "n", **wrong)
        with pytest.raises(EmptyKeyError):
            made(client, "")
        with pytest.raises(TypeError, match="number must be an int"):
            await made(client, "n").add(1.5)
        with pytest.raises(InvalidRequestError, match="more than 1000 digits"):
            await made(client, "n").add(10**1000)
        with pytest.raises(InvalidRequestError, match="block"):
            IdAllocator(client, "n", block=0)
        assert not fake.calls


@pytest.mark.parametrize("succeeded", [False, True])
@pytest.mark.parametrize(
    "change", [lambda counter: counter.add(3), lambda counter: counter.set(3, expected=0)], ids=["add", "set"]
)
async def test_what_a_txn_did_is_known_although_its_result_is_compacted(
    change: Callable[[Counter], Awaitable[int]], succeeded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, calls = Counter._commit, 0

    async def loses_the_first(self: Counter, txn: op.TxnOp, deadline: float) -> TxnResult:
        nonlocal calls
        calls += 1
        if calls > 1:
            return await commit(self, txn, deadline)
        revision = (await commit(self, txn, deadline)).revision if succeeded else 0
        raise ResultLostError(revision=revision, succeeded=succeeded)

    monkeypatch.setattr(Counter, "_commit", loses_the_first)
    async with FakeEtcd() as fake, fake.client() as client:
        counter = Counter(client, "c")
        assert await change(counter)
        assert await counter.add(1) == 4
    assert calls == (2 if succeeded else 3)
