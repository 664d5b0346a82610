"""The public API as type checkers see it. Never executed: mypy --strict and pyright check it with the rest of tests/.

`assert_type` says what an expression is. A line with an ignore must be refused: both checkers report an ignore that
nothing needs, and mypy also one that names another error.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar, assert_type

from etcd_aio import (
    TLS,
    UNSET,
    Client,
    CompactResult,
    Compare,
    DeleteResult,
    EtcdError,
    EtcdTimeoutError,
    Event,
    EventType,
    Header,
    InvalidRequestError,
    Key,
    KeyLike,
    KeyRange,
    KeyValue,
    LeadershipLostError,
    Lease,
    LeaseLike,
    LeaseLostError,
    Leases,
    LockLostError,
    NoAvailableEndpointsError,
    Op,
    Operation,
    PutResult,
    RangeResult,
    RetryMode,
    RetryPolicy,
    Scan,
    SortBy,
    SortOrder,
    Store,
    Timeout,
    Txn,
    TxnResult,
    ValueLike,
    WatchBatch,
    Watcher,
    WatchFilter,
    WatchStatistics,
    Writer,
    op,
)
from etcd_aio.admin import (
    Alarm,
    AlarmResult,
    AuthResult,
    AuthStatus,
    DowngradeAction,
    DowngradeInfo,
    DowngradeResult,
    EndpointVersions,
    HashKVResult,
    Member,
    MemberAddResult,
    MemberListResult,
    MemberRemoveResult,
    MoveLeaderResult,
    Permission,
    SavedSnapshot,
    Snapshot,
    StatusResult,
)
from etcd_aio.cache import Cache, CacheBatches, CacheChanges, CacheState, CacheStatistics
from etcd_aio.concurrency import (
    Contender,
    Election,
    Leader,
    Leadership,
    Lock,
    ReadLock,
    RWLock,
    Semaphore,
    Session,
    WriteLock,
)
from etcd_aio.contrib.litestar import EtcdPlugin
from etcd_aio.contrib.quart import QuartEtcd
from etcd_aio.contrib.sanic import SanicEtcd
from etcd_aio.errors import Attempt, CompactedError, Delivery, KeyNotFoundError, ServerError, StatusCode
from etcd_aio.kv import DeleteOp, GetOp, PutOp, RangeOp, ScanPages, TxnOp
from etcd_aio.lease import LeaseGrantResult, LeaseKeepAliveResult, LeaseRevokeResult, LeaseTimeToLiveResult
from etcd_aio.mirror import Checkpoint, Follow, Mirror, MirrorBatch, MirrorStatistics, follow
from etcd_aio.observing import ConnectivityState, EndpointStatistics, StreamStatistics
from etcd_aio.once import ExactlyOnce
from etcd_aio.recipes import (
    Barrier,
    Counter,
    DeadJob,
    DoubleBarrier,
    Group,
    GroupMember,
    GroupView,
    HashRing,
    IdAllocator,
    Item,
    Job,
    Membership,
    OptimisticResult,
    PriorityQueue,
    Queue,
    Schedule,
    StmResult,
    Tick,
    Transaction,
    Worker,
    WorkQueue,
)
from etcd_aio.services import Endpoints, Registration, ServiceChange, ServiceEndpoint, naming
from etcd_aio.store import Ordered
from etcd_aio.transport import create_engine

R = TypeVar("R")


class HasId:
    """Whatever has an id may stand where a lease is wanted."""

    id: int = 1


def stores(client: Client) -> tuple[Store, Writer]:
    store: Store = client
    return store, store


async def count(tx: Transaction) -> int:
    assert_type(await tx.get("a"), KeyValue | None)
    assert_type(await tx.get_all(["a", b"b"]), Mapping[bytes, KeyValue | None])
    assert_type(await tx.range(prefix="a"), tuple[KeyValue, ...])
    tx.put("a", 1)  # type: ignore[arg-type]
    return 1


async def tick_work(tick: Tick) -> int:
    assert_type((tick.time, tick.newest_condition()), tuple[datetime, Compare])
    return 1


async def recipes(client: Client) -> None:
    assert_type(await client.stm(count), StmResult[int])
    assert_type((await client.namespace("a/").stm(count, isolation="serializable")).value, int)
    await client.stm(count, isolation="snapshot")  # type: ignore[arg-type]
    await client.stm(lambda tx: 7)  # type: ignore[arg-type, return-value]
    for store in (client, client.namespace("a/")):
        assert_type(await Counter(store, "n").add(), int)
        assert_type(await IdAllocator(store, "n").next(), int)
        assert_type(await Barrier(store, "n").hold(lease=HasId()), bool)
        async with DoubleBarrier(store, "n", count=2) as barrier:
            assert_type(barrier, DoubleBarrier)
        assert_type(await Queue(store, "n").put_all(["a", b"b"]), list[bytes])
        assert_type(await PriorityQueue(store, "n").get(), Item)
        await Queue(store, "n").put("a", 7)  # type: ignore[call-arg]
        async for item in Queue(store, "n"):
            assert_type(item, Item)
        jobs = WorkQueue(store, "n")
        assert_type(await jobs.put("a", id="i"), bytes)
        assert_type(await jobs.dead(), tuple[DeadJob, ...])
        async with jobs.worker() as worker:
            assert_type(worker, Worker)
            async for job in worker:
                assert_type(job, Job)
                await job.complete(op.put("a", "b"), op.delete("c"))
                await job.complete("a")  # type: ignore[arg-type]
        group = Group(store, "n")
        async with group.join("a", value="1") as membership, group.cache() as members, group.ring() as ring:
            assert_type(membership, Membership)
            assert_type((members.view, await anext(members.changes())), tuple[GroupView, GroupView])
            assert_type((ring.owner("k"), ring.assignment), tuple[GroupMember, HashRing])
            assert_type(await anext(ring.changes()), HashRing)
        schedule = Schedule(store, "n", every=60, catch_up="last")
        Schedule(store, "n", every=60, catch_up="first")  # type: ignore[arg-type]
        assert_type(await schedule.last(), datetime | None)
        await schedule.run(tick_work)


async def namespaces(client: Client) -> None:
    space = client.namespace("app/")
    assert_type(space, Store)
    assert_type(space.namespace(b"\xff"), Store)
    assert_type(space.key_space.prefix, bytes)
    store: Store = space
    writer: Writer = space
    assert_type((store.leases, writer.txn()), tuple[Leases, Txn])
    assert_type(await space.get("k"), KeyValue | None)
    assert_type(await space.do(op.range(all_keys=True)), RangeResult)
    assert_type(await space.do(op.put("k", "v")), PutResult)
    assert_type(await space.put("k", "v", if_missing=True), PutResult | None)
    assert_type(await space.update("k", lambda value: b"v"), KeyValue)
    assert_type((await space.delete("k", prev_kv=True)).to_dict(strip_prefix="a"), dict[str, str])
    assert_type(space.scan(all_keys=True, page_size=1), Scan)
    assert_type(space.watch(prefix="p", max_pending=1, fragment=True), Watcher)
    assert_type(space.lease(10), Lease)
    assert_type(await space.leases.time_to_live(1, keys=True), LeaseTimeToLiveResult)
    assert_type(await space.versions(), tuple[EndpointVersions, ...])
    assert_type(space.lock("l"), Lock)
    assert_type(space.rwlock("l").reading(), ReadLock)
    assert_type(space.semaphore("s", limit=1), Semaphore)
    assert_type(space.election("e"), Election)
    assert_type(space.session(), Session)
    assert_type(space.exactly_once(), ExactlyOnce)
    await space.compact(1)  # type: ignore[attr-defined]
    space.namespace(1)  # type: ignore[arg-type]
    await space.do("get k")  # type: ignore[arg-type]
    Client(namespace=b"app/")
    Client.from_env(namespace="app/")
    Client(namespace=1)  # type: ignore[arg-type]


def not_stores(writer: Writer) -> Iterator[Store]:
    yield writer  # type: ignore[misc]
    yield HasId()  # type: ignore[misc]


async def leases(client: Client) -> None:
    async with client.lease(10, id=7, on_lost="signal", timeout=None) as lease:
        assert_type(lease, Lease)
        assert_type((lease.id, lease.ttl, lease.remaining, lease.is_lost), tuple[int, int, float, bool])
        assert_type(await lease.lost(), LeaseLostError | None)
        assert_type(await lease.keep_alive_once(timeout=1), LeaseKeepAliveResult)
        await client.put("k", "v", lease=lease)
        assert_type(await lease.revoke(), LeaseRevokeResult)
    client.lease(10, on_lost="ignore")  # type: ignore[arg-type]
    client.lease(2.5)  # type: ignore[arg-type]

    granted = await client.leases.grant(10, 7, timeout=1, retry="never")
    assert_type(granted, LeaseGrantResult)
    assert_type((granted.header, granted.id, granted.ttl), tuple[Header, int, int])
    found = await client.leases.time_to_live(granted, keys=True)
    assert_type(found, LeaseTimeToLiveResult)
    assert_type((found.granted_ttl, found.is_expired, found.keys), tuple[int, bool, tuple[bytes, ...]])
    assert_type(await client.leases.keep_alive_once(granted.id), LeaseKeepAliveResult)
    assert_type((await client.leases.list()).ids, tuple[int, ...])
    assert_type(await client.leases.revoke(HasId()), LeaseRevokeResult)


async def clusters(client: Client) -> None:
    listing = await client.cluster.members(serializable=True, timeout=1, retry="never")
    assert_type(listing, MemberListResult)
    for member in listing:
        assert_type(member, Member)
        assert_type((member.id, member.name, member.peer_urls), tuple[int, str, tuple[str, ...]])
        assert_type((member.client_urls, member.is_learner, member.is_started), tuple[tuple[str, ...], bool, bool])
        member.name = ""  # type: ignore[misc]
    added = await client.cluster.add_learner("http://m:2380")
    assert_type(added, MemberAddResult)
    assert_type((added.member, added.members), tuple[Member, tuple[Member, ...]])
    assert_type(await client.cluster.remove(added.member), MemberRemoveResult)
    await client.cluster.add(["http://m:2380"], timeout=None)
    await client.cluster.update(7, ("http://m:2380",))
    await client.cluster.promote(7)
    await client.cluster.remove("m")  # type: ignore[arg-type]
    await client.cluster.add(7)  # type: ignore[arg-type]


async def maintenance(client: Client, path: Path) -> None:
    status = await client.maintenance.status("m:2379", timeout=1)
    assert_type(status, StatusResult)
    assert_type((status.is_leader, status.errors, status.db_size), tuple[bool, tuple[str, ...], int])
    assert_type(status.downgrade_info, DowngradeInfo | None)
    await client.maintenance.status()  # type: ignore[call-arg]
    await client.maintenance.defragment("m:2379", timeout=60)
    assert_type((await client.maintenance.hash("m")).hash, int)
    assert_type(await client.maintenance.hash_kv("m", 5), HashKVResult)
    assert_type(await client.maintenance.alarms(), AlarmResult)
    disarmed = await client.maintenance.disarm("nospace", member=7)
    assert_type([one.alarm for one in disarmed.alarms], list[Alarm])
    await client.maintenance.disarm(Alarm.CORRUPT)
    assert_type(await client.maintenance.raise_alarm("nospace", 7), AlarmResult)
    await client.maintenance.disarm("none")  # type: ignore[arg-type]
    assert_type(await client.maintenance.move_leader(7), MoveLeaderResult)
    assert_type(await client.maintenance.downgrade(DowngradeAction.VALIDATE, "3.6.0"), DowngradeResult)
    await client.maintenance.downgrade("cancel")
    await client.maintenance.downgrade("begin")  # type: ignore[arg-type]
    snapshot = client.maintenance.snapshot("m", timeout=1)
    assert_type(snapshot, Snapshot)
    async for chunk in snapshot:
        assert_type(chunk, bytes)
    assert_type((snapshot.received, snapshot.size, snapshot.sha256), tuple[int, int, str])
    await snapshot.aclose()
    saved = await client.maintenance.save_snapshot(path, endpoint="m", on_progress=lambda done, size: done / size)
    assert_type(saved, SavedSnapshot)
    await client.maintenance.save_snapshot(7)  # type: ignore[arg-type]


async def calls(client: Client, lease: HasId) -> None:
    kv = await client.get("k", revision=1, serializable=True, keys_only=True, timeout=None, retry="never")
    assert_type(kv, KeyValue | None)
    kv.value  # type: ignore[union-attr] # noqa: B018
    if kv is not None:
        assert_type(kv.key, bytes)
        assert_type(kv.value, bytes)
        assert_type(kv.text(), str)
        assert_type((kv.create_revision, kv.mod_revision, kv.version, kv.lease), tuple[int, int, int, int])
        kv.value = b""  # type: ignore[misc]

    found = await client.range(prefix=b"p", limit=1, sort_by="mod_revision", sort_order=SortOrder.DESCEND, timeout=0.5)
    assert_type(found, RangeResult)
    assert_type(found[0], KeyValue)
    assert_type(found[1:], tuple[KeyValue, ...])
    assert_type([one for one in found], list[KeyValue])  # noqa: C416
    assert_type((len(found), found.more, found.count, found.revision), tuple[int, bool, int, int])
    assert_type(found.header, Header)
    assert_type(found.to_dict(strip_prefix="p/"), dict[str, str])
    assert_type(found.to_bytes_dict(), dict[bytes, bytes])
    sequence: Sequence[KeyValue] = found
    assert_type(sequence.index(found[0]), int)
    await client.range("a", range_end=bytearray(b"b"), sort_by=SortBy.KEY)
    await client.range(from_key=memoryview(b"a"))
    await client.range(all_keys=True, count_only=True, min_mod_revision=1, max_create_revision=2)

    put = await client.put("k", b"v", lease=lease, prev_kv=True)
    assert_type(put, PutResult)
    assert_type(put.prev_kv, KeyValue | None)
    assert_type(put.revision, int)
    assert_type(await client.put("k", "v", lease=7, retry="always"), PutResult)
    assert_type(await client.put("k", ignore_value=True, ignore_lease=True), PutResult)

    gone = await client.delete(prefix="p", prev_kv=True)
    assert_type(gone, DeleteResult)
    assert_type((gone.deleted, gone.revision), tuple[int, int])
    assert_type(gone.prev_kvs, tuple[KeyValue, ...])
    assert_type(await client.compact(5, physical=True), CompactResult)


async def refused_calls(client: Client) -> None:
    await client.get(7)  # type: ignore[arg-type]
    await client.get("k", limit=1)  # type: ignore[call-arg]
    await client.get("k", retry="sometimes")  # type: ignore[arg-type]
    await client.get("k", timeout="1")  # type: ignore[arg-type]
    await client.range("a", "b")  # type: ignore[call-arg]
    await client.range("a", sort_by="size")  # type: ignore[arg-type]
    await client.put("k")  # type: ignore[call-overload]
    await client.put("k", 7)  # type: ignore[call-overload]
    await client.put("k", "v", ignore_value=True)  # type: ignore[call-overload]
    await client.put("k", "v", lease="1")  # type: ignore[call-overload]


async def scans(client: Client) -> None:
    scan = client.scan(prefix="p", page_size=10, revision=1, keys_only=True, serializable=True, timeout=1, retry="safe")
    assert_type(scan, Scan)
    assert_type(scan.revision, int)
    async for kv in scan:
        assert_type(kv, KeyValue)
    assert_type(await anext(scan), KeyValue)
    assert_type([kv.key async for kv in client.scan(all_keys=True)], list[bytes])
    pages = client.scan("a", range_end="b").pages()
    assert_type(pages, ScanPages)
    async for page in pages:
        assert_type(page, RangeResult)
    await scan.aclose()
    await scan  # type: ignore[misc]
    for _ in scan:  # type: ignore[attr-defined]
        pass


async def watches(client: Client) -> None:
    watcher = client.watch(prefix="p", start_revision=1, prev_kv=True, filters=["no_put", WatchFilter.NO_DELETE])
    assert_type(watcher, Watcher)
    async with client.watch("k", on_compaction="resync", max_outage=3, timeout=None) as entered:
        assert_type(entered, Watcher)
        async for event in entered:
            assert_type(event, Event)
            assert_type((event.type, event.is_put, event.is_delete), tuple[EventType, bool, bool])
            assert_type((event.key, event.value, event.revision, event.is_resync), tuple[bytes, bytes, int, bool])
            assert_type((event.kv, event.prev_kv), tuple[KeyValue, KeyValue | None])
            event.kv = event.kv  # type: ignore[misc]
        async for batch in entered.batches():
            assert_type(batch, WatchBatch)
            assert_type((batch[0], batch[1:], batch.revision), tuple[Event, tuple[Event, ...], int])
        assert_type(entered.revision, int)
        assert_type(entered.statistics(), WatchStatistics)
        await entered.request_progress()
    client.watch("k", filters=["no_puts"])  # type: ignore[list-item]
    client.watch("k", on_compaction="ignore")  # type: ignore[arg-type]
    client.watch("a", "b")  # type: ignore[call-arg]
    await watcher  # type: ignore[misc]


def compares(lease: HasId) -> None:
    key = Key("k")
    assert_type(key.version == 1, Compare)
    assert_type(key.version != 1, Compare)
    assert_type(key.create_revision < 1, Compare)
    assert_type(key.mod_revision > 1, Compare)
    assert_type(key.value == "text", Compare)
    assert_type(key.value != b"bytes", Compare)
    assert_type(key.lease == 1, Compare)
    assert_type(key.lease == lease, Compare)
    assert_type(key.exists, Compare)
    assert_type(key.missing, Compare)
    assert_type((key.version == 1).keys, KeyRange)
    for several in (Key("a", range_end=b"b"), Key(prefix="p/"), Key(from_key="a"), Key(all_keys=True)):
        assert_type(several, Key)
    key.version <= 1  # type: ignore[operator] # noqa: B015
    key.version >= 1  # type: ignore[operator] # noqa: B015
    key.version > "1"  # type: ignore[operator] # noqa: B015
    key.value < 1  # type: ignore[operator] # noqa: B015


def after_a_truth_value(key: Key) -> int:  # type: ignore[return] # noqa: RET503 - the end is reachable
    if key.exists:
        return 1


def collected(client: Client) -> Txn:
    found: list[Op] = []
    found.append(op.put("k", "v"))
    found.append(op.delete("k"))
    return client.txn().then(*found)


def operations(lease: HasId) -> list[Op]:
    assert_type(op.put("k", "v", lease=lease, prev_kv=True), PutOp)
    assert_type(op.put("k", ignore_value=True), PutOp)
    assert_type(op.get("k", revision=1), GetOp)
    assert_type(op.range(prefix="p", limit=1, sort_by="value"), RangeOp)
    assert_type(op.delete("a", range_end="b"), DeleteOp)
    assert_type(op.txn(when=[Key("k").missing], then=[op.put("k", "v")], otherwise=(op.get("k"), op.txn())), TxnOp)
    op.put("k")  # type: ignore[call-overload]
    op.get("k", timeout=1)  # type: ignore[call-arg]
    op.txn(then=op.get("k"))  # type: ignore[arg-type]
    return [op.put("k", "v"), op.get("k"), op.range(all_keys=True), op.delete("k"), op.txn()]


async def done(client: Client, any_operation: Op) -> None:
    assert_type(await client.do(op.put("k", "v"), timeout=1.0, retry="never"), PutResult)
    assert_type(await client.do(op.get("k")), KeyValue | None)
    assert_type(await client.do(op.range(prefix="p")), RangeResult)
    assert_type(await client.do(op.delete("k")), DeleteResult)
    assert_type(await client.do(op.txn()), TxnResult)
    assert_type(await client.do(any_operation), PutResult | KeyValue | RangeResult | DeleteResult | TxnResult | None)
    await client.do("k")  # type: ignore[arg-type]


class Recorded(Client):
    async def do(self, operation: Operation[R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> R:
        return await super().do(operation, timeout=timeout, retry=retry)

    async def announce(self, key: KeyLike, value: ValueLike, lease: LeaseLike, *, timeout: Timeout = UNSET) -> None:
        await self.put(key, value, lease=lease, timeout=timeout)


async def txns(client: Client) -> None:
    txn = client.txn().when(Key("k").exists, Key("k").version < 3).then(op.get("k"), op.txn()).otherwise()
    assert_type(txn, Txn)
    result = await txn.commit(timeout=1.0, retry="always")
    assert_type(result, TxnResult)
    assert_type((result.succeeded, bool(result), result.revision), tuple[bool, bool, int])
    get, range_, put, delete = op.get("k"), op.range(prefix="p"), op.put("k", "v"), op.delete("k")
    assert_type(result[get], KeyValue | None)
    assert_type(result[range_], RangeResult)
    assert_type(result[put], PutResult)
    assert_type(result[delete], DeleteResult)
    assert_type(result[op.txn(then=[get])][get], KeyValue | None)
    result[0]  # type: ignore[index]
    for response in result.responses:
        assert_type(response, PutResult | DeleteResult | RangeResult | TxnResult | KeyValue | None)
        match response:
            case PutResult():
                assert_type(response.prev_kv, KeyValue | None)
            case DeleteResult():
                assert_type(response.deleted, int)
            case RangeResult():
                assert_type(response.kvs, tuple[KeyValue, ...])
            case TxnResult():
                assert_type(response.succeeded, bool)
            case KeyValue():
                assert_type(response.value, bytes)
            case None:
                pass
    client.txn().when(True)  # type: ignore[arg-type]
    await client.txn()  # type: ignore[misc]
    client.txn().then(Key("k").exists)  # type: ignore[arg-type]
    client.txn().then([op.get("k")])  # type: ignore[arg-type]


async def clients() -> None:
    async with Client("a,b", timeout=None, policy="round_robin", retry="never", retry_policy=RetryPolicy()) as client:
        assert_type(client, Client)
        assert_type(client.endpoints, tuple[str, ...])
        assert_type(client.statistics(), tuple[EndpointStatistics, ...])
        assert_type(client.statistics()[0].state, ConnectivityState)
        assert_type(client.statistics()[0].last_error, BaseException | None)
        assert_type(client.streams(), tuple[StreamStatistics, ...])
        assert_type(client.streams()[0].last_error, EtcdError | None)
        client.set_endpoints(["a", "b"])
        await client.wait_ready(timeout=1)
    Client(["a"], policy=lambda candidates: candidates[0])
    assert_type(await Client().connect(), Client)
    Client(retry="sometimes")  # type: ignore[arg-type]
    Client(policy="random")  # type: ignore[arg-type]
    Client(engine="grpcio")  # type: ignore[arg-type]
    Client(engine=lambda options: create_engine("native", options))
    Client(engine=lambda options: options)  # type: ignore[arg-type, return-value]
    Client(None, None)  # type: ignore[call-arg]
    with client:  # type: ignore[attr-defined]
        pass


async def discovery(client: Client, environ: Mapping[str, str]) -> None:
    assert_type(await client.sync(timeout=None), tuple[str, ...])
    found = await client.versions(timeout=1.5)
    assert_type(found, tuple[EndpointVersions, ...])
    assert_type((found[0].server, found[0].cluster, found[0].error), tuple[str, str, EtcdError | None])
    assert_type(found[0].server_version, tuple[int, int, int])
    assert_type(Client.from_url("etcd://m1", timeout=None, auto_sync=30), Client)
    assert_type(Client.from_env(environ, retry="never"), Client)
    Client(discovery_srv="example.com", discovery_srv_name="dev", reject_old_cluster=True)
    Client("m1", proxy="environment")
    Client.from_url("etcd://m1", proxy=None)
    Client("m1", proxy=b"http://p")  # type: ignore[arg-type]
    Client.from_url("etcd://m1", timeout="3s")  # type: ignore[arg-type]
    Client.from_url("etcd://m1", endpoints="m2")  # type: ignore[call-arg]


def errors(error: EtcdError) -> None:
    assert_type(error.code, StatusCode | None)
    assert_type((error.message, error.endpoint), tuple[str, str])
    assert_type((error.maybe_applied, error.retryable), tuple[bool, bool])
    assert_type(error.attempts, tuple[Attempt, ...])
    assert_type(error.attempts[0].delivery, Delivery)
    assert_type(error.attempts[0].seconds, float)
    if isinstance(error, NoAvailableEndpointsError):
        assert_type(error.errors, Mapping[str, BaseException])
    elif isinstance(error, CompactedError):
        assert_type(error.compact_revision, int)
    elif isinstance(error, ServerError):
        assert_type(error.is_definite, bool)


def builtins_that_fit() -> None:
    """Each is also the builtin error that callers may know."""
    timeout: TimeoutError = EtcdTimeoutError()
    value: ValueError = InvalidRequestError()
    key: KeyError = KeyNotFoundError()
    connection: ConnectionError = NoAvailableEndpointsError()
    wrong: OSError = InvalidRequestError()  # type: ignore[assignment]
    del timeout, value, key, connection, wrong


def words(by: Literal["key", "value"], order: Literal["ascend"]) -> RangeOp:
    return op.range(prefix="p", sort_by=by, sort_order=order)


def tls() -> None:
    Client(tls=TLS(ca="ca.pem"))
    Client(tls=TLS(ca=Path("ca"), cert="c.pem", key=Path("k.pem"), key_password=lambda: b"secret", server_name="etcd"))
    Client(tls="ca.pem")  # type: ignore[arg-type]
    TLS("ca.pem")  # type: ignore[call-arg]


async def auths(client: Client) -> None:
    auth = client.auth
    assert_type(await auth.enable(timeout=1, retry="never"), AuthResult)
    assert_type(await auth.status(), AuthStatus)
    assert_type((await auth.authenticate("web", "c4n4ry")).token, str)
    await auth.user_add("web")
    assert_type((await auth.user_get("web")).roles, tuple[str, ...])
    for name in await auth.user_list():
        assert_type(name, str)
    await auth.role_grant_permission("app", "k", permission=Permission.READ)
    await auth.role_grant_permission("app", prefix="app/", permission="readwrite")
    await auth.role_grant_permission("app", prefix="app/", permission="rw")  # type: ignore[arg-type]
    await auth.role_grant_permission("app", prefix="app/")  # type: ignore[call-arg]
    (granted,) = (await auth.role_get("app")).permissions
    assert_type(granted.permission, Permission)


async def give_token() -> str:
    return "c4n4ry"


def credentials() -> None:
    Client(auth=("web", "c4n4ry"), allow_insecure_auth=True)
    Client(token="c4n4ry", allow_insecure_auth=True)
    Client(token=give_token, allow_insecure_auth=True)
    Client(auth="web:c4n4ry")  # type: ignore[arg-type]


async def locks(client: Client) -> None:
    assert_type(client.lock("a", ttl=5, timeout=1.0, value=b"v", margin=0.5, on_lost="signal", reentrant=True), Lock)
    client.lock("a", on_lost="explode")  # type: ignore[arg-type]
    client.lock("a", ttl="5")  # type: ignore[arg-type]
    async with client.lock("a") as lock:
        assert_type(lock, Lock)
        assert_type(lock.fencing_token, int)
        assert_type(lock.fenced, Writer)
        assert_type(lock.fenced_by(client), Writer)
        assert_type(lock.held_condition(), Compare)
        assert_type(await lock.lost(), LockLostError | None)
        assert_type(await lock.contenders(), tuple[Contender, ...])
        assert_type(await lock.try_acquire(), bool)
        assert_type(await lock.fenced.put("k", "v"), PutResult)
        assert_type(await lock.fenced.txn().then(op.get("k")).commit(), TxnResult)
    assert_type(client.rwlock("a"), RWLock)
    async with client.rwlock("a").reading(timeout=1) as reader, client.rwlock("a").writing() as writer:
        assert_type(reader, ReadLock)
        assert_type(writer, WriteLock)
    async with client.semaphore("a", limit=3, permits=2) as permit:
        assert_type(permit, Semaphore)
    client.semaphore("a")  # type: ignore[call-arg]
    async with client.session(ttl=5) as session:
        assert_type(session, Session)
        assert_type(session.lock("a"), Lock)
        assert_type(session.id, int)
        assert_type(session.orphan(), int)


async def elections(client: Client) -> None:
    election = client.election("scheduler", ttl=5)
    assert_type(election, Election)
    async with election.lead("host-1", timeout=1) as leadership:
        assert_type(leadership, Leadership)
        assert_type(leadership.fencing_token, int)
        assert_type(leadership.held_condition(), Compare)
        assert_type(await leadership.fenced.put("a", "b"), PutResult)
        assert_type(await leadership.lost(), LeadershipLostError | None)
    assert_type(await election.leader(), Leader | None)
    async with election.changes() as leaders:
        async for leader in leaders:
            assert_type(leader, Leader | None)

    async def work(leadership: Leadership) -> int:
        return leadership.fencing_token

    assert_type(await election.run(work), int)
    await election.run("work")  # type: ignore[arg-type]
    client.election("scheduler", on_lost="ignore")  # type: ignore[arg-type]


async def caches(client: Client) -> None:
    plain = client.cache(prefix="a/")
    assert_type(plain, Cache[KeyValue])
    assert_type(client.cache("a", range_end="b", keep_current=0.5, fallback=False, max_outage=5), Cache[KeyValue])
    decoded = client.cache(prefix="a/", decode=lambda value: int(value), on_error=lambda key, error: None)
    assert_type(decoded, Cache[int])
    assert_type(client.cache(all_keys=True, decode=bytes.decode), Cache[str])
    client.cache(prefix="a/", on_error=print)  # type: ignore[call-overload]
    client.cache(prefix="a/", decode=5)  # type: ignore[call-overload]
    async with plain as cache:
        assert_type(cache, Cache[KeyValue])
        assert_type(cache.get("a/1"), KeyValue | None)
        assert_type(cache["a/1"], KeyValue)
        assert_type(cache.range(prefix=b"a/"), dict[bytes, KeyValue])
    async with decoded as numbers:
        assert_type(numbers.get("a/1"), int | None)
        assert_type(numbers.get(b"a/1", "none"), int | str)
        assert_type(numbers["a/1"], int)
        assert_type("a/1" in numbers, bool)
        assert_type(len(numbers), int)
        assert_type(list(numbers), list[bytes])
        assert_type(numbers.range(), dict[bytes, int])
        assert_type(numbers.kv("a/1"), KeyValue | None)
        assert_type(await numbers.read("a/1", max_staleness=1), int | None)
        await numbers.wait_current(timeout=None)
        await numbers.wait_revision(5)
        assert_type(numbers.state, CacheState)
        assert_type((numbers.revision, numbers.age, numbers.keys), tuple[int, float, KeyRange])
        assert_type(numbers.statistics(), CacheStatistics)
        assert_type(numbers.changes(), CacheChanges)
        assert_type(numbers.batches(max_pending=1), CacheBatches)
        async for revision, changed in numbers.changes():
            assert_type(revision, int)
            assert_type(changed, dict[bytes, KeyValue | None])
        async for batch in numbers.batches():
            assert_type(batch, WatchBatch)
        numbers[5]  # type: ignore[index]
    await plain  # type: ignore[misc]


async def services(client: Client) -> None:
    async with client.register("svc", "a:1", metadata={"zone": ["a", 1, None]}, on_conflict="replace") as registration:
        assert_type(registration, Registration)
        assert_type((registration.is_registered, registration.revision), tuple[bool, int])
        assert_type((registration.error, await registration.lost()), tuple[EtcdError | None, EtcdError | None])
        await registration.update(metadata=None)
    client.register("svc", b"a:1")  # type: ignore[arg-type]
    client.register("svc", "a:1", metadata={1, 2})  # type: ignore[arg-type]
    client.register("svc", "a:1", on_conflict="fight")  # type: ignore[arg-type]
    async with client.resolve("svc", keep_current=1) as service:
        assert_type(service, Endpoints)
        assert_type(service.endpoints, tuple[ServiceEndpoint, ...])
        assert_type(await service.wait_endpoints(timeout=1), tuple[ServiceEndpoint, ...])
        assert_type(service.pick(lambda endpoints: endpoints[0]).address, str)
        async for change in service.changes():
            assert_type(change, ServiceChange)
        service.pick("first")  # type: ignore[arg-type]
        service.endpoints[0].address = ""  # type: ignore[misc]
    assert_type(await naming.update(client, "svc", add=["a:1"], remove=service.endpoints), TxnResult)


async def views(client: Client) -> None:
    view = client.ordered()
    assert_type(view, Ordered)
    store: Store = view
    assert_type(await store.get("k", serializable=True), KeyValue | None)
    assert_type((view.revision, view.statistics().repeated), tuple[int, int])
    view.revision = 7
    async with client.exactly_once() as once:
        kubernetes = client.kubernetes(writer=once)
    assert_type(await kubernetes.optimistic_put("k", "v", 7, lease=1, get_on_failure=True), OptimisticResult)
    assert_type((await kubernetes.list("p/", continue_key=b"p/a")).next_key, bytes | None)
    assert_type((await kubernetes.get("k")).kv, KeyValue | None)
    assert_type(await kubernetes.count("p/"), int)


async def mirrors(client: Client) -> None:
    copy = Mirror(client, client.namespace("app/"), prefix="a/", to_prefix=b"b/", checkpoint_key="c", takeover_delay=1)
    Mirror(client.ordered(), client, prefix="a/")
    Mirror(client, client)  # type: ignore[call-arg]
    Mirror(client, client, prefix=5)  # type: ignore[arg-type]
    assert_type(copy.statistics(), MirrorStatistics)
    assert_type((copy.statistics().error, copy.statistics().is_connected), tuple[EtcdError | None, bool])
    assert_type(copy.revision, int)
    assert_type(Checkpoint.parse(b"{}"), Checkpoint | None)
    await copy.wait_revision(5)
    async with follow(client, "a/", since=5, known={b"a/1": b"2"}) as batches:
        assert_type(batches, Follow)
        assert_type((batches.revision, batches.pending, batches.is_connected), tuple[int, int, bool])
        async for batch in batches:
            assert_type(batch, MirrorBatch)
            assert_type((batch.changes, batch.is_base), tuple[tuple[Event, ...], bool])
    follow(client, "a/", known=5)  # type: ignore[arg-type]
    await copy.run()


def applications() -> None:
    assert_type(QuartEtcd(None, "http://m1:2379", probes=False, ready="connected", read=False), QuartEtcd)
    assert_type(SanicEtcd(ready_timeout=1, shutdown_timeout=2.5, details=True), SanicEtcd)
    assert_type(EtcdPlugin("http://m1:2379", ready="lazy"), EtcdPlugin)
    QuartEtcd(ready="eager")  # type: ignore[arg-type]
    SanicEtcd(shutdown_timeout="3")  # type: ignore[arg-type]
    EtcdPlugin(timeout=3)  # type: ignore[call-arg]
