"""contrib/tooz/: hard times: a full store, late heartbeats, forks, event loops, stops in the middle, other's values."""

import asyncio
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import tooz
from anyio.from_thread import BlockingPortal
from tooz.coordination import (
    GroupAlreadyExist,
    GroupNotCreated,
    GroupNotEmpty,
    MemberAlreadyExist,
    MemberNotJoined,
    OperationTimedOut,
)
from tooz.utils import SerializationError

from etcd_aio.errors import NoSpaceError
from etcd_aio.sync import Client
from etcd_aio.testing import EtcdServer
from tests.contrib.coordinators import Start, coordinators, until

pytestmark = pytest.mark.cluster

_numbers = count()


@pytest.fixture
def namespace() -> str:
    return f"hard-{next(_numbers)}"


@pytest.fixture
def start(server: EtcdServer, namespace: str) -> Iterator[Start]:
    with coordinators(f"{server.endpoint.removeprefix('http://')}/{namespace}") as start:
        yield start


@pytest.fixture
def client(server: EtcdServer, namespace: str) -> Iterator[Any]:
    """What another program writes to the coordinators' keys."""
    with Client(server.endpoint) as client:
        yield client.namespace(f"{namespace}/")


# Heartbeats.


def test_no_member_is_removed_while_a_full_store_refuses_heartbeats(portal: BlockingPortal) -> None:
    full = EtcdServer()
    with (
        portal.wrap_async_context_manager(full) as server,
        Client(server.endpoint) as client,
        coordinators(server.endpoint.removeprefix("http://")) as start,
    ):
        one, two = start(b"one", timeout=4), start(b"two", timeout=4)
        one.join_group_create(b"g", {"zone": 1})
        client.maintenance.raise_alarm("nospace")
        end = time.monotonic() + 6
        while time.monotonic() < end:
            with suppress(tooz.ToozError):  # etcd 3.4 does not refuse a put in a nested txn
                one.heartbeat()
            assert two.get_members(b"g").get() == {b"one"}
            time.sleep(0.1)
        client.maintenance.disarm()
        one.heartbeat()
        assert two.get_member_capabilities(b"g", b"one").get() == {"zone": 1}


def test_a_member_removed_while_its_heartbeat_is_under_way_joins_again(start: Start) -> None:
    """The lease lives, as after the election of a leader, which lets all leases begin anew."""
    one, two = start(b"one", timeout=4), start(b"two")
    one.join_group_create(b"g", {"zone": 1})
    membership = one._membership()
    leases = membership._leases

    def slow(lease: int) -> Any:
        until(lambda: (leases.keep_alive_once(lease), two.get_members(b"g").get())[1] == set())
        return leases.keep_alive_once(lease)

    membership._leases = SimpleNamespace(keep_alive_once=slow)  # type: ignore[assignment]
    one.heartbeat()
    membership._leases = leases
    assert two.get_members_with_capabilities(b"g").get() == {b"one": {"zone": 1}}


def test_a_member_removed_after_heartbeats_that_failed_halfway_joins_again(start: Start) -> None:
    one, two = start(b"one", timeout=4), start(b"two")
    one.join_group_create(b"g", {"zone": 1})
    membership = one._membership()
    beat = membership._groups.beat

    def refuse(*_: object) -> list[bytes]:
        raise NoSpaceError("the store is full")

    membership._groups.beat = refuse  # type: ignore[method-assign,assignment]
    end = time.monotonic() + 5
    while time.monotonic() < end:
        with pytest.raises(tooz.ToozError):
            one.heartbeat()
        two.get_members(b"g").get()
        time.sleep(0.1)
    assert two.get_members(b"g").get() == set()
    membership._groups.beat = beat  # type: ignore[method-assign]
    one.heartbeat()
    assert two.get_members_with_capabilities(b"g").get() == {b"one": {"zone": 1}}


# Processes, loops and stops.


