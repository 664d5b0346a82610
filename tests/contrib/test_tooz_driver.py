"""contrib/tooz/: coordinators on real servers, beyond what tooz's own tests ask: see `nox -s outside -- tooz`."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import tooz
import trustme
from anyio.from_thread import BlockingPortal
from tooz.coordination import (
    GroupNotCreated,
    GroupNotEmpty,
    MemberAlreadyExist,
    MemberJoinedGroup,
    MemberLeftGroup,
    MemberNotJoined,
    ToozConnectionError,
)

from etcd_aio.sync import Client
from etcd_aio.testing import EtcdCluster, EtcdServer, ServerTLS
from tests.contrib.coordinators import Start, coordinators, until
from tests.support.auth import QUICK_LOGINS, WEB, enable_auth
from tests.support.certificates import write_ca, write_leaf
from tests.support.servers import QUICK_ELECTIONS

pytestmark = pytest.mark.cluster

_numbers = count()


@pytest.fixture
def start(server: EtcdServer) -> Iterator[Start]:
    """Coordinators with a namespace of their own."""
    with coordinators(f"{server.endpoint.removeprefix('http://')}/test-{next(_numbers)}") as start:
        yield start


def test_identifiers_with_slashes_are_apart(start: Start) -> None:
    one = start(b"a/b")
    for group in (b"g", b"g/a"):
        one.create_group(group).get()
    one.join_group(b"g/a", {"zone": 1}).get()
    assert sorted(one.get_groups().get()) == [b"g", b"g/a"]
    assert one.get_members(b"g").get() == set()
    assert one.get_members(b"g/a").get() == {b"a/b"}
    with pytest.raises(GroupNotEmpty):
        one.delete_group(b"g/a").get()
    one.delete_group(b"g").get()
    with pytest.raises(GroupNotCreated):
        one.get_members(b"g").get()
    outer, inner = one.get_lock(b"g"), one.get_lock(b"g/write")
    assert outer.acquire(blocking=False)
    assert inner.acquire(blocking=False)


def test_a_member_tells_when_it_joined_and_changed(start: Start) -> None:
    one = start(b"one")
    before = datetime.now()
    one.join_group_create(b"g", {"version": 1})
    one.update_capabilities(b"g", {"version": 2}).get()
    info = one.get_member_info(b"g", b"one").get()
    assert info["capabilities"] == {"version": 2}
    assert before <= info["created_at"] <= info["updated_at"] <= datetime.now()


def test_stopping_leaves_all_groups_and_releases_all(start: Start) -> None:
    one, two = start(b"one"), start(b"two")
    for group in (b"g1", b"g2"):
        one.join_group_create(group)
    assert one.get_lock(b"x").acquire()
    shared = one.get_lock(b"y")
    assert shared.acquire(shared=True)
    assert shared.acquire(shared=True)
    elected: Any = lambda event: "elected"  # noqa: E731
    one.watch_elected_as_leader(b"g1", elected)
    assert one.run_watchers() == ["elected"]
    one.stop()
    assert two.get_members(b"g1").get() == two.get_members(b"g2").get() == set()
    assert two.get_lock(b"x").acquire(blocking=False)
    assert two.get_lock(b"y").acquire(blocking=False)
    assert two.get_leader(b"g1").get() is None
    one.start()
    assert one.get_members(b"g1").get() == set()
    with pytest.raises(tooz.ToozError):
        one.start()


def test_a_member_without_heartbeats_leaves_and_its_next_one_joins_again(start: Start) -> None:
    one, two = start(b"one", timeout=5), start(b"two")
    one.join_group_create(b"g", {"zone": 1})
    two.join_group(b"g").get()
    events: list[Any] = []
    add: Any = events.append
    two.watch_leave_group(b"g", add)
    two.watch_join_group(b"g", add)
    until(lambda: two.run_watchers())
    assert [type(event) for event in events] == [MemberLeftGroup]
    assert two.get_members(b"g").get() == {b"two"}
    one.heartbeat()
    assert two.get_members_with_capabilities(b"g").get() == {b"one": {"zone": 1}, b"two": None}
    assert two.run_watchers() == [None]
    assert isinstance(events[-1], MemberJoinedGroup)


def test_a_silent_member_is_removed_although_its_lease_lives(start: Start, server: EtcdServer) -> None:
    """As after the election of a leader, with which all leases begin anew."""
    one, two = start(b"one", timeout=4), start(b"two")
    one.join_group_create(b"g", {"zone": 1})
    assert two.get_members(b"g").get() == {b"one"}
    with Client(server.endpoint) as client:
        (key,) = [kv for kv in client.range(all_keys=True).kvs if kv.key.endswith(b"members/g/one")][-1:]
        end = time.monotonic() + 4.5
        while time.monotonic() < end:
            client.leases.keep_alive_once(key.lease)
            time.sleep(0.1)
        assert client.get(key.key) is not None
        assert two.get_members(b"g").get() == set()
        assert client.get(key.key) is None
    one.heartbeat()
    assert two.get_members_with_capabilities(b"g").get() == {b"one": {"zone": 1}}


def test_a_member_that_another_client_lets_leave_does_not_come_back(start: Start) -> None:
    one = start(b"one")
    one.join_group_create(b"g")
    start(b"one").leave_group(b"g").get()
    one.heartbeat()
    assert one.get_members(b"g").get() == set()
    with pytest.raises(MemberNotJoined):
        one.leave_group(b"g").get()


def test_heartbeats_of_many_groups(start: Start) -> None:
    one, two = start(b"one", timeout=6), start(b"two")
    groups = [b"g%d" % number for number in range(120)]
    for group in groups:  # join_group_create() of tooz waits for a second after it has created one
        one.create_group(group)
        one.join_group(group).get()
    end = time.monotonic() + 7
    while time.monotonic() < end:
        one.heartbeat()
        time.sleep(0.2)
    assert all(two.get_members(group).get() == {b"one"} for group in groups)


def test_the_same_member_twice(start: Start) -> None:
    one, again = start(b"one"), start(b"one")
    one.join_group_create(b"g")
    for driver in (one, again):
        with pytest.raises(MemberAlreadyExist):
            driver.join_group(b"g").get()


def test_texts_are_accepted_as_identifiers(start: Start) -> None:
    one = start("öne")
    one.join_group_create("gröup")  # type: ignore[arg-type]
    assert one.get_members("gröup".encode()).get() == {"öne".encode()}


# Locks.


def test_a_waiter_gets_a_lock_that_is_broken(start: Start) -> None:
    one, two, three = start(b"1"), start(b"2"), start(b"3")
    held = one.get_lock(b"x")
    assert held.acquire()
    waiting = two.get_lock(b"x")
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(waiting.acquire(blocking=60)))
    thread.start()
    time.sleep(0.3)
    assert three.get_lock(b"x").break_()
    thread.join()
    assert results == [True]
    assert not held.is_still_owner()
    assert not held.release()
    assert waiting.is_still_owner()
    assert waiting.release()
    assert not three.get_lock(b"x").break_()


def test_all_readers_of_a_broken_lock_lose_it(start: Start) -> None:
    one, two = start(b"1").get_lock(b"x"), start(b"2").get_lock(b"x")
    assert one.acquire(shared=True)
    assert two.acquire(shared=True)
    writer = start(b"3").get_lock(b"x")
    assert not writer.acquire(blocking=0.2)
    assert writer.break_()
    assert writer.acquire(blocking=False)
    assert not one.release()
    assert not two.release()


def test_a_shared_lock_is_acquired_again_although_a_writer_waits(start: Start) -> None:
    reader, writer = start(b"1").get_lock(b"x"), start(b"2").get_lock(b"x")
    assert reader.acquire(shared=True)
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(writer.acquire()))
    thread.start()
    time.sleep(0.3)
    assert reader.acquire(shared=True)
    assert not start(b"3").get_lock(b"x").acquire(blocking=False, shared=True)
    assert reader.release()
    assert reader.release()
    assert not reader.release()
    thread.join()
    assert results == [True]


def test_threads_that_share_one_lock(start: Start) -> None:
    lock = start(b"1").get_lock(b"x")
    inside: list[int] = []
    most = 0

    def work() -> None:
        nonlocal most
        for _ in range(5):
            with lock:
                inside.append(1)
                most = max(most, len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert not lock.acquired


def test_a_lock_is_kept_alive_without_heartbeats(start: Start) -> None:
    held = start(b"1").get_lock(b"x")
    assert held.acquire(timeout=4)
    time.sleep(5)
    assert held.heartbeat()
    assert not start(b"2").get_lock(b"x").acquire(blocking=False)
    assert held.release()


# Elections.


def test_a_leader_that_is_gone_is_followed(start: Start) -> None:
    one, two = start(b"one"), start(b"two")
    elected: list[bytes] = []
    for driver in (one, two):
        driver.watch_elected_as_leader(b"g", lambda event: elected.append(event.member_id))
        driver.run_watchers()
        driver.run_watchers()
    assert elected == [b"one"]
    assert one.stand_down_group_leader(b"g")
    assert not two.stand_down_group_leader(b"g")
    two.run_watchers()
    one.run_watchers()
    assert elected == [b"one", b"two"]
    assert one.get_leader(b"g").get() == b"two"


# Servers that fail, and servers with TLS and users.


@contextmanager
def killed(portal: BlockingPortal, cluster: EtcdCluster, leader: EtcdServer) -> Iterator[None]:
    portal.call(leader.kill)
    yield
    portal.call(leader.restart)


@contextmanager
def cut_off(portal: BlockingPortal, cluster: EtcdCluster, leader: EtcdServer) -> Iterator[None]:
    portal.call(cluster.isolate, leader)
    yield
    portal.call(cluster.reconnect, leader)


@contextmanager
def frozen(portal: BlockingPortal, cluster: EtcdCluster, leader: EtcdServer) -> Iterator[None]:
    leader.pause()
    try:
        yield
    finally:
        leader.resume()


@pytest.mark.parametrize("fault", [killed, cut_off, frozen])
def test_a_cluster_that_loses_its_leader(
    portal: BlockingPortal,
    fault: Callable[[BlockingPortal, EtcdCluster, EtcdServer], AbstractContextManager[None]],
) -> None:
    with portal.wrap_async_context_manager(EtcdCluster(size=3, peer_proxies=True, **QUICK_ELECTIONS)) as cluster:
        portal.call(cluster.wait_healthy)
        hosts = ",".join(endpoint.removeprefix("http://") for endpoint in cluster.endpoints)
        with coordinators(hosts) as start:
            one, two = start(b"one"), start(b"two")
            one.join_group_create(b"g", {"zone": 1})
            lock = one.get_lock(b"x")
            assert lock.acquire()
            for round_ in range(2):
                with fault(portal, cluster, portal.call(cluster.leader)):
                    two.create_group(b"g%d" % round_).get()
                    one.heartbeat()
                    two.join_group(b"g").get()
                    assert two.get_members(b"g").get() == {b"one", b"two"}
                    two.leave_group(b"g").get()
                    assert not two.get_lock(b"x").acquire(blocking=False)
                    assert lock.is_still_owner()
                portal.call(cluster.wait_healthy)
            assert lock.release()


def test_no_server() -> None:
    with coordinators("127.0.0.1:1") as start, pytest.raises(ToozConnectionError):
        start(b"one", call_timeout=1)


def test_stopping_in_an_outage_ends(portal: BlockingPortal) -> None:
    with (
        portal.wrap_async_context_manager(EtcdServer()) as server,
        coordinators(server.endpoint.removeprefix("http://")) as start,
    ):
        one = start(b"one", call_timeout=3, timeout=2)
        one.heart.start()
        for group in (b"g1", b"g2", b"g3"):
            one.join_group_create(group)
        assert one.get_lock(b"x").acquire()
        portal.call(server.kill)
        with pytest.raises(ToozConnectionError):
            one.get_groups().get()
        one.stop()
        assert not one.is_started
        assert not one.heart.is_alive()


def test_tls_and_a_user_in_the_url(portal: BlockingPortal, tmp_path: Path) -> None:
    authority = trustme.CA()
    ca = write_ca(authority, tmp_path / "ca.pem")
    files = write_leaf(authority.issue_cert("localhost", "127.0.0.1"), tmp_path, "server")
    tls = ServerTLS(files["cert"], files["key"])
    with portal.wrap_async_context_manager(EtcdServer(tls=tls, flags=[QUICK_LOGINS])) as server:
        portal.call(partial(enable_auth, server, web=True))
        host = server.endpoint.removeprefix("https://")
        name, password = WEB
        with coordinators(f"{name}:{password}@{host}/app") as start:
            one = start(b"one", ca_cert=str(ca))
            one.join_group_create(b"g")
            assert one.get_lock(b"x").acquire(shared=True)
            assert one.get_members(b"g").get() == {b"one"}
        with coordinators(f"{name}:{password}@{host}/other") as start:
            one = start(b"one", ca=str(ca))
            with pytest.raises(tooz.ToozError, match="permission denied"):
                one.create_group(b"g").get()


def test_an_option_that_does_not_exist() -> None:
    with coordinators("127.0.0.1:2379") as start:
        with pytest.raises(tooz.ToozError, match="option"):
            start(b"one", lock_timeout="long")
        with pytest.raises(tooz.ToozError, match="unknown option"):
            start(b"one", api_version="v3")
