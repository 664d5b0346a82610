"""recipes/queue/: order, consumers of several processes, lost answers, cancellation, and other names."""

import asyncio
import itertools
import random
from random import Random
from typing import Any

import pytest

from etcd_aio import Client, InvalidRequestError, KeyValue
from etcd_aio.errors import (
    EmptyKeyError,
    EtcdError,
    EtcdTimeoutError,
    ItemInDoubtError,
    PermissionDeniedError,
    QueueTimeoutError,
    ResultLostError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Item, PriorityQueue, Queue
from etcd_aio.recipes.calls import RecipeCalls
from etcd_aio.recipes.queue import numbers, taking
from etcd_aio.recipes.queue import queue as queue_module
from etcd_aio.recipes.queue.sequence import Sequence
from tests.support.virtual_time import tasks, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

KINDS = pytest.mark.parametrize("kind", [Queue, PriorityQueue])
Kind = type[Queue] | type[PriorityQueue]


def called(fake: FakeEtcd, method: str) -> int:
    return sum(call.method == method for call in fake.calls)


def numbered(values: range) -> list[bytes]:
    return [b"%d" % number for number in values]


@KINDS
async def test_items_come_in_their_order_each_once(kind: Kind) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = kind(client, "q")
        keys = [await queue.put("0"), *await queue.put_all(["1", b"2"])]
        assert keys == sorted(keys)
        assert await queue.size() == 3
        assert [item.text() for item in await queue.peek(10)] == ["0", "1", "2"]
        assert [item.key for item in await queue.peek(2)] == keys[:2]
        items = [await queue.get() for _ in range(3)]
        assert [item.key for item in items] == keys
        assert [item.value for item in items] == numbered(range(3))
        assert items[1].revision == items[2].revision > items[0].revision
        assert (await queue.size(), await queue.peek()) == (0, ())
        assert await queue.put_all([]) == []


@KINDS
@pytest.mark.parametrize("lost", [1, 2, 3])
async def test_looks_without_an_answer_do_not_hold_it_up_for_ever(kind: Kind, lost: int) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        queue = kind(client, "q")
        await kind(other, "q").put_all(["0", "1"])
        with fake.fault("KV/Range", hang=True, times=lost) as fault:
            async with asyncio.timeout(120):
                assert (await queue.get()).value == b"0"
            assert fault.hits == lost
        assert [item.value for item in await kind(other, "q").peek(9)] == [b"1"], "an item was taken once"
        assert (await queue.get()).value == b"1"


async def test_the_look_of_an_empty_queue_may_be_lost_too() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        with fake.fault("KV/Range", times=1), fake.fault("KV/Range", hang=True, times=1) as fault:
            taking = asyncio.create_task(Queue(client, "q").get())
            await asyncio.sleep(1000.0)
            assert not taking.done(), "it waits for an item without a limit"
            assert fault.hits == 1
        await Queue(other, "q").put("0")
        async with asyncio.timeout(60):
            assert (await taking).value == b"0"


async def test_a_look_without_an_answer_ends_with_its_consumer() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        with fake.fault("KV/Range", hang=True):
            with pytest.raises(QueueTimeoutError):
                await Queue(client, "q").get(timeout=25.0)
            taking = asyncio.create_task(Queue(client, "q").get())
            await asyncio.sleep(25.0)
            taking.cancel()
            await turns()
            assert taking.cancelled()
            assert not [task for task in tasks() if "queue" in task.get_name()]


async def test_lower_priorities_come_first() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = PriorityQueue(client, "q")
        for priority, value in ((7, "b"), (65535, "d"), (7, "c"), (0, "a")):
            await queue.put(value, priority)
        assert await queue.put("e") == b"q/00100/0000000000000000"
        assert [item.text() for item in await queue.peek(9)] == ["a", "b", "c", "e", "d"]
        assert (await queue.get()).text() == "a"
        await queue.put("urgent", priority=1)
        assert (await queue.get()).text() == "urgent", "it came after a look at the others"


async def test_the_keys_of_one_process_grow_whatever_its_clock_does(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.cycle([2_000_000_000_000_000_000, 1_000_000_000_000_000_000])
    monkeypatch.setattr(numbers, "_last", 0)
    monkeypatch.setattr("time.time_ns", lambda: next(clock))
    given = [numbers.next_number() for _ in range(100)]
    assert given == sorted(set(given))
    async with FakeEtcd() as fake, fake.client() as client:
        taken = given[-1] + 1
        fake.load({f"q/{taken}": "another process has this number"})
        monkeypatch.setattr("time.time_ns", lambda: 0)
        assert await Queue(client, "q").put("x") == b"q/%d" % (taken + 1)
        assert len(fake.keys()) == 2


@KINDS
async def test_consumers_wait_in_their_order_with_one_watch(kind: Kind) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as producer:
        before = tasks()
        queue = kind(client, "q")
        waiting = [asyncio.ensure_future(queue.get()) for _ in range(30)]
        await asyncio.sleep(5.0)
        assert len(fake.watchers) == 1
        assert not any(one.done() for one in waiting)
        fake.compact(fake.revision)
        await kind(producer, "q").put_all([b"%d" % number for number in range(30)])
        items = await asyncio.gather(*waiting)
        assert [item.value for item in items] == numbered(range(30))
        assert called(fake, "KV/Txn") <= 4, "one txn serves several"
        await asyncio.sleep(1.0)
        assert not fake.watchers
        assert not fake.keys("q/")
        assert tasks() <= before | {task for task in tasks() if "etcd_aio" in task.get_name()}
        assert not [task for task in tasks() if "queue" in task.get_name()]


@KINDS
async def test_a_queue_is_iterated_over(kind: Kind) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = kind(client, "q")
        putting = asyncio.ensure_future(queue.put("abc"))
        async for item in queue:
            assert isinstance(item, Item)
            assert item.value == b"abc"
            break
        await putting


@KINDS
async def test_other_names_and_foreign_keys_stay(kind: Kind) -> None:
    others = {
        **dict.fromkeys(("q", "q2/1700000000000000000", "q2/00100/0000000000000000", "q/", "q/x", "q/00", "p/1"), ""),
        **{f"q/{number}/nested" if kind is Queue else f"q/{number}": "" for number in range(200)},
    }
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        if kind is Queue:
            del others["q/00"]  # digits alone are the key of an item
        fake.load(others)
        queue = kind(client, "q")
        with pytest.raises(QueueTimeoutError, match="queue 'q' had no item in time"):
            await queue.get(timeout=1.0)
        await kind(client, "q2").put("other")
        await kind(client, "q/more").put("other")
        key = await queue.put("own")
        assert (await queue.get(timeout=1.0)).key == key
        with pytest.raises(QueueTimeoutError):
            await queue.get(timeout=1.0)
        assert {key.decode() for key in fake.keys("")} >= set(others)
        assert len(await kind(client, "q2").peek(9)) == 2


async def test_combined_puts_of_one_priority_are_a_few_txns() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as other:
        queue = PriorityQueue(client, "q")
        keys = await asyncio.gather(*(queue.put(b"%d" % number, 5) for number in range(300)))
        assert sorted(keys) == list(keys)
        assert called(fake, "KV/Txn") <= 7
        both = (queue, PriorityQueue(other, "q"))
        more = await asyncio.gather(*(one.put(b"", 5) for _ in range(50) for one in both))
        assert len({*keys, *more}) == 400 == await queue.size()
        assert called(fake, "KV/Range") <= 5, "the base key tells the last number"


async def test_large_values_are_not_combined_beyond_what_etcd_accepts() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = PriorityQueue(client, "q")
        await asyncio.gather(*(queue.put(bytes(400_000)) for _ in range(10)))
        assert await queue.size() == 10


async def test_numbers_go_on_after_go_which_writes_no_number() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = PriorityQueue(client, "q")
        assert await queue.put("a") == b"q/00100/0000000000000000"
        fake.load({"q/00100/0000000000000001": "Go", "__q/00100": ""})
        fake.load({"q/00100/zzz": "foreign"})
        assert await queue.put("b") == b"q/00100/0000000000000002"
        await client.delete("q/00100/0000000000000002")
        assert await queue.put("c") == b"q/00100/0000000000000003"


# Answers that are lost.


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_put_whose_answer_is_lost_names_its_keys_and_is_not_repeated(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client(retry="always") as client, client.exactly_once() as once:
        queue = Queue(client, "q")
        with (
            fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1),
            pytest.raises(ItemInDoubtError, match="may have been put") as raised,
        ):
            await queue.put_all(["a", "b"])
        assert raised.value.maybe_applied
        assert isinstance(raised.value.__cause__, EtcdError)
        assert len(raised.value.keys) == 2
        assert (raised.value.keys if is_applied else ()) == tuple(fake.keys("q/"))
        exact = Queue(client, "exact", writer=once)
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=2):
            key = await exact.put("a")
        assert fake.keys("exact/") == {key: b"a"}


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_put_with_a_priority_is_repeated_and_recognized(is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = PriorityQueue(client, "q")
        for _ in range(2):
            with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=2):
                await asyncio.gather(*(queue.put("a") for _ in range(3)))
        assert await queue.size() == 6
        assert [item.key[-1:] for item in await queue.peek(6)] == numbered(range(6))


async def test_a_put_with_a_priority_is_in_doubt_if_another_came_between() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = PriorityQueue(client, "q")
        await queue.put("a")
        with fake.fault("KV/Txn", reset=True, after_apply=True, delay=1.0, times=1):
            both = [asyncio.ensure_future(queue.put("b")) for _ in range(2)]
            await asyncio.sleep(0.5)
            fake.load({"__q/00100": "", "q/00100/0000000000000009": "Go"})
            results = await asyncio.gather(*both, return_exceptions=True)
        assert [one.keys for one in results if isinstance(one, ItemInDoubtError)] == [
            (b"q/00100/0000000000000001",),
            (b"q/00100/0000000000000002",),
        ]
        assert await queue.put("c") == b"q/00100/0000000000000010"


@KINDS
@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_take_whose_answer_is_lost(kind: Kind, is_applied: bool) -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.exactly_once() as once:
        queue = kind(client, "q")
        keys = await queue.put_all(["a", "b", "c"])
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=1):
            if is_applied:
                with pytest.raises(ItemInDoubtError, match="may have been taken") as raised:
                    await queue.get()
                assert raised.value.keys == (keys[0],)
                found = await client.get(keys[0], revision=raised.value.revision)
                assert isinstance(found, KeyValue)
                assert found.value == b"a"
            else:
                assert (await queue.get()).value == b"a"
        exact = kind(client, "q", writer=once)
        with fake.fault("KV/Txn", reset=True, after_apply=is_applied, times=2):
            assert [item.value for item in await asyncio.gather(exact.get(), exact.get())] == [b"b", b"c"]
        assert fake.keys("q/") == {}