def in_child(test: Callable[[], None]) -> None:
    """Run a test in a forked process, for 30 seconds at most."""
    child = os.fork()
    if not child:
        status = 1
        try:
            test()
            status = 0
        except BaseException:  # whatever it is, the parent sees the status
            traceback.print_exc()
        finally:
            os._exit(status)
    end = time.monotonic() + 30
    while (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.05)
    assert found[1] == 0, "the child has failed: see its output"


def test_a_forked_child_cannot_use_the_coordinator_and_does_it_no_harm(start: Start) -> None:
    one, two = start(b"one"), start(b"two")
    one.join_group_create(b"g")
    held = one.get_lock(b"x")
    assert held.acquire()

    def use() -> None:
        calls: list[Callable[[], object]] = [
            one.heartbeat,
            one.run_watchers,
            lambda: one.get_members(b"g").get(timeout=10),
            lambda: held.acquired,
            held.is_still_owner,
            held.release,
            one.get_lock(b"y").acquire,
            one.stop,
        ]
        for call in calls:
            with pytest.raises(tooz.ToozError, match="fork"):
                call()

    in_child(use)
    assert two.get_members(b"g").get() == {b"one"}
    assert held.is_still_owner()


def test_a_forked_child_starts_a_coordinator_of_its_own(start: Start) -> None:
    one, two = start(b"one"), start(b"two")
    one.join_group_create(b"g")

    def use() -> None:
        child = start(b"child")
        child.join_group(b"g").get()
        assert child.get_members(b"g").get() == {b"one", b"child"}
        child.stop()

    in_child(use)
    assert two.get_members(b"g").get() == {b"one"}


def test_the_lease_of_a_lost_lock_is_not_kept_alive(start: Start, server: EtcdServer) -> None:
    """It may have keys that a backup has brought back, which would never end."""
    one, two = start(b"one"), start(b"two")
    with Client(server.endpoint) as client:
        held = one.get_lock(b"x")
        assert held.acquire(timeout=600)
        (lease,) = [found for found in client.leases.list().ids if client.leases.time_to_live(found).granted_ttl == 600]
        assert two.get_lock(b"x").break_()
        until(lambda: lease not in client.leases.list().ids)
        assert not held.acquired
        assert not held.release()
        assert held.acquire()


def test_stopping_in_a_coroutine_fails_and_can_be_done_again_elsewhere(start: Start) -> None:
    one, two = start(b"one"), start(b"two")
    one.join_group_create(b"g")
    assert one.get_lock(b"x").acquire()

    async def stop() -> None:
        one.stop()

    with pytest.raises(tooz.ToozError, match="event loop"):
        asyncio.run(stop())
    assert one.is_started
    assert two.get_members(b"g").get() == {b"one"}
    one.stop()
    assert not one.is_started
    assert two.get_members(b"g").get() == set()
    assert two.get_lock(b"x").acquire(blocking=False)
    one.start()


def test_a_coordinator_that_stops_gets_no_lock_for_which_a_thread_waits(start: Start) -> None:
    one, two = start(b"one"), start(b"two")
    assert one.get_lock(b"x").acquire()
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            one.get_lock(b"x").acquire()
        except tooz.ToozError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    one.stop()
    thread.join()
    assert len(errors) == 1
    assert two.get_lock(b"x").acquire(blocking=5)


def test_stopping_in_a_signal_handler_that_interrupts_a_heartbeat(start: Start) -> None:
    """A handler runs in the thread that it interrupts, and its locks are held."""
    one, two = start(b"one"), start(b"two")
    one.join_group_create(b"g")
    membership = one._membership()
    leases = membership._leases

    def interrupted(lease: int) -> Any:
        membership._leases = leases
        one.stop()
        return leases.keep_alive_once(lease)

    def beat() -> None:
        with suppress(tooz.ToozError):
            one.heartbeat()

    membership._leases = SimpleNamespace(keep_alive_once=interrupted)  # type: ignore[assignment]
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    thread.join(30)
    assert not one.is_started
    assert two.get_members(b"g").get() == set()


