"""recipes/calls.py, base/unexpected.py: a backend that raises an error of its own, at each call of each recipe in turn.

Each wait ends, with that error or without, and then no key with a lease, no lease and no failed task is left.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Final, Literal

import pytest

from etcd_aio import Client, EtcdError, KeyRange, Store, WatchBatch
from etcd_aio.backend import Backend
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.errors import CacheError, ClientUsageError
from etcd_aio.fake import FakeEtcd
from etcd_aio.mirror import Mirror
from etcd_aio.recipes import Counter, DoubleBarrier, Group, PriorityQueue, Queue, WorkQueue
from tests.support.recipe_cases import CASES

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

_LONG: Final = 300.0  # seconds: longer than every wait, every TTL, and the time that leases are kept for others

When = Literal["unsent", "unanswered"]
Use = Callable[[Store, Client], Awaitable[object]]


class OwnError(ValueError):
    """An error of the backend."""


class FailingBackend:
    """A backend whose call of one number fails: it is not sent, or its answer is lost."""

    def __init__(self, beneath: Backend, number: int, when: When) -> None:
        self.shared, self.key_space, self.leases = beneath.shared, beneath.key_space, beneath.leases
        self.chunks, self.watch = beneath.chunks, beneath.watch
        self._beneath = beneath
        self._left = number
        self._when = when

    @property
    def has_failed(self) -> bool:
        return self._left < 0

    def fail_next(self) -> None:
        self._left = 0

    async def do(self, operation: Any, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> Any:
        self._left -= 1
        fails = self._left == -1
        if fails and self._when == "unsent":
            raise OwnError("a bug of the backend")
        result = await self._beneath.do(operation, timeout=timeout, retry=retry)
        if fails:
            raise OwnError("a bug of the backend")
        return result


async def until_it_works(step: Callable[[], Awaitable[object]]) -> None:
    """Do a step again if the backend has failed; it fails once."""
    try:
        await step()
    except OwnError:
        await step()


async def soon(step: Callable[[], Awaitable[object]], seconds: float = 1.0) -> None:
    await asyncio.sleep(seconds)
    await step()


async def both(use: Awaitable[object], other: Awaitable[object]) -> None:
    """Wait for the end of both, then raise."""
    for outcome in await asyncio.gather(use, other, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


async def wait_for_item(kind: type[Queue] | type[PriorityQueue], store: Store, plain: Client) -> None:
    queue, other = kind(store, "q"), kind(plain, "q")
    await both(until_it_works(queue.get), soon(lambda: other.put_all(["a", "b", "c"])))
    await queue.get(timeout=_LONG)  # the answer of one may be lost


async def wait_for_job(store: Store, plain: Client) -> None:
    async with WorkQueue(store, "w", ttl=3).worker(concurrency=2) as worker:

        async def work() -> None:
            async with await anext(worker):
                await asyncio.sleep(1)

        async def put() -> None:
            for value in "ab":  # the answer of what ends one may be lost
                await WorkQueue(plain, "w").put(value)

        await both(until_it_works(work), soon(put))
        await both(until_it_works(work), soon(put))


async def hold_lock(store: Store, plain: Client) -> None:
    async with plain.lock("x"):
        waiting = asyncio.ensure_future(hold(store.lock("x", ttl=3)))
        await asyncio.sleep(1)
    await waiting
    async with plain.lock("x", timeout=_LONG):
        pass


async def hold(block: Any) -> None:
    async with block:
        await asyncio.sleep(2)


async def hold_all(store: Store, plain: Client) -> None:
    locks = store.rwlock("rw", ttl=3)
    await until_it_works(lambda: hold(locks.reading()))
    await until_it_works(lambda: hold(locks.writing()))
    await until_it_works(lambda: hold(store.semaphore("s", limit=2, ttl=3)))
    async with plain.rwlock("rw").writing(timeout=_LONG), plain.semaphore("s", limit=2, permits=2, timeout=_LONG):
        pass


async def try_locks(store: Store, plain: Client) -> None:
    lock = store.lock("x", ttl=3)
    if await lock.try_acquire():
        await lock.release()
    async with plain.lock("x", timeout=_LONG):
        pass


async def lead(store: Store, plain: Client) -> None:
    election = store.election("e", ttl=3)
    async with election.lead("a") as leadership:
        await leadership.proclaim("b")

    async def work(leadership: object) -> None:
        await asyncio.sleep(2)

    await election.run(work, "c")
    async with plain.election("e").lead("d"):
        pass


async def hold_on_a_session(store: Store, plain: Client) -> None:
    async with store.session(ttl=3) as session:
        await until_it_works(lambda: hold(session.lock("x", timeout=_LONG)))
        await until_it_works(lambda: hold(session.lock("x", timeout=_LONG)))
        async with plain.lock("x", timeout=_LONG):
            pass


async def write_once(store: Store, plain: Client) -> None:
    async with store.exactly_once() as once:
        for number in range(3):
            await until_it_works(lambda n=number: once.put(f"k{n}", "v"))  # type: ignore[misc]


async def follow(store: Store, plain: Client) -> None:
    async with store.cache(prefix="k/") as cache:
        revision = (await plain.put("k/a", "")).revision
        await cache.wait_revision(revision, timeout=None)
        await cache.wait_current(timeout=None)
        await cache.wait_revision((await plain.put("elsewhere", "")).revision, timeout=None)


async def be_found(store: Store, plain: Client) -> None:
    async with store.register("svc", "a:1", ttl=3) as entry, plain.resolve("svc") as found:
        await found.wait_endpoints(timeout=_LONG)
        await until_it_works(lambda: entry.update(metadata={"a": 1}))
        await asyncio.sleep(10)
        assert entry.is_registered
    async with store.resolve("svc") as found:
        await plain.put("svc/b", '{"Addr":"b:1"}')
        await found.wait_endpoints(timeout=_LONG)


async def be_a_member(store: Store, plain: Client) -> None:
    async with Group(store, "g", ttl=3).join("m") as membership:
        await plain.delete("g/m")
        await asyncio.sleep(60)
        assert membership.is_registered


async def count_together(store: Store, plain: Client) -> None:
    counter = Counter(store, "c", timeout=None)
    outcomes = await asyncio.gather(*(counter.add() for _ in range(5)), return_exceptions=True)
    assert {type(each) for each in outcomes} <= {int, OwnError}
    await counter.add()


async def put_together(store: Store, plain: Client) -> None:
    queue = PriorityQueue(store, "p", timeout=None)
    await asyncio.gather(*(queue.put(f"{n}") for n in range(5)), return_exceptions=True)
    await queue.put("z")


async def meet(store: Store, plain: Client) -> None:
    async def take_part() -> None:
        async with DoubleBarrier(store, "d", count=2, ttl=3, timeout=30):
            await asyncio.sleep(2)

    await both(take_part(), take_part())


async def change_together(store: Store, plain: Client) -> None:
    async def change(transaction: Any) -> None:
        kv = await transaction.get("t")
        transaction.put("t", b"x" if kv is None else kv.value + b"x")

    await asyncio.gather(*(store.stm(change, timeout=None) for _ in range(3)), return_exceptions=True)
    await store.stm(change, timeout=None)


async def mirror(store: Store, plain: Client) -> None:
    copy = Mirror(plain, store, prefix="a/", to_prefix="b/")
    revision = (await plain.put("a/x", "")).revision
    copied = asyncio.ensure_future(copy.wait_revision(revision))
    running = asyncio.ensure_future(soon(copy.run))
    try:
        await copied
    except ClientUsageError as error:
        raise TypeError("it says that it was cancelled") from error
    finally:
        running.cancel()
        await asyncio.wait([running])


def _used(use: Callable[[Any, str], Awaitable[object]]) -> Use:
    return lambda store, plain: use(store, "app")


USES: Final[dict[str, Use]] = {
    **{case.name: _used(case.use) for case in CASES},
    "queue that waits": lambda store, plain: wait_for_item(Queue, store, plain),
    "worker that waits": wait_for_job,
    "lock": hold_lock,
    "try_acquire": try_locks,
    "read-write lock, semaphore": hold_all,
    "election": lead,
    "session": hold_on_a_session,
    "exactly once": write_once,
    "cache": follow,
    "service": be_found,
    "member": be_a_member,
    "counter of several": count_together,
    "priority queue of several": put_together,
    "double barrier that lasts": meet,
    "stm of several": change_together,
    "mirror": mirror,
}


async def renewed(client: Client) -> list[int]:
    """The leases that were renewed although nothing has needed them for long; records of ticks have longer ones."""
    found = [await client.leases.time_to_live(lease) for lease in (await client.leases.list()).ids]
    return [each.id for each in found if each.ttl > each.granted_ttl - _LONG]


@pytest.mark.parametrize("when", ["unsent", "unanswered"])
@pytest.mark.parametrize("name", USES)
async def test_an_error_of_the_backend_ends_each_wait_and_leaves_nothing(
    name: str, when: When, caplog: pytest.LogCaptureFixture
) -> None:
    for number in count():
        where = f"call {number}"
        async with FakeEtcd(latency=0.001) as fake, fake.client() as client, fake.client() as plain:
            backend = FailingBackend(client.backend, number, when)
            caplog.clear()
            use = asyncio.ensure_future(USES[name](Store(backend), plain))
            await asyncio.wait([use], timeout=_LONG)
            assert use.done(), f"{where}: it waits for ever"
            error = use.exception()
            if error is not None:  # or a use finds less than it has sent
                assert backend.has_failed, where
                assert isinstance(error, OwnError | EtcdError | AssertionError), where
            await asyncio.sleep(_LONG)
            assert await renewed(plain) == [], where
            if not backend.has_failed:
                assert number, "it made no call"
                return
        gc.collect()
        await asyncio.sleep(0)
        failed = [each.getMessage() for each in caplog.records if "name='etcd_aio" in each.getMessage()]
        assert failed == [], where


class FaultyView:
    """A view of a watch with a bug."""

    def __init__(self, keys: KeyRange) -> None:
        self.keys = keys

    async def batch(self, batch: WatchBatch) -> WatchBatch:
        if batch.events:
            raise KeyError("bug in my view")
        return batch

    def explain(self, error: EtcdError) -> None:
        """The keys in errors are those of the user."""


class FaultyBackend(FailingBackend):
    """A backend whose calls work, and whose watches do not."""

    def __init__(self, beneath: Backend) -> None:
        super().__init__(beneath, 1_000_000, "unsent")
        self.watch = lambda call: beneath.watch(call.shown_by(FaultyView(call.options.keys)))


async def test_a_cache_that_a_view_has_ended_says_the_type_of_the_error() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        async with Store(FaultyBackend(client.backend)).cache(prefix="a") as cache:
            await client.put("a", "")
            await asyncio.sleep(1)
            with pytest.raises(CacheError, match=r"has ended: KeyError: 'bug in my view'") as raised:
                cache.get("a")
        assert isinstance(raised.value.__cause__, KeyError)


async def test_a_job_whose_end_has_met_an_error_of_the_backend_may_be_ended_and_is_not_lost() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        backend = FailingBackend(client.backend, 1_000_000, "unanswered")
        await WorkQueue(client, "w").put("a")
        async with WorkQueue(Store(backend), "w").worker() as worker:
            job = await anext(worker)
            backend.fail_next()
            with pytest.raises(OwnError):
                await job.complete()
            await asyncio.sleep(1)  # the deletion of the claim is seen
            assert not job.is_lost
            await job.complete()
            assert job.is_ended