async def test_of_several_items_only_those_that_are_gone_are_in_doubt() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = Queue(client, "q")
        keys = await queue.put_all(["a", "b", "c"])
        with fake.fault("KV/Txn", reset=True, delay=1.0, times=1):
            waiting = [asyncio.ensure_future(queue.get()) for _ in range(3)]
            await asyncio.sleep(0.5)
            await client.delete(keys[1])
            results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [one.text() for one in results if isinstance(one, Item)] == ["a", "c"]
        assert [one.keys for one in results if isinstance(one, ItemInDoubtError)] == [(keys[1],)]


# Cancellation, and ends.


@KINDS
@pytest.mark.parametrize("empty", [False, True])
async def test_cancelled_at_any_await_get_loses_no_item(kind: Kind, empty: bool) -> None:
    for at in range(0, 60, 2):
        async with FakeEtcd(seed=at) as fake, fake.client() as client:
            queue = kind(client, "q")
            await queue.put("0")
            if empty:
                await queue.get()
            task = asyncio.ensure_future(queue.get())
            if empty:
                await asyncio.sleep(1.0)
                await kind(client, "q").put("1")
            else:
                await queue.put("1")
            for _ in range(at):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            taken = [] if task.cancelled() else [task.result().value]
            while True:
                try:
                    item = await queue.get(timeout=1.0)
                except QueueTimeoutError:
                    break
                taken.append(item.value)
            assert taken == numbered(range(1 if empty else 0, 2))
            await turns(10)
            assert not [one for one in tasks() if "queue" in one.get_name()]


