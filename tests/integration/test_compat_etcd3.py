"""The API of python-etcd3 on real servers: values, transactions, locks, leases, watches, members and errors."""

import asyncio
import hashlib
import io
import logging
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme
from anyio.from_thread import BlockingPortal, start_blocking_portal

from etcd_aio.compat import etcd3
from etcd_aio.compat.etcd3 import etcdrpc
from etcd_aio.compat.etcd3.events import DeleteEvent, PutEvent
from etcd_aio.compat.etcd3.exceptions import (
    ConnectionFailedError,
    ConnectionTimeoutError,
    PreconditionFailedError,
    RevisionCompactedError,
    RpcError,
    WatchTimedOut,
)
from etcd_aio.compat.etcd3.watch import WatchResponse
from etcd_aio.errors import ClientClosedError, InvalidRequestError
from etcd_aio.testing import EtcdCluster, EtcdServer, ServerTLS
from etcd_aio.testing.ports import free_ports
from tests.support.auth import QUICK_LOGINS, WEB, enable_auth
from tests.support.servers import QUICK_ELECTIONS
from tests.support.until import PATIENCE

pytestmark = pytest.mark.cluster


Etcd = etcd3.Etcd3Client


def connect(server: Any, **options: Any) -> Etcd:
    url = urlsplit(server.endpoint)
    return etcd3.client(host=url.hostname or "", port=url.port or 0, **options)