def test_stopping_in_an_outage_takes_one_call_however_many_locks_there_are(
    portal: BlockingPortal, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        portal.wrap_async_context_manager(EtcdServer()) as server,
        coordinators(server.endpoint.removeprefix("http://")) as start,
    ):
        one = start(b"one", call_timeout=3)
        locks = [one.get_lock(b"%d" % number) for number in range(5)]
        assert all(lock.acquire() for lock in locks)
        elected: Any = lambda event: "elected"  # noqa: E731
        for number in range(5):
            one.watch_elected_as_leader(b"%d" % number, elected)
        assert len(one.run_watchers()) == 5
        server.pause()
        try:
            one.stop()
        finally:
            server.resume()
        assert "could not be released" not in caplog.text  # each takes seconds
        assert not any(lock.acquired or lock.release() for lock in locks)


# Identifiers and values.


def test_identifiers_that_are_not_text(start: Start) -> None:
    one = start(b"\xff")
    with pytest.raises(GroupNotCreated):
        one.get_members(b"\xfe").get()
    with pytest.raises(MemberNotJoined):
        one.get_member_info(b"\xfe", b"\xff").get()
    one.create_group(b"\xfe").get()
    with pytest.raises(GroupAlreadyExist):
        one.create_group(b"\xfe").get()
    one.join_group(b"\xfe").get()
    with pytest.raises(MemberAlreadyExist):
        one.join_group(b"\xfe").get()
    with pytest.raises(GroupNotEmpty):
        one.delete_group(b"\xfe").get()
    assert one.get_members(b"\xfe").get() == {b"\xff"}


@pytest.mark.parametrize("value", [b"", b"\xc1", b"\x05", b"text", b"\x93\x01\x02\x03", b"\x94\x01\xa1x\xa1y\xa1z"])
def test_a_value_of_another_program_is_an_error_that_names_the_key(start: Start, client: Any, value: bytes) -> None:
    one = start(b"one")
    one.create_group(b"g").get()
    client.put("members/g/two", value)
    for call in (one.get_members(b"g"), one.get_member_info(b"g", b"two")):
        with pytest.raises(SerializationError, match="members/g/two"):
            call.get()


# Watchers.


def test_watchers_end_within_their_timeout_in_an_outage_and_go_on_after_it(portal: BlockingPortal) -> None:
    with (
        portal.wrap_async_context_manager(EtcdServer()) as server,
        coordinators(server.endpoint.removeprefix("http://")) as start,
    ):
        one = start(b"one", timeout=600, call_timeout=600)
        one.create_group(b"g").get()
        elected: list[bytes] = []
        one.watch_elected_as_leader(b"g", lambda event: elected.append(event.member_id))
        with paused(server), ThreadPoolExecutor() as threads:
            for _ in range(2):
                ending = threads.submit(one.run_watchers, timeout=0.2)
                is_late = not wait([ending], timeout=60).done
                if is_late:
                    server.resume()  # else it would not end
                assert not is_late, "it waits for the calls"
                with pytest.raises(OperationTimedOut):
                    ending.result()
        one.run_watchers(timeout=60)
        assert elected == [b"one"]
        assert one.get_leader(b"g").get() == b"one"
        assert one.run_watchers(timeout=60) == []


def test_who_is_elected_after_a_timeout_and_watches_no_longer_does_not_lead(portal: BlockingPortal) -> None:
    with (
        portal.wrap_async_context_manager(EtcdServer()) as server,
        coordinators(server.endpoint.removeprefix("http://")) as start,
    ):
        one = start(b"one", call_timeout=600)
        one.create_group(b"g").get()

        def elected(event: Any) -> None:
            raise AssertionError(event)

        one.watch_elected_as_leader(b"g", elected)
        with paused(server), pytest.raises(OperationTimedOut):
            one.run_watchers(timeout=0.2)
        one.unwatch_elected_as_leader(b"g", elected)
        until(lambda: (one.run_watchers(), one.get_leader(b"g").get())[1] is None and not one._standing)


@contextmanager
def paused(server: EtcdServer) -> Iterator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()