async def test_an_item_that_came_with_the_cancellation_is_for_the_next() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = Queue(client, "q")
        await queue.put_all(["a", "b"])
        with fake.fault("KV/Txn", delay=1.0):
            first = asyncio.ensure_future(queue.get(timeout=0.5))
            with pytest.raises(QueueTimeoutError):
                await first
        await asyncio.sleep(1.0)
        assert len(fake.keys("q/")) == 1, "the claim went on"
        assert [(await queue.get()).text() for _ in range(2)] == ["a", "b"]


async def test_what_is_in_doubt_for_no_caller_is_logged_and_raised_by_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = Queue(client, "q", timeout=0.5)
        await queue.put("a")
        with fake.fault("KV/Txn", hang=True):
            task = asyncio.ensure_future(queue.get())
            await asyncio.sleep(0.2)
            task.cancel()
            await asyncio.sleep(3.0)
        assert "may have been taken" in caplog.text
        with pytest.raises(ItemInDoubtError):
            await queue.get()


@KINDS
async def test_what_put_waits_for_is_bounded(kind: Kind) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = kind(client, "q", timeout=0.5)
        with fake.fault("KV/Txn", hang=True):
            with pytest.raises(ItemInDoubtError) as raised:
                await queue.put("a")
            assert isinstance(raised.value.__cause__, EtcdTimeoutError)
        with fake.fault("KV/Range", hang=True), pytest.raises(EtcdTimeoutError):
            await queue.size()