@pytest.fixture
def etcd(shared_server: EtcdServer) -> Iterator[Etcd]:
    with connect(shared_server) as client:
        yield client


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    """Runs servers of single tests."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture
def server(portal: BlockingPortal) -> Iterator[EtcdServer]:
    """A server for one test, which may stop it and change it."""
    with portal.wrap_async_context_manager(EtcdServer()) as server:
        yield server


def until(is_so: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)


def watch_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("etcd3_watch")]


# Reads and writes.


def test_a_value_is_put_read_and_deleted(etcd: Etcd, prefix: str) -> None:
    key = f"{prefix}ä"
    assert etcd.get(key) == (None, None)
    first = etcd.put(key, "1")
    assert (first.header.revision > 0, first.prev_kv.value) == (True, b"")
    assert etcd.put(key.encode(), b"\xff", prev_kv=True).prev_kv.value == b"1"
    value, metadata = etcd.get(key)
    assert metadata is not None
    assert (value, metadata.key, metadata.version, metadata.lease_id) == (b"\xff", key.encode(), 2, 0)
    assert metadata.create_revision == first.header.revision < metadata.mod_revision
    assert metadata.response_header.cluster_id == first.header.cluster_id != 0
    assert etcd.delete(key) is True
    assert etcd.delete(key) is False


def test_a_delete_returns_its_response(etcd: Etcd, prefix: str) -> None:
    etcd.put(f"{prefix}a", "1")
    deleted = etcd.delete(f"{prefix}a", prev_kv=True, return_response=True)
    assert isinstance(deleted, etcdrpc.DeleteRangeResponse)
    assert (deleted.deleted, [kv.value for kv in deleted.prev_kvs]) == (1, [b"1"])
    for name in "abc":
        etcd.put(prefix + name, name)
    assert etcd.delete_prefix(prefix).deleted == 3
    with pytest.raises(ValueError, match="every key"):
        etcd.delete_prefix("")


def test_ranges_have_order_and_bounds(etcd: Etcd, prefix: str) -> None:
    revisions = [etcd.put(prefix + name, value).header.revision for name, value in zip("abcd", "3142", strict=True)]

    def names(**options: Any) -> str:
        return "".join(chr(metadata.key[-1]) for _, metadata in etcd.get_prefix(prefix, **options))

    assert names() == names(sort_order="ascend") == names(sort_target=None) == "abcd"
    assert names(sort_order="descend") == "dcba"
    assert names(sort_order="ascend", sort_target="value") == names(sort_target="value") == "bdac"
    assert names(sort_order="descend", sort_target="mod") == "dcba"
    assert names(limit=2) == names(revision=revisions[1]) == "ab"
    assert names(min_mod_revision=revisions[2], max_create_revision=revisions[2]) == "c"
    assert [value for value, _ in etcd.get_prefix(prefix, keys_only=True)] == [b""] * 4
    response = etcd.get_prefix_response(prefix, count_only=True, serializable=True)
    assert (response.count, response.kvs) == (4, [])
    found = etcd.get_range(f"{prefix}b", f"{prefix}d", sort_order="ascend")
    assert [value for value, _ in found] == [b"1", b"4"]
    assert prefix.encode() + b"a" in {metadata.key for _, metadata in etcd.get_all(keys_only=True)}
    assert etcd.get_all_response().count >= 4


def test_ranges_check_their_options(etcd: Etcd) -> None:
    with pytest.raises(TypeError, match="Don't use key or range_end"):
        etcd.get_prefix("a", range_end="b")
    with pytest.raises(ValueError, match="sort_order"):
        etcd.get_prefix("a", sort_order="up")
    with pytest.raises(ValueError, match="sort_target"):
        next(etcd.get_range("a", "b", sort_target="size"))
    with pytest.raises(TypeError, match="unexpected keyword"):
        etcd.get("a", consistent=True)
    with pytest.raises(AttributeError, match="encode"):
        etcd.put("a", 3)  # type: ignore[arg-type] # wrong on purpose


def test_prefixes_that_end_in_the_highest_byte(etcd: Etcd, prefix: str) -> None:
    first = prefix.encode() + b"\xff"
    etcd.put(first + b"\xff", "in")
    assert [value for value, _ in etcd.get_prefix(first)] == [b"in"]
    assert len(list(etcd.get_prefix(""))) == len(list(etcd.get_all()))
    assert etcd.delete_prefix(first).deleted == 1


# Transactions.


def test_a_transaction_has_its_branch_and_its_responses(etcd: Etcd, prefix: str) -> None:
    tx, key = etcd.transactions, f"{prefix}a"
    etcd.put(key, "1")
    succeeded, responses = etcd.transaction(
        compare=[tx.value(key) == "1", tx.version(key) > 0, tx.mod(key) != 0, tx.create(key) < 2**60],
        success=[tx.put(key, "2", prev_kv=True), tx.get(key), tx.get(prefix, f"{prefix}z"), tx.delete(f"{prefix}no")],
        failure=[],
    )
    put, got, ranged, deleted = responses
    assert succeeded is True
    assert (put.response_put.prev_kv.value, put.WhichOneof("response")) == (b"1", "response_put")
    assert [(value, metadata.version) for value, metadata in got] == [(b"2", 2)]
    assert got[0][1].response_header.revision == put.response_put.header.revision
    assert len(ranged) == 1
    assert deleted.response_delete_range.deleted == 0
    succeeded, responses = etcd.transaction([tx.version(key) == 1], [tx.put(key, "3")], [tx.get(key)])
    assert (succeeded, responses[0][0][0]) == (False, b"2")


def test_a_transaction_in_a_transaction(etcd: Etcd, prefix: str) -> None:
    tx = etcd.transactions
    inner = tx.txn(compare=[tx.create(f"{prefix}b") == 0], success=[tx.put(f"{prefix}b", "2")], failure=[])
    _, (_, outcome) = etcd.transaction([], [tx.put(f"{prefix}a", "1"), inner], [])
    assert outcome.response_txn.succeeded
    assert outcome.response_txn.responses[0].response_put.header.revision > 0
    assert [value for value, _ in etcd.get_prefix(prefix)] == [b"1", b"2"]


def test_conditions_of_a_range(etcd: Etcd, prefix: str) -> None:
    tx = etcd.transactions
    etcd.put(f"{prefix}a", "1")
    etcd.put(f"{prefix}b", "2")
    end = etcd3.utils.increment_last_byte(prefix.encode())
    assert etcd.transaction([tx.value(prefix, end) == "1"], [], [])[0] is False
    etcd.put(f"{prefix}b", "1")
    assert etcd.transaction([tx.value(prefix, end) == "1"], [], [])[0] is True
    assert etcd.transaction([tx.version(prefix, "\0") > 0], [], [])[0] is True


def test_a_transaction_checks_what_it_is_given(etcd: Etcd) -> None:
    with pytest.raises(TypeError, match="put, get, delete and txn, got str"):
        etcd.transaction([], ["put"], [])
    with pytest.raises(TypeError, match="not iterable"):
        etcd.transaction([])
    with pytest.raises(ValueError, match="operators"):
        etcd.transaction([etcd.transactions.value("a")], [], [])


def test_put_if_not_exists_and_replace(etcd: Etcd, prefix: str) -> None:
    key = f"{prefix}a"
    assert etcd.replace(key, "1", "2") is False
    assert etcd.put_if_not_exists(key, "1") is True
    assert etcd.put_if_not_exists(key, "2") is False
    assert etcd.replace(key, "0", "2") is False
    assert etcd.replace(key, "1", "2") is True
    assert etcd.get(key)[0] == b"2"


def test_one_of_many_threads_replaces_a_value(etcd: Etcd, prefix: str) -> None:
    key = f"{prefix}a"
    etcd.put(key, "0")
    won: queue.SimpleQueue[int] = queue.SimpleQueue()

    def race(number: int) -> None:
        if etcd.replace(key, "0", str(number)):
            won.put(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(1, 17)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert etcd.get(key)[0] == str(won.get(timeout=PATIENCE)).encode()
    assert won.empty()


def test_messages_are_sent_by_the_stub(etcd: Etcd, prefix: str) -> None:
    key, stub = prefix.encode(), etcd.kvstub
    stub.Put(etcdrpc.PutRequest(key=key, value=b"1"), timeout=5, metadata=etcd.metadata)
    assert stub.Range(etcdrpc.RangeRequest(key=key)).kvs[0].value == b"1"
    request = etcdrpc.RequestOp(request_delete_range=etcdrpc.DeleteRangeRequest(key=key))
    txn = stub.Txn(etcdrpc.TxnRequest(success=[request]))
    deleted = txn.responses[0].response_delete_range
    assert deleted is not None
    assert (deleted.deleted, deleted.prev_kvs) == (1, [])
    with pytest.raises(RpcError) as raised:
        stub.Range(etcdrpc.RangeRequest())
    assert raised.value.code().name == "INVALID_ARGUMENT"


# Leases.


def test_a_lease_ends_unless_it_is_refreshed(etcd: Etcd, prefix: str) -> None:
    lease = etcd.lease(5)
    assert lease.keys == []
    etcd.put(f"{prefix}a", "1", lease=lease)
    etcd.put_if_not_exists(f"{prefix}b", "2", lease=lease.id)
    assert sorted(lease.keys) == [f"{prefix}a".encode(), f"{prefix}b".encode()]
    assert lease.remaining_ttl <= lease.granted_ttl == lease.ttl
    (renewed,) = lease.refresh()
    assert (lease.id, lease.ttl) == (renewed.ID, renewed.TTL)
    until(lambda: etcd.get(f"{prefix}a")[0] is None)
    assert lease.remaining_ttl == -1
    assert lease.refresh()[0].TTL == 0


def test_leases_have_ids_and_are_revoked(etcd: Etcd, prefix: str) -> None:
    lease = etcd.lease(60)
    with pytest.raises(PreconditionFailedError):
        etcd.lease(60, lease_id=lease.id)
    etcd.put(f"{prefix}a", "1", lease)
    lease.revoke()
    assert etcd.get(f"{prefix}a") == (None, None)
    with pytest.raises(RpcError, match="NOT_FOUND"):
        etcd.revoke_lease(lease.id)
    assert etcd.lease(60, lease_id=lease.id).id == lease.id
    etcd.revoke_lease(lease.id)


# Locks.


def leases(etcd: Etcd) -> set[int]:
    return set(etcd._client.leases.list().ids)


def test_two_clients_hold_a_lock_in_turn(etcd: Etcd, shared_server: EtcdServer, prefix: str) -> None:
    with connect(shared_server) as other:
        mine, theirs = etcd.lock(prefix, ttl=60), other.lock(prefix, ttl=60)
        assert mine.acquire() is True
        assert etcd.get(mine.key)[0] == mine.uuid
        before = leases(etcd)
        assert theirs.acquire(timeout=0) is False
        assert theirs.acquire(timeout=0.3) is False
        assert leases(etcd) <= before, "an attempt leaves no lease behind"
        assert (mine.is_acquired(), theirs.is_acquired(), theirs.release()) == (True, False, False)
        with pytest.raises(ValueError, match="acquire it first"):
            theirs.refresh()
        got: queue.SimpleQueue[bool] = queue.SimpleQueue()
        waiting = threading.Thread(target=lambda: got.put(theirs.acquire(timeout=PATIENCE)))
        waiting.start()
        time.sleep(0.2)
        assert mine.release() is True
        assert got.get(timeout=PATIENCE) is True
        waiting.join(PATIENCE)
        assert theirs.is_acquired()
        assert theirs.release() is True


def test_a_lock_is_not_reentrant_and_lost_without_refresh(etcd: Etcd, prefix: str) -> None:
    lock = etcd.lock(prefix, ttl=2)
    with lock as entered:
        assert entered is lock
        assert lock.acquire(0) is False
        assert lock.lease is not None, "it is still held"
        assert lock.lease.ttl == lock.refresh()[0].TTL
        assert lock.acquire(None) is True, "once its own key has expired"
        assert lock.is_acquired()
    assert lock.is_acquired() is False
    assert lock.acquire(0) is True
    until(lambda: not lock.is_acquired())
    assert lock.release() is False
    assert lock.refresh()[0].TTL == 0


def test_a_lock_that_is_lost_is_taken_by_who_waits(etcd: Etcd, prefix: str) -> None:
    lost, next_one = etcd.lock(prefix, ttl=2), etcd.lock(prefix, ttl=60)
    assert lost.acquire()
    assert next_one.acquire(timeout=PATIENCE) is True
    assert (lost.is_acquired(), lost.release(), next_one.release()) == (False, False, True)


# Watches.


def test_a_lock_looks_again_if_the_revisions_that_it_waits_for_are_compacted(
    etcd: Etcd, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, waiter = etcd.lock(prefix, ttl=60), etcd.lock(prefix, ttl=60)
    assert holder.acquire()

    def compacted(*arguments: object, **options: object) -> None:
        holder.release()
        raise RevisionCompactedError(7)

    monkeypatch.setattr(etcd, "watch_once", compacted)
    assert waiter.acquire()
    waiter.release()


def test_a_watch_whose_thread_does_not_start_is_cancelled(
    etcd: Etcd, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if thread.name.startswith("etcd3_watch"):
            raise KeyboardInterrupt
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        etcd.watch(prefix)
    assert not etcd.watcher._watches


def test_a_watch_that_is_interrupted_before_it_is_returned_ends_with_the_client(
    shared_server: EtcdServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    etcd = connect(shared_server)
    add = etcd.add_watch_callback

    def interrupted(*arguments: Any, **options: Any) -> None:
        add(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(etcd, "add_watch_callback", interrupted)
    with pytest.raises(KeyboardInterrupt):
        etcd.watch(prefix)
    (thread,) = (one for one in threading.enumerate() if one.name.startswith("etcd3_watch"))
    for number in range(110):  # more than it takes without being read
        etcd.put(prefix, str(number))
    etcd.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_watch_yields_events_until_it_is_cancelled(etcd: Etcd, prefix: str) -> None:
    events, cancel = etcd.watch_prefix(prefix, prev_kv=True)
    etcd.put(f"{prefix}a", "1")
    etcd.put(f"{prefix}a", "2")
    etcd.delete(f"{prefix}a")
    etcd.put(f"{prefix}b", "3")
    seen = []
    for event in events:
        seen.append((type(event), event.value, event.prev_value))
        if isinstance(event, DeleteEvent):
            cancel()
    assert seen == [(PutEvent, b"1", b""), (PutEvent, b"2", b"1"), (DeleteEvent, b"", b"2")]
    cancel()
    until(lambda: not watch_threads())


def test_a_cancel_ends_within_a_response(etcd: Etcd, prefix: str) -> None:
    tx = etcd.transactions
    events, cancel = etcd.watch_prefix(prefix)
    etcd.transaction([], [tx.put(prefix + name, name) for name in "abc"], [])
    assert next(events).key == f"{prefix}a".encode()
    cancel()
    assert list(events) == []


def test_responses_keep_revisions_together(etcd: Etcd, prefix: str) -> None:
    tx = etcd.transactions
    _, responses = etcd.transaction([], [tx.put(f"{prefix}a", "1"), tx.put(f"{prefix}b", "2")], [])
    revision = responses[0].response_put.header.revision
    iterator, cancel = etcd.watch_prefix_response(prefix, start_revision=revision)
    response = next(iterator)
    cancel()
    once = etcd.watch_prefix_once_response(prefix, timeout=PATIENCE, start_revision=revision)
    for found in (response, once):
        assert isinstance(found, WatchResponse)
        assert (found.header.revision, [event.value for event in found.events]) == (revision, [b"1", b"2"])
    assert etcd.watch_once(f"{prefix}b", timeout=PATIENCE, start_revision=revision).value == b"2"
    assert etcd.watch_prefix_once(prefix, timeout=PATIENCE, start_revision=revision).key == f"{prefix}a".encode()
    assert etcd.watch_once_response(f"{prefix}a", start_revision=revision).events[0].mod_revision == revision


def test_watches_have_filters_and_ranges(etcd: Etcd, prefix: str) -> None:
    revision = etcd.put(f"{prefix}a", "1").header.revision
    etcd.delete(f"{prefix}a")
    etcd.put(f"{prefix}b", "2")
    no_puts, _ = etcd.watch_prefix(prefix, start_revision=revision, filters=[0])
    no_deletes, _ = etcd.watch_prefix(prefix, start_revision=revision, filters=[1])
    interval, _ = etcd.watch(f"{prefix}b", range_end=f"{prefix}c", start_revision=revision)
    endless, _ = etcd.watch(f"{prefix}b", range_end="\0", start_revision=revision)
    assert next(no_puts).key == f"{prefix}a".encode()
    assert [event.value for event in islice(no_deletes, 2)] == [b"1", b"2"]
    assert next(interval).value == next(endless).value == b"2"


def test_a_watch_for_one_event_times_out_and_leaves_no_thread(etcd: Etcd, prefix: str) -> None:
    before = watch_threads()
    with pytest.raises(WatchTimedOut):
        etcd.watch_once(prefix, timeout=0.1)
    with pytest.raises(WatchTimedOut):
        etcd.watch_prefix_once_response(prefix, timeout=0)
    assert watch_threads() == before


def test_a_callback_runs_in_a_thread_of_its_own_and_may_fail(
    etcd: Etcd, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    called: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def callback(response: Any) -> None:
        called.put((threading.current_thread().name, response))
        raise LookupError("of the callback")

    first, second = (etcd.add_watch_prefix_callback(prefix, callback) for _ in range(2))
    with caplog.at_level(logging.ERROR, "etcd3.watch"):
        etcd.put(f"{prefix}a", "1")
        names = {called.get(timeout=PATIENCE)[0] for _ in range(2)}
        etcd.cancel_watch(second)
        etcd.put(f"{prefix}a", "2")
        name, response = called.get(timeout=PATIENCE)
        until(lambda: len(caplog.records) == 3)
    assert names == {f"etcd3_watch_{first}", f"etcd3_watch_{second}"}
    assert name == f"etcd3_watch_{first}", "the error has not ended the watch"
    assert response.events[0].value == b"2"
    assert {record.name for record in caplog.records} == {"etcd3.watch"}
    assert "LookupError: of the callback" in caplog.text
    etcd.cancel_watch(first)
    etcd.cancel_watch(12345)
    assert called.empty()


def test_a_callback_may_use_the_client_and_cancel_its_own_watch(etcd: Etcd, prefix: str) -> None:
    done: queue.SimpleQueue[object] = queue.SimpleQueue()

    def callback(response: Any) -> None:
        etcd.put(f"{prefix}copy", response.events[0].value)
        etcd.cancel_watch(watch_id)
        done.put(etcd.get(f"{prefix}copy")[0])

    watch_id = etcd.add_watch_callback(f"{prefix}a", callback)
    etcd.put(f"{prefix}a", "1")
    assert done.get(timeout=PATIENCE) == b"1"
    etcd.put(f"{prefix}a", "2")
    until(lambda: not watch_threads())
    assert done.empty()


def test_an_iterator_that_is_not_read_loses_nothing(etcd: Etcd, prefix: str) -> None:
    events, cancel = etcd.watch_prefix(prefix)
    for number in range(300):
        etcd.put(prefix, str(number))
    assert [int(event.value) for event in islice(events, 300)] == list(range(300))
    cancel()


def test_closing_the_client_ends_its_watches(shared_server: EtcdServer, prefix: str) -> None:
    etcd = connect(shared_server)
    waiting, _ = etcd.watch_prefix(prefix)
    unread, _ = etcd.watch_prefix(prefix)
    errors: list[Any] = []
    etcd.add_watch_callback(prefix, errors.append)
    ended: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
    reader = threading.Thread(target=lambda: ended.put(list(waiting)))
    reader.start()
    etcd.close()
    assert ended.get(timeout=PATIENCE) == list(unread) == []
    until(lambda: not watch_threads())
    assert errors == []
    etcd.close()
    with pytest.raises(ClientClosedError):
        etcd.get("a")


def test_a_compacted_start_is_told_at_the_first_step(server: EtcdServer) -> None:
    with connect(server) as etcd:
        for number in range(5):
            etcd.put("a", str(number))
        etcd.compact(4, physical=True)
        events, _ = etcd.watch("a", start_revision=1)
        with pytest.raises(RevisionCompactedError) as raised:
            next(events)
        assert raised.value.compacted_revision == 4
        told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        etcd.add_watch_callback("a", told.put, start_revision=1)
        assert told.get(timeout=PATIENCE).compacted_revision == 4
        with pytest.raises(RevisionCompactedError):
            etcd.watch_once("a", timeout=PATIENCE, start_revision=1)
        assert next(etcd.watch("a", start_revision=4)[0]).mod_revision == 4
        with pytest.raises(RpcError, match="OUT_OF_RANGE"):
            etcd.compact(4)


def test_a_watch_survives_a_restart_of_its_server(server: EtcdServer, portal: BlockingPortal) -> None:
    with connect(server) as etcd:
        events, _ = etcd.watch("a")
        etcd.put("a", "1")
        assert next(events).value == b"1"
        portal.call(server.restart)
        until(lambda: put_again(etcd, "a", "2"))
        assert next(events).value == b"2"


def put_again(etcd: etcd3.MultiEndpointEtcd3Client, key: str, value: str) -> bool:
    """Put what may be refused while a server starts."""
    try:
        etcd.put(key, value)
    except (ConnectionFailedError, ConnectionTimeoutError):
        return False
    return True


def test_a_watch_whose_server_is_gone_ends_with_an_error(
    server: EtcdServer, portal: BlockingPortal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd3.watch, "MAX_OUTAGE", 0.5)
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with connect(server) as etcd:
        events, _ = etcd.watch("a")
        etcd.add_watch_callback("a", told.put)
        portal.call(server.kill)
        with pytest.raises(ConnectionFailedError):
            next(events)
        assert told.get(timeout=PATIENCE).code().name == "UNAVAILABLE"
        assert list(events) == []
        until(lambda: not watch_threads())


# The cluster.


def test_maintenance_of_one_server(server: EtcdServer) -> None:
    with connect(server) as etcd:
        etcd.put("a", "1")
        (member,) = etcd.members
        assert (member.name, member.client_urls) == (server.name, [server.endpoint])
        assert str(member).startswith(f"Member {member.id}: peer urls: ['http://")
        status = etcd.status()
        assert (status.version, status.raft_term > 0, status.db_size > 0) == (server.version, True, True)
        assert status.leader is not None
        assert status.leader.id == member.id
        assert isinstance(etcd.hash(), int)
        etcd.defragment()
        saved = io.BytesIO()
        etcd.snapshot(saved)
        database, checksum = saved.getvalue()[:-32], saved.getvalue()[-32:]
        assert hashlib.sha256(database).digest() == checksum


def test_alarms(server: EtcdServer) -> None:
    with connect(server) as etcd:
        (member,) = etcd.members
        assert [alarm.member_id for alarm in etcd.create_alarm()] == [0]
        (alarm,) = etcd.create_alarm(member.id)
        assert (alarm.member_id, alarm.alarm_type) == (member.id, etcdrpc.NOSPACE)
        assert {alarm.member_id for alarm in etcd.list_alarms(alarm_type="no space")} == {0, member.id}
        assert [alarm.member_id for alarm in member.active_alarms] == [member.id]
        with pytest.raises(RpcError, match="RESOURCE_EXHAUSTED"):
            etcd.put("a", "1")
        assert [alarm.member_id for alarm in etcd.disarm_alarm(member.id)] == [member.id]
        assert len(etcd.disarm_alarm()) == 1
        assert list(etcd.list_alarms()) == []
        with pytest.raises(ValueError, match="alarm_type"):
            next(etcd.list_alarms(alarm_type="corrupt"))


def test_members_come_and_go(portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(EtcdCluster(size=3, **QUICK_ELECTIONS)) as cluster:
        portal.call(cluster.wait_healthy)
        with connect(cluster.members[0]) as etcd:
            until(lambda: add_again(etcd, "http://127.0.0.1:1"))
            (added,) = (member for member in etcd.members if member.peer_urls == ["http://127.0.0.1:1"])
            assert added.name == ""
            added.update(["http://127.0.0.1:2"])
            assert [one.peer_urls for one in etcd.members if one.id == added.id] == [["http://127.0.0.1:2"]]
            added.remove()
            assert len(list(etcd.members)) == 3
            with pytest.raises(RpcError, match="NOT_FOUND"):
                etcd.remove_member(added.id)


def add_again(etcd: Etcd, url: str) -> bool:
    """Add a member, which etcd refuses while it has not known the others for five seconds."""
    try:
        return etcd.add_member([url]).peer_urls == [url]
    except ConnectionFailedError:
        return False


def test_a_client_of_several_servers_outlives_one(portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(EtcdCluster(size=3, **QUICK_ELECTIONS)) as cluster:
        portal.call(cluster.wait_healthy)
        urls = [urlsplit(member.endpoint) for member in cluster.members]
        endpoints = [etcd3.Endpoint(url.hostname or "", url.port or 0, secure=False) for url in urls]
        with etcd3.MultiEndpointEtcd3Client(endpoints, timeout=10, failover=True) as etcd:
            assert set(etcd.endpoints) == {endpoint.netloc for endpoint in endpoints}
            events, _ = etcd.watch("a")
            etcd.put("a", "1")
            assert next(events).value == b"1"
            portal.call(cluster.members[0].kill)
            until(lambda: put_again(etcd, "a", "2"))
            assert next(events).value == b"2"
            assert etcd.status().version == cluster.members[1].version


# Errors.


def test_a_dead_server_fails_at_once(unused_port: int) -> None:
    with etcd3.client(host="127.0.0.1", port=unused_port) as etcd:
        for call in (
            lambda: etcd.get("a"),
            lambda: etcd.put("a", "1"),
            lambda: etcd.lease(5),
            lambda: next(etcd.members),
            lambda: etcd.watch("a"),
            lambda: etcd.watch_once("a"),
            lambda: etcd.lock("a").acquire(),
            etcd.status,
            etcd.hash,
            lambda: etcd.snapshot(io.BytesIO()),
        ):
            with pytest.raises(ConnectionFailedError, match="etcd connection failed") as raised:
                call()
            assert "refused" in str(raised.value.__cause__)


@pytest.fixture
def unused_port() -> int:
    return free_ports(1)[0]


def test_a_frozen_server_is_waited_for_until_the_timeout(server: EtcdServer) -> None:
    with connect(server, timeout=3) as etcd:
        etcd.put("a", "1")
        server.pause()
        try:
            with pytest.raises((ConnectionTimeoutError, ConnectionFailedError)):
                etcd.get("a")
            with pytest.raises((WatchTimedOut, ConnectionFailedError)):
                etcd.watch("a")
        finally:
            server.resume()
        until(lambda: put_again(etcd, "a", "2"))


def test_mistakes_of_the_program(etcd: Etcd, prefix: str) -> None:
    with pytest.raises(RpcError, match="INVALID_ARGUMENT"):
        etcd.put("", "1")
    with pytest.raises(InvalidRequestError):
        etcd.get_prefix_response(prefix, limit=-1)
    with pytest.raises(InvalidRequestError, match="before the first key"):
        etcd.watch("b", range_end="a")
    with pytest.raises(RpcError, match="NOT_FOUND"):
        etcd.put(f"{prefix}a", "1", lease=12345)


def test_calls_in_a_running_loop_block_it_as_those_of_python_etcd3(etcd: Etcd, prefix: str) -> None:
    async def program() -> bytes | None:
        etcd.put(f"{prefix}a", "1")
        return etcd.get(f"{prefix}a")[0]

    assert asyncio.run(program()) == b"1"


PROGRAM = """
import sys
import etcd3

