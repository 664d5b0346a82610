"""lease/guard.py, lease/guarded_lease.py: leases that a thread renews while the loop is blocked, on real servers."""

# ruff: noqa: PT012 - the block is what is tested

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import anyio
import pytest

from etcd_aio import Client, Lease, LeaseLostError, NoAvailableEndpointsError, sync
from etcd_aio.errors import ClientClosedError, ClientUsageError, InvalidRequestError, LeaseExpiredError
from etcd_aio.fake import FakeEtcd
from etcd_aio.testing import EtcdServer
from tests.support.until import PATIENCE, until

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

ROOT = Path(__file__).parents[2]
TTL = 4  # seconds: a process that stands still for a moment loses none
BLOCKED = 1.5 * TTL
TASKS = 20_000
TIMES = [pytest.param(1, id="once"), pytest.param(20, id="20 times", marks=[pytest.mark.nightly, pytest.mark.slow])]


def guards() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "etcd_aio.loop"]


def open_files() -> int:
    """The number of open files and sockets, where the system tells it; else 0."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


async def until_no_thread_is_left() -> None:
    await until(lambda: not guards())


async def has_ended(client: Client, lease: Lease | int) -> bool:
    return (await client.leases.time_to_live(lease)).is_expired


# A loop that is blocked, or has too much to do.


@pytest.mark.parametrize("times", TIMES)
async def test_a_loop_that_is_blocked_for_longer_than_the_ttl_loses_no_guarded_lease(
    shared_server: EtcdServer, prefix: str, times: int
) -> None:
    async with Client(shared_server.endpoint, timeout=PATIENCE) as client:
        for _ in range(times):
            plain = client.leases.kept(TTL)  # to show what it guards from
            async with client.lease(TTL, guard="thread") as lease:
                await plain.begin()
                await client.put(prefix, "v", lease=lease)
                time.sleep(BLOCKED)  # noqa: ASYNC251 - it is to block the loop
                assert plain.is_lost
                assert not lease.is_lost
                assert 0 < lease.remaining <= TTL
                found = await client.leases.time_to_live(lease, keys=True)
                assert found.keys == (prefix.encode(),)
                assert not lease.is_lost
            assert await client.get(prefix) is None
    await until_no_thread_is_left()


@pytest.mark.slow
@pytest.mark.parametrize("times", TIMES)
async def test_twenty_thousand_busy_tasks_lose_no_guarded_lease(shared_server: EtcdServer, times: int) -> None:
    is_over = False

    async def work() -> None:
        while not is_over:
            sum(range(500))
            await asyncio.sleep(0)

    async with Client(shared_server.endpoint, timeout=PATIENCE) as client, asyncio.TaskGroup() as group:
        for _ in range(TASKS):
            group.create_task(work())
        for _ in range(times):
            async with client.lease(TTL, guard="thread", timeout=PATIENCE) as lease:
                ends = time.monotonic() + BLOCKED
                turns = 0
                while time.monotonic() < ends:
                    await asyncio.sleep(0)
                    turns += 1
                    assert not lease.is_lost
                assert turns < 10_000, "the loop was not busy: the test proves nothing"
            assert await has_ended(client, lease._id)
        is_over = True
    await until_no_thread_is_left()


async def test_a_lease_that_is_revoked_while_the_loop_is_blocked_is_lost_at_once(shared_server: EtcdServer) -> None:
    async with Client(shared_server.endpoint) as client:
        with pytest.raises(LeaseExpiredError, match="does not exist any more"):
            async with client.lease(TTL, guard="thread") as lease:

                async def revoke(lease_id: int = lease.id) -> None:
                    async with Client(shared_server.endpoint) as other:
                        await other.leases.revoke(lease_id)

                other = threading.Thread(target=asyncio.run, args=[revoke()])
                other.start()
                other.join()
                ends = time.monotonic() + PATIENCE
                while not lease.is_lost:
                    assert time.monotonic() < ends
                    time.sleep(0.01)  # noqa: ASYNC251 - it is to block the loop
                assert lease.remaining == 0
                await asyncio.sleep(PATIENCE)  # is cancelled
    await until_no_thread_is_left()


# The watchdog.


async def test_a_process_that_hangs_loses_its_lease_in_the_time_of_the_watchdog(
    shared_server: EtcdServer, client: Client, prefix: str
) -> None:
    is_gone: list[bool] = []

    def look() -> None:
        async def until_gone() -> None:
            async with Client(shared_server.endpoint) as other:
                while await other.get(prefix) is not None:  # noqa: ASYNC110 - as a program of its own
                    await asyncio.sleep(0.02)

        asyncio.run(asyncio.wait_for(until_gone(), PATIENCE))
        is_gone.append(True)

    lease = client.lease(60, guard="thread", watchdog=1)
    with pytest.raises(LeaseLostError, match="the program has not fed it for 1 s"):
        async with lease:
            await client.put(prefix, "v", lease=lease)
            other = threading.Thread(target=look)
            other.start()
            other.join()  # it hangs
            assert is_gone == [True]
            assert lease.is_lost
            with pytest.raises(LeaseLostError, match="the program has not fed it for 1 s"):
                lease.feed()
            await asyncio.sleep(PATIENCE)  # is cancelled
    assert await has_ended(client, lease._id)
    await until_no_thread_is_left()


async def test_a_lease_that_is_fed_outlives_its_watchdog(client: Client) -> None:
    async with client.lease(TTL, guard="thread", watchdog=3) as lease:
        for _ in range(16):
            time.sleep(0.25)  # noqa: ASYNC251 - it is to block the loop
            feeding = threading.Thread(target=lease.feed)  # from any thread
            feeding.start()
            feeding.join()
        assert not lease.is_lost
        assert 0 < lease.remaining <= 3


async def test_a_watchdog_tells_a_task_that_waits_for_the_loss(client: Client) -> None:
    with suppress(LeaseLostError):
        async with client.lease(60, on_lost="signal", guard="thread", watchdog=0.5) as lease:
            with anyio.fail_after(PATIENCE):
                error = await lease.lost()
            assert error is not None
            assert "has not fed it for 0.5 s" in error.message
    await until_no_thread_is_left()


async def test_what_cannot_be_fed_says_why(client: Client) -> None:
    async with client.lease(60) as plain:
        with pytest.raises(ClientUsageError, match="the lease has no watchdog"):
            plain.feed()
    async with client.lease(60, guard="thread") as lease:
        with pytest.raises(ClientUsageError, match="the lease has no watchdog"):
            lease.feed()
    fed = client.lease(60, guard="thread", watchdog=30)
    with pytest.raises(ClientUsageError, match="the lease is not entered"):
        fed.feed()
    async with fed:
        fed.feed()
    with pytest.raises(ClientUsageError, match="the lease has ended"):
        fed.feed()


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda c: c.lease(9, guard="process"), InvalidRequestError, "guard must be one of 'thread'; got 'process'"),
        (lambda c: c.lease(9, watchdog=3), InvalidRequestError, "watchdog= belongs to guard='thread'"),
        (lambda c: c.lease(9, guard="thread", watchdog=0), InvalidRequestError, "watchdog must be more than 0 seconds"),
        (
            lambda c: c.lease(9, guard="thread", watchdog=-1),
            InvalidRequestError,
            "watchdog must be a number of seconds",
        ),
        (
            lambda c: c.lease(9, guard="thread", watchdog="3"),
            TypeError,
            "watchdog must be a number of seconds, got str",
        ),
    ],
)
def test_wrong_arguments_are_refused(use: Callable[[Client], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use(Client("127.0.0.1:1"))


async def test_a_fake_in_memory_cannot_be_used_by_the_thread() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with pytest.raises(ClientUsageError, match="needs an engine by name"):
            await client.lease(60, guard="thread").__aenter__()
        assert fake.leases == ()
    assert guards() == []


async def test_a_blocking_client_that_hangs_loses_its_lease_too(
    shared_server: EtcdServer, client: Client, prefix: str
) -> None:
    def hold() -> None:
        with sync.Client(shared_server.endpoint) as blocking, blocking.lease(60, guard="thread", watchdog=1) as lease:
            blocking.put(prefix, "v", lease=lease)
            ends = time.monotonic() + 2
            while time.monotonic() < ends:
                time.sleep(0.1)
                lease.feed()
            assert blocking.get(prefix) is not None
            time.sleep(1.5)
            assert lease.is_lost

    with pytest.raises(LeaseLostError, match="the program has not fed it for 1 s"):
        await asyncio.to_thread(hold)
    assert await client.get(prefix) is None


# The end.


async def test_leases_of_one_client_have_one_thread_and_one_connection_and_leave_neither(
    shared_server: EtcdServer,
) -> None:
    async with Client(shared_server.endpoint) as client:
        await client.get("a")
        before = open_files()
        for _ in range(3):
            async with client.lease(60, guard="thread"), client.lease(60, guard="thread") as lease:
                assert len(guards()) == 1
            assert await has_ended(client, lease._id)
            await until_no_thread_is_left()
        await until(lambda: open_files() <= before)


async def test_closing_the_client_loses_a_guarded_lease(shared_server: EtcdServer, client: Client) -> None:
    own = await Client(shared_server.endpoint).connect()
    lease = own.lease(60, guard="thread")
    with pytest.raises(LeaseLostError, match="not kept alive any longer") as raised:
        async with lease:
            await own.aclose()
    assert isinstance(raised.value.__cause__, ClientClosedError)
    await until_no_thread_is_left()
    await client.leases.revoke(lease._id)  # etcd keeps it


async def test_the_ends_of_a_lease_end_the_thread(client: Client) -> None:
    async with client.lease(60, guard="thread") as lease:
        await lease.revoke()
        await until_no_thread_is_left()
        assert await lease.lost() is None
    async with client.lease(60, guard="thread") as lease:
        orphan = lease.orphan()
        await until_no_thread_is_left()
    async with client.lease(60, id=orphan, adopt=True, guard="thread") as lease:
        assert lease.id == orphan
    assert await has_ended(client, orphan)
    await until_no_thread_is_left()


async def test_a_lease_that_cannot_be_granted_leaves_no_thread() -> None:
    async with Client("127.0.0.1:1", timeout=0.5) as client:
        with pytest.raises(NoAvailableEndpointsError):
            await client.lease(60, guard="thread").__aenter__()
        await until_no_thread_is_left()
        for turns in range(12):
            entering = asyncio.ensure_future(client.lease(60, guard="thread").__aenter__())
            for _ in range(turns):
                await asyncio.sleep(0)
            entering.cancel()
            await asyncio.wait([entering])
            assert entering.cancelled()
        await until_no_thread_is_left()


async def test_a_beginning_that_is_cancelled_at_any_instant_leaves_no_lease(
    shared_server: EtcdServer, client: Client
) -> None:
    ttl = 617  # that no other test names

    async def left() -> list[int]:
        found = [await client.leases.time_to_live(id_) for id_ in (await client.leases.list()).ids]
        return [lease.id for lease in found if lease.granted_ttl == ttl]

    was_cancelled = 0
    for is_first in (True, False):
        async with AsyncExitStack() as stack:
            if not is_first:  # the thread is there
                await stack.enter_async_context(client.lease(60, guard="thread"))
            for step in range(30):
                entering = asyncio.ensure_future(client.lease(ttl, guard="thread").__aenter__())
                await asyncio.sleep(step / 2000)
                if not entering.cancel():
                    await entering.result().close()
                await asyncio.wait([entering])
                was_cancelled += entering.cancelled()
    await until_no_thread_is_left()
    assert was_cancelled > 5
    assert await left() == []


async def test_a_block_that_is_cancelled_at_once_leaves_neither_lease_nor_thread(client: Client) -> None:
    async with client.lease(60, guard="thread") as first:  # the thread is there
        for _ in range(5):
            lease = client.lease(60, guard="thread")
            with anyio.CancelScope() as scope:
                async with lease:
                    scope.cancel()
                    await asyncio.sleep(PATIENCE)
            assert await has_ended(client, lease._id)
        assert not first.is_lost
    await until_no_thread_is_left()


async def test_an_outage_is_the_reason_why_it_cannot_be_renewed_and_is_lost() -> None:
    async with EtcdServer() as server, Client(server.endpoint, timeout=PATIENCE) as client:
        with pytest.raises(LeaseExpiredError, match="no renewal was acknowledged in time") as raised:
            async with client.lease(TTL, guard="thread") as lease:
                assert lease.renewal_error is None
                await server.kill()
                await until(lambda: lease.renewal_error is not None)
                assert isinstance(lease.renewal_error, NoAvailableEndpointsError)
                await asyncio.sleep(PATIENCE)
        assert isinstance(raised.value.__cause__, NoAvailableEndpointsError)
    await until_no_thread_is_left()


# Processes.

PROGRAM = """
import asyncio, os, signal, sys, threading, time, warnings
from etcd_aio import Client