@pytest.mark.parametrize("at", range(0, 30, 3))
async def test_a_cancelled_put_with_a_priority_holds_no_other(at: int) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("q")
        before = tasks()
        queue = PriorityQueue(client, "q")
        task = asyncio.ensure_future(queue.put("a"))
        for _ in range(at):
            await asyncio.sleep(0)
        task.cancel()
        other = asyncio.ensure_future(queue.put("b"))
        await asyncio.wait([task, other])
        assert fake.keys()[other.result()] == b"b"
        await turns(10)
        assert tasks() <= before


async def test_a_put_whose_time_is_over_before_it_is_sent_is_not_made() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = PriorityQueue(client, "q")
        with fake.fault("KV/Range", delay=1.0, times=1):
            late, other = (
                asyncio.ensure_future(queue.put(text, timeout=seconds)) for text, seconds in (("a", 0.5), ("b", 5.0))
            )
            await asyncio.wait([late, other])
        assert isinstance(late.exception(), EtcdTimeoutError)
        assert [item.key for item in await queue.peek(10)] == [other.result()]


@KINDS
async def test_closing_the_client_ends_every_wait(kind: Kind) -> None:
    async with FakeEtcd() as fake:
        client = fake.client()
        queue = kind(client, "q")
        waiting = [asyncio.ensure_future(queue.get()) for _ in range(3)]
        await asyncio.sleep(1.0)
        await client.aclose()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(one, EtcdError) for one in results), results
        await turns(10)
        assert not [one for one in tasks() if "queue" in one.get_name()]


async def test_a_refusal_is_raised_by_every_wait() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        queue = Queue(client, "q")
        with fake.fault("KV/Range", status="PERMISSION_DENIED"):
            results = await asyncio.gather(*(queue.get() for _ in range(2)), return_exceptions=True)
        assert [type(one) for one in results] == [PermissionDeniedError] * 2
        await queue.put("a")
        with fake.fault("KV/Txn", status="PERMISSION_DENIED", times=1), pytest.raises(PermissionDeniedError):
            await queue.get()
        assert (await queue.get()).text() == "a"


