"""sync/, sync/admin/, sync/cache/, sync/calls/, sync/concurrency/, sync/config/, sync/fake/, sync/kv/, sync/lease/,
sync/mirror/, sync/once/, sync/recipes/barrier/, sync/recipes/counter/, sync/recipes/group/, sync/recipes/kubernetes.py,
sync/recipes/queue/, sync/recipes/schedule/, sync/recipes/stm/, sync/recipes/work_queue/, sync/services/, sync/watch/,
portal/losable.py: each blocking class does on a fake what its asyncio class does.
"""

import inspect
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from etcd_aio import UNSET, EtcdError, Key, LockLostError, op
from etcd_aio.errors import (
    BlockingInLoopError,
    ClientClosedError,
    ClientUsageError,
    EtcdTimeoutError,
    InvalidRequestError,
    JobLostError,
    LeaseLostError,
    LockTimeoutError,
    NotHeldError,
    UnavailableError,
)
from etcd_aio.recipes import Tick
from etcd_aio.sync import Client, Store
from etcd_aio.sync._facades import PLACES
from etcd_aio.sync.admin import Auth
from etcd_aio.sync.concurrency import Leadership, ReadLock
from etcd_aio.sync.fake import FakeEtcd
from etcd_aio.sync.mirror import Mirror, follow
from etcd_aio.sync.recipes import (
    Barrier,
    Counter,
    DoubleBarrier,
    Group,
    IdAllocator,
    Kubernetes,
    PriorityQueue,
    Queue,
    Schedule,
    Transaction,
    WorkQueue,
)
from etcd_aio.sync.services import naming

SECONDS = 10.0  # no wait here takes a tenth of it


@pytest.fixture
def fake() -> Iterator[FakeEtcd]:
    with FakeEtcd() as fake:
        yield fake


@pytest.fixture
def client(fake: FakeEtcd) -> Iterator[Client]:
    with fake.client() as client:
        yield client


# Keys, txns, watches, leases.


def test_keys_and_txns(client: Client) -> None:
    client.put("a", "1")
    found = client.get("a")
    assert found is not None
    assert found.text() == "1"
    assert client.update("a", lambda value: (value or b"") + b"2").value == b"12"
    done = client.txn().when(Key("a").exists).then(op.put("b", "3"), op.get("a")).otherwise(op.get("b")).commit()
    assert done.succeeded
    assert [kv.key for kv in client.scan(all_keys=True)] == [b"a", b"b"]
    assert [page.count for page in client.scan(all_keys=True).pages()] == [2]
    assert client.do(op.range(prefix="a")).count == 1
    assert client.delete("b").deleted == 1


def test_a_scan_has_next_with_a_limit_of_time_and_ends(client: Client) -> None:
    client.put("a", "1")
    scan = client.scan(all_keys=True)
    assert scan.next(timeout=SECONDS).key == b"a"
    with pytest.raises(StopIteration):
        scan.next(timeout=SECONDS)
    scan.close()


def test_a_watch_is_iterated_over_by_events_and_by_batches(client: Client) -> None:
    with client.watch(prefix="w/") as watcher:
        client.put("w/a", "1")
        assert next(watcher).key == b"w/a"
        with pytest.raises(EtcdTimeoutError):
            watcher.next(timeout=0.01)
        client.put("w/b", "1")
        assert watcher.next(timeout=SECONDS).key == b"w/b"
        assert watcher.statistics().delivered == 2
    with client.watch(prefix="w/", start_revision=1) as watcher:
        assert [event.key for event in next(watcher.batches())] == [b"w/a", b"w/b"]
        client.put("w/c", "1")
        assert watcher.next_batch().events[0].key == b"w/c"
        watcher.close()
        with pytest.raises(StopIteration):
            watcher.next_batch()


def test_a_lease_is_kept_and_given_as_an_argument(client: Client) -> None:
    with client.lease(60) as lease:
        client.put("leased", "1", lease=lease)
        assert client.leases.time_to_live(lease, keys=True).keys == (b"leased",)
        assert lease.ttl == 60
        assert lease.error is None
        lease.check()
    assert client.get("leased") is None
    assert not client.leases.list().leases


# What is held.