with etcd3.client(host=sys.argv[1], port=int(sys.argv[2])) as client:
    client.put("smoke", "1")
    with client.lock("smoke", ttl=5) as lock:
        print(client.get("smoke")[0], lock.is_acquired())
    events, cancel = client.watch("smoke", start_revision=client.get("smoke")[1].mod_revision)
    for event in events:
        print(type(event).__name__, event.value)
        cancel()
    try:
        client.compact(2**40)
    except Exception as error:
        print(type(error).__name__, error.code().name)
print([name for name in ("google.protobuf", "grpc", "six", "tenacity") if sys.modules[name] is not None])
"""


def test_a_program_runs_unchanged_without_grpc_and_protobuf(shared_server: EtcdServer, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    blocked = "import sys; sys.modules.update(dict.fromkeys(('google.protobuf', 'grpc', 'six', 'tenacity')))"
    runner = "import runpy; runpy.run_module('etcd_aio.compat', run_name='__main__', alter_sys=True)"
    url = urlsplit(shared_server.endpoint)
    program = ["etcd3", "--", str(tmp_path / "program.py"), str(url.hostname), str(url.port)]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{blocked}; {runner}", *program],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == ["b'1' True", "PutEvent b'1'", "RpcError OUT_OF_RANGE", "[]"]


FORGETFUL = """
import sys, threading
from etcd_aio.compat import etcd3