async def test_wrong_arguments_are_refused() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        make: Any
        for make in (Queue, PriorityQueue):
            with pytest.raises(EmptyKeyError):
                make(client, "")
            with pytest.raises(InvalidRequestError):
                make(client, "q", timeout=-1)
            queue = make(client, "q")
            wrong: list[tuple[type[Exception], Any]] = [
                (TypeError, lambda queue=queue: queue.put(1)),
                (TypeError, lambda queue=queue: queue.put_all("text")),
                (InvalidRequestError, lambda queue=queue: queue.put_all(["x"] * 121)),
                (InvalidRequestError, lambda queue=queue: queue.get(timeout=0)),
                (InvalidRequestError, lambda queue=queue: queue.peek(0)),
            ]
            for error, call in wrong:
                with pytest.raises(error):
                    await call()
        for priority in (-1, 65536):
            with pytest.raises(InvalidRequestError, match="priority"):
                await PriorityQueue(client, "q").put("x", priority)
        assert not fake.calls
        assert repr(Queue(client, "q")) == "<Queue 'q'>"
        assert "secret" not in repr(Item(b"k", b"secret", 1))


# Several processes.


async def test_idle_processes_do_not_all_try_for_each_item() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as producer:
        clients = [fake.client() for _ in range(20)]
        taken: list[str] = []

        async def consume(client: Client) -> None:
            queue = Queue(client, "q")
            while True:
                item = await queue.get()
                taken.append(item.text())

        consuming = [asyncio.ensure_future(consume(client)) for client in clients]
        await asyncio.sleep(1.0)
        queue = Queue(producer, "q")
        for number in range(150):
            await queue.put(f"{number}")
            await asyncio.sleep(1.0)
        assert taken == [f"{number}" for number in range(150)]
        tried = called(fake, "KV/Txn") - 150
        for one in consuming:
            one.cancel()
        await asyncio.wait(consuming)
        for client in clients:
            await client.aclose()
        assert tried / 150 <= 2, "claims for each item"


async def trouble(fake: FakeEtcd, draw: Random) -> None:
    """Members stop, answers are lost, the history is compacted."""
    while True:
        await asyncio.sleep(draw.random() * 0.3)
        match draw.randrange(4):
            case 0:
                member = draw.choice(fake.members)
                member.stop()
                await asyncio.sleep(draw.random() * 0.5)
                member.start()
            case 1:
                fake.compact(fake.revision)
            case 2:
                with fake.fault("KV/Txn", reset=True, after_apply=draw.random() < 0.7, times=draw.randint(1, 3)):
                    await asyncio.sleep(0.05)
            case _:
                with fake.fault("KV/Range", reset=True, times=2):
                    await asyncio.sleep(0.05)