def test_a_lost_lock_is_told_of_in_every_way(client: Client) -> None:
    lost: SimpleQueue[tuple[EtcdError, str]] = SimpleQueue()
    lock = client.lock("l", ttl=60, on_lost=lambda error: lost.put((error, threading.current_thread().name)))
    with pytest.raises(NotHeldError):
        lock.check()
    with pytest.raises(LockLostError), lock:  # noqa: PT012
        lock.check()
        assert lock.is_held
        lock.fenced.put("result", "1")
        client.delete(lock.key)
        error, thread = lost.get(timeout=SECONDS)
        assert isinstance(error, LockLostError)
        assert thread == "etcd_aio.on_lost"
        assert (lock.is_held, lock.is_lost) == (False, True)
        with pytest.raises(LockLostError):
            lock.check()
        assert isinstance(lock.lost(), LockLostError)
        with pytest.raises(LockLostError):
            lock.fenced.put("result", "2")
    kept = client.get("result")
    assert kept is not None
    assert kept.value == b"1"


def test_a_lock_that_is_left_is_not_told_of(client: Client) -> None:
    lost: SimpleQueue[EtcdError] = SimpleQueue()
    with client.lock("l", on_lost=lost.put):
        pass
    lock = client.lock("l", on_lost=lost.put)
    assert lock.try_acquire()
    lock.release()
    client.get("a")  # the loop has run since
    assert lost.empty()


def test_a_lock_excludes_and_acquire_tells_of_a_loss_too(client: Client) -> None:
    lost: SimpleQueue[EtcdError] = SimpleQueue()
    first = client.lock("l", ttl=60, on_lost=lost.put)
    first.acquire()
    assert not client.lock("l").try_acquire()
    with pytest.raises(LockTimeoutError), client.lock("l", timeout=0.05):
        raise AssertionError
    assert len(first.contenders()) == 1
    client.delete(first.key)
    assert isinstance(lost.get(timeout=SECONDS), LockLostError)
    with pytest.raises(LockLostError):
        first.release()


def test_readers_and_permits(client: Client) -> None:
    rwlock = client.rwlock("rw")
    with rwlock.reading() as reader, rwlock.reading() as other:
        assert type(reader) is ReadLock
        assert reader.is_held
        assert other.is_held
        with pytest.raises(LockTimeoutError), rwlock.writing(timeout=0.05):
            raise AssertionError
    with rwlock.writing() as writer:
        assert writer.fenced_by(client).put("a", "1").revision > 0
    with client.semaphore("s", limit=1) as permit:
        assert (permit.limit, permit.permits) == (1, 1)


def test_a_maker_hands_its_callback_to_what_it_makes(client: Client) -> None:
    lost: SimpleQueue[EtcdError] = SimpleQueue()
    with pytest.raises(LockLostError), client.rwlock("rw", on_lost=lost.put).reading() as reader:  # noqa: PT012
        client.delete(reader.key)
        assert isinstance(lost.get(timeout=SECONDS), LockLostError)


def test_a_session_and_a_lost_lease(client: Client) -> None:
    lost: SimpleQueue[EtcdError] = SimpleQueue()
    with pytest.raises(LeaseLostError), client.session(ttl=2, on_lost=lost.put) as session:  # noqa: PT012
        with session.lock("a") as lock:
            assert lock.is_held
        session.check()
        client.leases.revoke(session.id)
        client.put("until", "it is noticed")
        with pytest.raises(EtcdError):
            session.lease.keep_alive_once()
        assert isinstance(session.lease.lost(), LeaseLostError)
        assert isinstance(lost.get(timeout=SECONDS), LeaseLostError)
        with pytest.raises(LeaseLostError):
            session.check()


def test_elections(client: Client) -> None:
    election = client.election("e")
    with election.lead("host-1") as leadership, election.changes() as leaders:
        first = leaders.next(timeout=SECONDS)
        assert first is not None
        assert first.value == b"host-1"
        leadership.proclaim("host-2")
        again = election.leader()
        assert again is not None
        assert again.value == b"host-2"
    caller = threading.get_ident()

    def work(leadership: Leadership) -> int:
        assert threading.get_ident() == caller
        leadership.check()
        return leadership.fencing_token

    assert election.run(work) > 0