endpoint, prefix = sys.argv[1:]

async def hold(then):
    async with Client(endpoint) as client:
        async with client.lease(60, guard="thread", watchdog=60) as lease:
            await client.put(prefix, "v", lease=lease)
            print("holds", flush=True)
            await then(client, lease)

{code}
"""
WAYS = {
    "Ctrl-C": ("asyncio.run(hold(lambda *_: asyncio.sleep(60)))", True),
    "an exit": ("async def then(*_): sys.exit(3)\nasyncio.run(hold(then))", True),
    "an exit beside the loop": (
        "loop = asyncio.new_event_loop()\n"
        "async def then(*_):\n"
        "    loop.stop()\n"
        "    await asyncio.sleep(60)\n"
        "holding = loop.create_task(hold(then))\n"
        "loop.run_forever()",
        False,
    ),
    "a fork": (
        "async def then(client, lease):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        try:\n"
        "            lease.feed()\n"
        "        except BaseException as error:\n"
        "            os._exit(7 if type(error).__name__ == 'ForkedError' else 1)\n"
        "        os._exit(2)\n"
        "    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "    lease.feed()\n"
        "    assert lease.renewal_error is None\n"
        "    print('fed', len(threading.enumerate()))\n"
        "asyncio.run(hold(then))\n"
        "ends = time.monotonic() + 60\n"
        "while threading.active_count() > 1 and time.monotonic() < ends: time.sleep(0.01)\n"
        "print(threading.enumerate())",
        True,
    ),
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("way", WAYS)
async def test_a_program_ends_with_a_guarded_lease(
    shared_server: EtcdServer, client: Client, prefix: str, way: str
) -> None:
    code, is_revoked = WAYS[way]
    text = textwrap.dedent(PROGRAM).format(code=code)
    process = subprocess.Popen(  # noqa: ASYNC220 - its output is awaited in a thread
        # From Python 3.12 on, a fork of a process with threads is deprecated.
        [
            sys.executable,
            "-W",
            "default",
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            text,
            shared_server.endpoint,
            prefix,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "holds\n"
        if way == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        output, errors = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
    finally:
        process.kill()
    if way == "a fork":
        assert (process.returncode, errors) == (0, "")
        assert output.splitlines()[0].startswith("fed")
        assert "etcd_aio.loop" not in output
    elif way == "an exit":
        assert (process.returncode, errors) == (3, "")
    elif way == "Ctrl-C":
        assert "KeyboardInterrupt" in errors
        assert "ResourceWarning" not in errors
    else:
        assert process.returncode == 0
        assert "unclosed client with guarded leases" in errors
    found = await client.get(prefix)
    assert (found is None) == is_revoked
    if found is not None:
        await client.leases.revoke(found.lease)