async def account(kind: Kind, items: int, seed: int, *, exactly_once: bool) -> int:
    """Ten producers and ten consumers under faults. Returns how many keys were in doubt."""
    random.seed(seed)  # of the waits in the recipes
    async with FakeEtcd(members=3, seed=seed, latency=0.001) as fake:
        causing = asyncio.ensure_future(trouble(fake, Random(seed)))
        clients = [fake.client(timeout=30.0) for _ in range(4)]
        put: set[bytes] = set()
        taken: list[bytes] = []
        doubtful_puts: set[bytes] = set()
        doubtful_takes: set[bytes] = set()

        async def produce(client: Client, writer: Any, worker: int) -> None:
            queue = kind(client, "q", writer=writer, timeout=30.0)
            for number in range(items // 10):
                try:
                    put.add(await queue.put(f"{worker}/{number}"))
                except ItemInDoubtError as error:
                    doubtful_puts.update(error.keys)
                if number % 3 == 0:
                    await asyncio.sleep(0.3)

        async def consume(queue: Queue | PriorityQueue) -> None:
            while True:
                try:
                    taken.append((await queue.get(timeout=60.0)).key)
                except ItemInDoubtError as error:
                    doubtful_takes.update(error.keys)
                except QueueTimeoutError:
                    return

        writers = [await client.exactly_once().__aenter__() if exactly_once else None for client in clients]
        queues = [kind(client, "q", writer=once, timeout=30.0) for client, once in zip(clients, writers, strict=True)]
        producing = [produce(clients[n % 4], writers[n % 4], n) for n in range(10)]
        consuming = [asyncio.ensure_future(consume(queues[n % 4])) for n in range(10)]
        await asyncio.gather(*producing)
        causing.cancel()
        await asyncio.gather(*consuming)
        for client, once in zip(clients, writers, strict=True):
            if once is not None:
                await once.aclose()
            await client.aclose()
        assert len(taken) == len(set(taken)), "taken twice"
        assert put - set(taken) <= doubtful_takes, "lost without a word"
        assert set(taken) <= put | doubtful_puts, "taken, and never put"
        assert fake.keys("q/") == {}
        if exactly_once:
            assert set(taken) == put
        return len(doubtful_puts) + len(doubtful_takes)


@pytest.mark.slow
@KINDS
async def test_each_item_is_taken_once_or_named(kind: Kind) -> None:
    for seed in range(2, 20):
        if await account(kind, 300, seed, exactly_once=False) and seed > 2:
            return
    pytest.fail("no answer was lost in any of the histories")


@pytest.mark.slow
@KINDS
async def test_exactly_once_leaves_no_item_in_doubt(kind: Kind) -> None:
    assert await account(kind, 200, 5, exactly_once=True) == 0


@pytest.mark.nightly
@KINDS
@pytest.mark.parametrize("exactly_once", [False, True])
async def test_each_of_many_items_is_taken_once_or_named(kind: Kind, exactly_once: bool) -> None:
    assert (await account(kind, 20_000, 11, exactly_once=exactly_once) == 0) is exactly_once


async def several_accounts() -> None:
    for seed in range(10):
        await account(Queue, 200, seed, exactly_once=False)


async def test_a_put_that_is_repeated_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def repeating(calls: RecipeCalls, what: str, keys: Any, txn: Any, deadline: float) -> Any:
        return await calls.store.do(txn, timeout=None, retry="always")

    monkeypatch.setattr(queue_module, "put_once", repeating)
    with pytest.raises(AssertionError, match=r"never put|taken twice"):
        await several_accounts()


async def test_a_take_without_its_condition_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = taking.Taker._take

    async def careless(self: Any, picked: Any) -> Any:
        found = await original(self, picked)
        missing = {one.key for one in picked} - {item.key for item in found}
        return [*found, *(Item(key, b"", 0) for key in missing)]

    monkeypatch.setattr(taking.Taker, "_take", careless)
    with pytest.raises(AssertionError, match="taken twice"):
        await several_accounts()


@KINDS
async def test_in_a_namespace_all_keys_are_below_it(kind: Kind) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        queue = kind(client.namespace("ns/"), "q")
        waiting = asyncio.ensure_future(queue.get())
        await asyncio.sleep(1.0)
        keys = await queue.put_all(["a", "b", "c"])
        assert all(key.startswith(b"q/") for key in keys)
        items = [await waiting, *await asyncio.gather(queue.get(), queue.get())]
        assert [(item.key, item.text()) for item in items] == list(zip(keys, "abc", strict=True))
        assert all(key.startswith(b"ns/__q/") for key in fake.keys(""))


@pytest.mark.parametrize("succeeded", [False, True])
async def test_what_a_txn_did_is_known_although_its_result_is_compacted(
    succeeded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, calls = Sequence._commit, 0

    async def loses_the_first(self: Sequence, txn: Any, mark: bytes, keys: list[bytes], deadline: float) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            return await commit(self, txn, mark, keys, deadline)
        if succeeded:
            await commit(self, txn, mark, keys, deadline)
        raise ResultLostError(succeeded=succeeded)

    monkeypatch.setattr(Sequence, "_commit", loses_the_first)
    async with FakeEtcd() as fake, fake.client() as client:
        queue = PriorityQueue(client, "q")
        await queue.put("a")
        await queue.put("b")
        assert [(await queue.get()).value for _ in range(2)] == [b"a", b"b"]
    assert calls == (2 if succeeded else 3)