def test_an_election_runs_work_again_that_has_lost_it(client: Client) -> None:
    lost: SimpleQueue[EtcdError] = SimpleQueue()
    tokens: list[int] = []

    def work(leadership: Leadership) -> int:
        tokens.append(leadership.fencing_token)
        if len(tokens) == 1:
            client.delete(leadership.key)
            lost.get(timeout=SECONDS)
            leadership.check()
        return len(tokens)

    assert client.election("e", ttl=60, on_lost=lost.put).run(work) == 2
    assert tokens[0] < tokens[1]


# Recipes.


def test_stm_runs_the_function_in_the_thread_of_the_caller(client: Client) -> None:
    client.put("a", "1")
    caller = threading.get_ident()

    def move(tx: Transaction) -> int:
        assert threading.get_ident() == caller
        found = tx.get("a")
        assert found is not None
        tx.put("b", found.value)
        tx.delete("a")
        return len(tx.range(prefix="a")) + len(tx.get_all(["b"]))

    result = client.stm(move)
    assert (result.value, result.attempts) == (1, 1)
    assert [kv.key for kv in client.range(all_keys=True).kvs] == [b"b"]
    with pytest.raises(ZeroDivisionError):
        client.stm(lambda tx: 1 // len(tx.range(prefix="none/")))


def test_exactly_once_is_a_writer(client: Client) -> None:
    with client.exactly_once() as once:
        assert Counter(client, "n", writer=once).add(2) == 2
        assert once.put("a", "1").revision > 0
        assert once.txn().then(op.put("b", "1")).commit().succeeded
        assert client.stm(lambda tx: tx.put("c", "1"), writer=once).attempts == 1
        assert once.statistics().in_use == 0


def test_counters_ids_and_barriers(client: Client) -> None:
    counter = Counter(client, "n", maximum=5)
    assert (counter.add(3), counter.get(), counter.set(1, expected=3), counter.get()) == (3, 3, True, 1)
    assert len({IdAllocator(client, "ids").next() for _ in range(3)}) == 3
    barrier = Barrier(client, "b")
    assert barrier.hold()
    waiting = threading.Thread(target=barrier.wait_released, kwargs={"timeout": SECONDS})
    waiting.start()
    assert barrier.release()
    waiting.join(SECONDS)
    assert not waiting.is_alive()
    with DoubleBarrier(client, "d", count=1) as entered:
        entered.check()


def test_queues(client: Client) -> None:
    queue = Queue(client, "q")
    queue.put_all(["a", "b"])
    assert (next(queue).value, queue.get().value, queue.size()) == (b"a", b"b", 0)
    with pytest.raises(EtcdTimeoutError):
        queue.next(timeout=0.05)
    urgent = PriorityQueue(client, "p")
    urgent.put("late", priority=9)
    urgent.put("early", priority=1)
    assert [item.value for item in urgent.peek(2)] == [b"early", b"late"]


def test_a_work_queue_and_a_lost_job(client: Client) -> None:
    lost: SimpleQueue[EtcdError] = SimpleQueue()
    work = WorkQueue(client, "w", ttl=60)
    work.put("a")
    with work.worker() as worker:
        with next(worker) as job:
            job.check()
            assert (job.text(), job.tries, job.deadline > 0) == ("a", 1, True)
        assert work.size() == 0
    work.put("b")
    with work.worker(on_lost=lost.put) as worker, pytest.raises(JobLostError), worker.next(SECONDS) as job:  # noqa: PT012
        client.delete(prefix="w")
        assert isinstance(lost.get(timeout=SECONDS), JobLostError)
        with pytest.raises(JobLostError):
            job.check()


def test_groups(client: Client) -> None:
    group = Group(client, "g")
    with group.join("one") as member, group.cache() as cache, group.ring() as ring:
        member.wait_registered()
        assert [one.name for one in group.members().members] == ["one"]
        assert [one.name for one in cache.view.members] == ["one"]
        assert ring.owner("key").name == "one"
        seen: SimpleQueue[int] = SimpleQueue()
        stop = cache.subscribe(lambda view: seen.put(len(view.members)))
        with group.join("two"):
            assert seen.get(timeout=SECONDS) == 2
        stop()


def test_a_schedule_runs_its_work_in_the_thread_of_the_caller(client: Client) -> None:
    caller = threading.get_ident()

    def work(tick: Tick) -> None:
        assert isinstance(tick.time, datetime)
        assert threading.get_ident() == caller
        raise KeyError(tick.tries)

    schedule = Schedule(client, "s", every=1)
    with pytest.raises(KeyError):
        schedule.run(work)
    assert schedule.last() is not None


def test_kubernetes_and_services_and_mirrors(client: Client) -> None:
    kubernetes = Kubernetes(client)
    assert kubernetes.optimistic_put("pods/a", "1", 0).succeeded
    assert (kubernetes.get("pods/a").kv is not None, kubernetes.count("pods/")) == (True, 1)
    with client.register("svc", "a:1") as registration, client.resolve("svc") as service:
        assert registration.is_registered
        assert (service.pick().address, len(service), bool(service)) == ("a:1", 1, True)
        changes = service.changes()
        changes.next(timeout=SECONDS)
        naming.update(client, "svc", add=["b:1"])
        changes.next(timeout=SECONDS)
        assert len(service.endpoints) == 2
    with follow(client, "pods/") as batches:
        assert batches.next(timeout=SECONDS).is_base
    copy = Mirror(client, client.namespace("copy/"), prefix="pods/")
    ended: SimpleQueue[BaseException] = SimpleQueue()

    def copy_all() -> None:
        try:
            copy.run()
        except EtcdError as error:
            ended.put(error)

    copying = threading.Thread(target=copy_all)
    copying.start()
    while client.get("copy/pods/a") is None:
        assert copying.is_alive()
    client.close()
    assert isinstance(ended.get(timeout=SECONDS), ClientClosedError)
    copying.join(SECONDS)


# Caches.


def test_a_cache(client: Client) -> None:
    client.put("c/a", "1")
    errors: SimpleQueue[bytes] = SimpleQueue()
    with client.cache(prefix="c/", decode=int, on_error=lambda key, _: errors.put(key)) as cache:
        assert (cache["c/a"], cache.get("c/b", 0), len(cache), "c/a" in cache, list(cache)) == (1, 0, 1, True, [b"c/a"])
        changes = cache.changes()
        revision = client.put("c/b", "2").revision
        cache.wait_revision(revision)
        assert changes.next(timeout=SECONDS)[1].keys() == {b"c/b"}
        assert (cache.read("c/b"), cache.range(), bool(cache)) == (2, {b"c/a": 1, b"c/b": 2}, True)
        client.put("c/c", "no number")
        assert errors.get(timeout=SECONDS) == b"c/c"


# The client, its parts and views.


def test_parts_and_views(client: Client, tmp_path: Path) -> None:
    assert isinstance(client.auth, Auth)
    assert client.cluster.members().members[0].client_urls
    assert client.maintenance.status(client.endpoints[0]).is_leader
    saved = client.maintenance.save_snapshot(tmp_path / "db", on_progress=lambda *_: None)
    assert saved.size == sum(map(len, client.maintenance.snapshot()))
    ordered = client.ordered()
    ordered.put("k", "1")
    ordered.revision = 10_000
    assert ordered.revision == 10_000
    inner = client.namespace("app/")
    assert type(inner) is Store
    inner.put("a", "1")
    assert client.get("app/a") is not None
    client.wait_ready()
    assert client.connect() is client
    assert client.ping() > 0


def test_options_by_text_and_a_token_by_a_blocking_function(fake: FakeEtcd) -> None:
    threads: list[str] = []

    def token() -> str:
        threads.append(threading.current_thread().name)
        return "t0ken"

    endpoint = fake.endpoints[0]
    with fake.client(token=token, allow_insecure_auth=True) as client:
        client.get("a")
    assert threads == ["etcd_aio.token"]
    with Client.from_url(f"etcd://{endpoint.removeprefix('http://')}", timeout=1.5, name="by-url") as client:
        assert (client.name, client.default_timeout) == ("by-url", 1.5)
    with Client.from_env({"ETCDCTL_ENDPOINTS": endpoint}) as client:
        assert client.endpoints == fake.endpoints


@pytest.mark.anyio
async def test_a_call_in_a_thread_with_a_loop_is_an_error_unless_it_is_allowed(fake: FakeEtcd) -> None:
    client = fake.client(allow_in_loop=True)
    assert client.get("a") is None
    client.close()
    refused = fake.client()
    with pytest.raises(BlockingInLoopError):
        refused.get("a")
    closing = threading.Thread(target=refused.close)
    closing.start()
    closing.join(SECONDS)


def test_a_recipe_takes_a_blocking_client_alone() -> None:
    with pytest.raises(TypeError, match=r"client must be a client or a store of etcd_aio\.sync, got str"):
        Counter("no client", "n")  # type: ignore[arg-type]


def test_a_block_is_entered_once_at_a_time(client: Client) -> None:
    lock = client.lock("l")
    with lock, pytest.raises(ClientUsageError), lock:
        raise AssertionError


def test_the_fake_has_its_faults_and_serves_sockets(fake: FakeEtcd, client: Client) -> None:
    with fake.fault("KV/Put", status="UNAVAILABLE", times=1) as fault:
        with pytest.raises(UnavailableError):
            client.put("a", "0")
        client.put("a", "1")
    assert fault.hits == 1
    assert fake.keys() == {b"a": b"1"}
    assert fake.members[0].is_leader
    with fake.serve() as endpoint, Client(endpoint) as other:
        assert other.get("a") is not None
    lease = client.leases.grant(10)
    fake.advance(11)
    assert lease.id not in [one.id for one in fake.leases]


def test_importing_the_client_imports_no_recipes() -> None:
    code = (
        "import sys; from etcd_aio.sync import Client; "
        "assert not [name for name in sys.modules if name.startswith(('etcd_aio.sync.recipes', 'etcd_aio.recipes', "
        "'etcd_aio.sync.admin', 'etcd_aio.cache', 'etcd_aio.sync.cache', 'etcd_aio.concurrency'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


async def _async_function(*given: object) -> None:
    """Blocking code cannot await it."""


@pytest.mark.parametrize("function", [_async_function, None, "signal"])
def test_only_blocking_functions_are_taken(function: Any) -> None:
    with FakeEtcd() as fake, fake.client() as client:
        for call in (
            lambda: client.stm(function),
            lambda: client.election("a").run(function),
            lambda: Schedule(client, "a", every=1.0).run(function),
            lambda: client.lock("a", on_lost=function) if function else client.election("b").run(function),
        ):
            with pytest.raises((TypeError, InvalidRequestError)):
                call()
        assert not fake.keys()


def test_every_wait_has_a_timeout() -> None:
    """A thread cannot be cancelled, so a call without one could only be left alone."""
    found = set()
    for place in PLACES.values():
        module, _, name = place.partition(":")
        one = getattr(import_module(module), name)
        for method in dir(one):
            if method == "lost" or method.startswith("wait_"):
                parameters = inspect.signature(getattr(one, method)).parameters
                found.add(f"{name}.{method}")
                assert parameters["timeout"].default in (None, UNSET), f"{name}.{method}"
    assert {"Lock.lost", "Job.lost", "Mirror.wait_revision", "Membership.wait_registered"} <= found


def test_a_thread_looks_for_a_loss_briefly(fake: FakeEtcd, client: Client) -> None:
    queue = WorkQueue(client, "q")
    queue.put(b"")
    with (
        client.lock("l") as lock,
        client.election("e").lead("me") as leadership,
        client.lease(10) as lease,
        client.register("s", "h:1") as registration,
        Group(client, "g").join("me") as membership,
        queue.worker(on_lost=lambda error: None) as worker,
        next(worker) as job,
    ):
        registration.wait_registered(timeout=30)
        held: list[Any] = [lock, leadership, lease, registration, membership, job]
        for one in held:
            for seconds in (0, 0.01):
                with pytest.raises(EtcdTimeoutError, match=r"was not lost in time$"):
                    one.lost(timeout=seconds)
            with pytest.raises(InvalidRequestError, match="timeout"):
                one.lost(timeout=-1)
        job.complete()
        assert job.lost(timeout=0) is None


def test_a_loss_ends_a_wait_with_a_timeout(client: Client) -> None:
    with pytest.raises(LockLostError), client.lock("l") as lock:  # noqa: PT012 - the block is what is tested
        client.delete(lock.key)
        assert isinstance(lock.lost(timeout=SECONDS), LockLostError)
        assert isinstance(lock.lost(timeout=0), LockLostError)


def test_waiting_for_a_mirror_ends_in_time(client: Client) -> None:
    mirror = Mirror(client, client, prefix="a/", to_prefix="b/")
    with pytest.raises(EtcdTimeoutError, match=r"revision 7 was not copied in time$"):
        mirror.wait_revision(7, timeout=0.01)