client = etcd3.client(host=sys.argv[1], port=int(sys.argv[2]))
client.add_watch_prefix_callback("", lambda response: response.events)
events, cancel = client.watch("a")
threading.Thread(target=list, args=(events,), daemon=True).start()
client.put("a", "1")
client.lock("forgetful", ttl=5).acquire()
print("done")
"""


def test_a_program_that_closes_nothing_ends_in_silence(shared_server: EtcdServer) -> None:
    url = urlsplit(shared_server.endpoint)
    program = [sys.executable, "-c", FORGETFUL, str(url.hostname), str(url.port)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


FORKING = """
import os, sys
from etcd_aio.compat import etcd3
from etcd_aio.errors import ForkedError

client = etcd3.client(host=sys.argv[1], port=int(sys.argv[2]))
key = "forking"
client.put(key, "parent")
events, cancel = client.watch(key)
child = os.fork()
if not child:
    try:
        next(events)
    except ForkedError:
        cancel()
    own, cancel = client.watch(key)
    client.put(key, client.get(key)[0] + b" child")
    print(next(own).value, flush=True)
    client.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(next(events).value)
client.close()
"""


def test_a_forked_child_has_a_client_and_the_parent_its_watch(shared_server: EtcdServer) -> None:
    url = urlsplit(shared_server.endpoint)
    program = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, str(url.hostname), str(url.port)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("b'parent child'\n" * 2, "", 0)


# TLS and users.


def test_tls_with_files(portal: BlockingPortal, tmp_path: Path) -> None:
    authority = trustme.CA()
    own, ours = authority.issue_cert("127.0.0.1", "localhost"), authority.issue_cert("client@example.com")
    files = {name: tmp_path / name for name in ("ca.pem", "server.pem", "server.key", "client.pem", "client.key")}
    authority.cert_pem.write_to_path(files["ca.pem"])
    for name, leaf in (("server", own), ("client", ours)):
        leaf.cert_chain_pems[0].write_to_path(files[f"{name}.pem"])
        leaf.private_key_pem.write_to_path(files[f"{name}.key"])
        files[f"{name}.key"].chmod(0o600)
    tls = ServerTLS(files["server.pem"], files["server.key"])
    with portal.wrap_async_context_manager(EtcdServer(tls=tls)) as server:
        with connect(server, ca_cert=str(files["ca.pem"])) as etcd:
            assert etcd.uses_secure_channel is True
            etcd.put("a", "1")
        with connect(
            server, ca_cert=files["ca.pem"], cert_cert=files["client.pem"], cert_key=files["client.key"]
        ) as etcd:
            assert etcd.get("a")[0] == b"1"
        options = {"grpc.ssl_target_name_override": "elsewhere", "grpc.max_receive_message_length": -1}
        with connect(server, ca_cert=files["ca.pem"], timeout=2, grpc_options=options.items()) as etcd:
            with pytest.raises(ConnectionFailedError) as raised:
                etcd.get("a")
            assert "elsewhere" in str(raised.value.__cause__)
        with connect(server) as etcd, pytest.raises(ConnectionFailedError):
            etcd.get("a")


def test_certificates_are_checked_by_the_constructor(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="belong together"):
        etcd3.client(ca_cert="ca.pem", cert_key="key.pem")
    with pytest.raises(FileNotFoundError):
        etcd3.client(ca_cert=tmp_path / "missing.pem")
    with pytest.raises(ValueError, match="needs creds"):
        etcd3.Endpoint("m1", 2379)


def test_a_user_logs_in_with_the_constructor(portal: BlockingPortal) -> None:
    with portal.wrap_async_context_manager(EtcdServer(flags=(QUICK_LOGINS,))) as server:
        portal.call(lambda: enable_auth(server, web=True))
        name, password = WEB
        with connect(server, user=name, password=password) as etcd:
            assert etcd.metadata is not None
            got: list[Any] = []
            assert etcd.call_credentials is not None
            etcd.call_credentials(None, lambda metadata, error: got.append((metadata, error)))
            assert got == [(etcd.metadata, None)]
            etcd.put("app/a", "1")
            with pytest.raises(RpcError, match="PERMISSION_DENIED"):
                etcd.put("elsewhere", "1")
        with pytest.raises(RpcError, match="authentication failed"):
            connect(server, user=name, password="wrong-c4n4ry")
        with connect(server) as etcd, pytest.raises(RpcError):
            etcd.get("app/a")
        for half in ({"user": name}, {"password": password}):
            with pytest.raises(ValueError, match="belong together"):
                connect(server, **half)
