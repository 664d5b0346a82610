"""The blocking classes as type checkers see them: `# type: ignore` marks what must be refused."""

from collections.abc import Callable, Iterator
from typing import assert_type

from etcd_aio import Event, Key, KeyValue, LeaseLostError, LockLostError, PutResult, TxnResult, WatchBatch, op
from etcd_aio.admin import AuthResult, StatusResult
from etcd_aio.concurrency import Leader
from etcd_aio.mirror import MirrorBatch
from etcd_aio.recipes import HashRing, Item, StmResult, Tick
from etcd_aio.services import ServiceChange, ServiceEndpoint
from etcd_aio.sync import Client, Lease, Leases, Scan, Store, Txn, Watcher, Writer
from etcd_aio.sync.admin import Auth
from etcd_aio.sync.cache import Cache, CacheChanges
from etcd_aio.sync.concurrency import Election, Leadership, Lock, ReadLock, RWLock, Session
from etcd_aio.sync.fake import FakeEtcd
from etcd_aio.sync.mirror import Follow, Mirror, follow
from etcd_aio.sync.once import ExactlyOnce
from etcd_aio.sync.recipes import Counter, DoubleBarrier, Group, Job, Queue, Ring, Schedule, Transaction, WorkQueue
from etcd_aio.sync.services import Endpoints, Registration, naming
from etcd_aio.sync.store import Ordered


def keys(client: Client) -> None:
    assert_type(client.get("a"), KeyValue | None)
    assert_type(client.put("a", b"1", timeout=None), PutResult)
    assert_type(client.do(op.put("a", "1")), PutResult)
    assert_type(client.txn(), Txn)
    assert_type(client.txn().when(Key("a").exists).then(op.put("a", "1")).commit(), TxnResult)
    scan = client.scan(prefix="a")
    assert_type(scan, Scan)
    assert_type(next(scan), KeyValue)
    assert_type(scan.next(timeout=1.5), KeyValue)
    assert_type(client.update("a", lambda value: value or b""), KeyValue)
    client.put("a", 1)  # type: ignore[call-overload]
    client.get(5)  # type: ignore[arg-type]


def clients() -> None:
    with Client(["a"], timeout=None, allow_in_loop=True) as client:
        assert_type(client, Client)
        assert_type(client.connect(), Client)
        assert_type(client.leases, Leases)
        assert_type(client.auth, Auth)
        assert_type(client.auth.enable(), AuthResult)
        assert_type(client.maintenance.status("a"), StatusResult)
        store: Store = client
        assert_type(store.namespace("a/"), Store)
        assert_type(store.ordered(), Ordered)
    assert_type(Client.from_url("etcd://m1", timeout=1, allow_in_loop=True), Client)
    Client(token=lambda: "t0ken")
    Client.from_url("etcd://m1", token=lambda: "t0ken")
    Client.from_url("etcd://m1", timeout="3s")  # type: ignore[arg-type]
    Client(token=give_token)  # type: ignore[arg-type]


async def give_token() -> str:
    return "t0ken"


def watches(client: Client) -> None:
    with client.watch(prefix="a") as watcher:
        assert_type(watcher, Watcher)
        for event in watcher:
            assert_type(event, Event)
        for batch in watcher.batches():
            assert_type(batch, WatchBatch)
        assert_type(watcher.next_batch(), WatchBatch)
        watcher.close()


def held(client: Client, on_lost: Callable[[Exception], None]) -> None:
    with client.lock("a", ttl=5, on_lost=on_lost) as lock:
        assert_type(lock, Lock)
        assert_type(lock.fenced, Writer)
        assert_type(lock.fenced_by(client), Writer)
        assert_type(lock.fenced.put("a", "b"), PutResult)
        assert_type(lock.lost(), LockLostError | None)
        lock.check()
    client.lock("a", on_lost="signal")  # type: ignore[arg-type]
    client.lock("a", reentrant=True)
    assert_type(client.rwlock("a"), RWLock)
    with client.rwlock("a").reading(timeout=1) as reader:
        assert_type(reader, ReadLock)
    with client.session(ttl=5) as session:
        assert_type(session, Session)
        assert_type(session.lease, Lease)
        assert_type(session.lock("a"), Lock)
    with client.lease(5) as lease:
        assert_type(lease.error, LeaseLostError | None)
        client.put("a", "1", lease=lease)
    with client.rwlock("a"):  # type: ignore[attr-defined]
        pass


def elections(client: Client) -> None:
    election = client.election("a")
    assert_type(election, Election)
    with election.lead("b") as leadership, election.changes() as leaders:
        assert_type(leadership, Leadership)
        for leader in leaders:
            assert_type(leader, Leader | None)
    assert_type(election.run(lambda leadership: leadership.fencing_token), int)


def caches(client: Client) -> None:
    with client.cache(prefix="a", decode=int) as cache:
        assert_type(cache, Cache[int])
        assert_type(cache.get("a"), int | None)
        assert_type(cache["a"], int)
        assert_type(cache.read("a"), int | None)
        assert_type(iter(cache), Iterator[bytes])
        changes = cache.changes()
        assert_type(changes, CacheChanges)
        assert_type(next(changes), tuple[int, dict[bytes, KeyValue | None]])
    assert_type(client.cache(prefix="a"), Cache[KeyValue])
    client.cache(prefix="a", on_error=print)  # type: ignore[call-overload]


def move(tx: Transaction) -> str:
    found = tx.get("a")
    assert_type(found, KeyValue | None)
    return found.text() if found else ""


def work(tick: Tick) -> None:
    assert_type(tick.tries, int)


def recipes(client: Client) -> None:
    assert_type(client.stm(move), StmResult[str])
    with client.exactly_once() as once:
        assert_type(once, ExactlyOnce)
        Counter(client, "a", writer=once)
    queue = Queue(client, "a")
    assert_type(next(queue), Item)
    assert_type(queue.get(timeout=1), Item)
    with WorkQueue(client, "a").worker() as worker:
        for job in worker:
            with job as mine:
                assert_type(mine, Job)
    with DoubleBarrier(client, "a", count=2) as barrier, Group(client, "a").ring() as ring:
        assert_type(barrier, DoubleBarrier)
        assert_type(ring, Ring)
        assert_type(next(ring.changes()), HashRing)
        assert_type(ring.subscribe(lambda one: None), Callable[[], object])
    Counter("a", "b")  # type: ignore[arg-type]
    Schedule(client, "a", every=5).run(work)


def services(client: Client) -> None:
    with client.register("a", "b:1") as registration, client.resolve("a") as service:
        assert_type(registration, Registration)
        assert_type(service, Endpoints)
        assert_type(service.endpoints, tuple[ServiceEndpoint, ...])
        assert_type(next(service.changes()), ServiceChange)
    assert_type(naming.update(client, "a", add=["b:1"]), TxnResult)
    with follow(client, "a") as batches:
        assert_type(batches, Follow)
        assert_type(next(batches), MirrorBatch)
    Mirror(client, client.namespace("b/"), prefix="a")


def fakes() -> None:
    with FakeEtcd() as fake, fake.client(timeout=1) as client, fake.serve() as endpoint:
        assert_type(client, Client)
        assert_type(endpoint, str)
        assert_type(fake.members[0].is_leader, bool)
