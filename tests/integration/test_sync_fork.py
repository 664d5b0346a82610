"""Blocking clients after a fork: the child works by connections of its own, and the parent notices nothing."""

import os
from pathlib import Path

import pytest

from etcd_aio.testing import EtcdServer
from tests.support.sync_programs import run_program

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")]

TURNS = {"nightly": 100}

# In the child: what works, and what is the parent's.
CHILD = """
def sockets():
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if link.startswith("socket:"):
            found.add(link)
    return found

def refuses(*uses):
    for use in uses:
        try:
            use()
        except ForkedError:
            continue
        except BaseException as error:
            raise AssertionError(f"{use} raised {error!r}") from error
        raise AssertionError(f"{use} raised nothing")

def work(turn):
    "All that a forked child may do with what its parent has made."
    signal.alarm(60)
    inherited = sockets()
    client.delete(f"child/{turn}")
    put = client.put(f"child/{turn}", "1", prev_kv=True)
    assert put.prev_kv is None
    assert client.get(f"child/{turn}").text() == "1"
    assert (sockets() - inherited) or not os.path.exists("/proc"), "a connection of its own"
    assert space.get("x") is None
    assert client.cluster.members().members
    with client.lock(f"child/lock/{turn}") as own:
        own.fenced.put(f"child/fenced/{turn}", "1")
    with client.watch(f"child/{turn}", start_revision=put.revision) as events:
        assert next(events).kv.value == b"1"
    assert list(client.scan(prefix="child/"))
    refuses(
        lock.release, lock.check, lock.__enter__, lease.revoke, lease.keep_alive_once, lambda: next(watcher),
        watcher.request_progress, lambda: session.lock("a"), lambda: next(scan), cache.wait_current,
    )
"""

WHILE_THREADS_CALL = (
    """
client = Client(endpoint)
space = client.namespace("space/")
client.put("scanned/a", "1")
calls, errors, seen, children, over = [0] * 8, [], [], [], threading.Event()

def call(at):
    try:
        while not over.is_set():
            client.put(f"parent/{at}", str(calls[at]))
            assert client.get(f"parent/{at}").text() == str(calls[at])
            calls[at] += 1
    except BaseException as error:
        errors.append(error)

def follow():
    try:
        with client.watch(prefix="child/fenced/") as events:
            following.set()
            for _ in range(number):
                seen.append(next(events).key.decode())
    except BaseException as error:
        errors.append(error)
"""
    + CHILD
    + """
following = threading.Event()
threads = [threading.Thread(target=call, args=(at,)) for at in range(8)] + [threading.Thread(target=follow)]
with client.lock("parent/lock", ttl=5) as lock, client.lease(5) as lease, client.session(ttl=5) as session:
    client.put("parent/leased", "1", lease=lease)
    with client.watch("parent/key") as watcher, client.cache(prefix="scanned/") as cache:
        scan = client.scan(prefix="scanned/")
        for thread in threads:
            thread.start()
        assert following.wait(60)
        while min(calls) < 1:
            time.sleep(0.01)
        connects = [one.connects for one in client.statistics()]
        for turn in range(number):
            before = sum(calls)
            while sum(calls) == before and not errors:  # in the midst of calls
                time.sleep(0.0005)
            pid = os.fork()
            if pid == 0:
                try:
                    work(turn)
                except BaseException:
                    import traceback
                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
            children.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            if turn < 3:
                time.sleep(0.2)
        threads[-1].join(60)
        over.set()
        for thread in threads:
            thread.join(60)
        assert not errors, errors
        assert children == [0] * number, children
        assert seen == [f"child/fenced/{turn}" for turn in range(number)], seen
        assert [one.connects for one in client.statistics()] == connects, "no connection was lost"
        client.put("parent/key", "1")
        assert watcher.next(timeout=60).key == b"parent/key"
        assert list(scan)
        assert lock.is_held and not lease.is_lost
        lock.check(), session.check()
        assert client.get("parent/leased").lease == lease.id
client.close()
print("well")
"""
)

BY_MULTIPROCESSING = (
    CHILD
    + """
def spawned(queue):
    with Client(endpoint) as own:
        queue.put(own.get("parent/key").text())

def forked(queue):
    work(0)
    queue.put("worked")

if __name__ == "__main__":
    client = Client(endpoint)
    space = client.namespace("space/")
    client.put("parent/key", "1")
    client.put("scanned/a", "1")
    with client.lock("parent/lock", ttl=5) as lock, client.lease(5) as lease, client.session(ttl=5) as session:
        with client.watch("parent/key") as watcher, client.cache(prefix="scanned/") as cache:
            scan = client.scan(prefix="scanned/")
            for method, target, expected in (("spawn", spawned, "1"), ("fork", forked, "worked")):
                context = multiprocessing.get_context(method)
                queue = context.SimpleQueue()
                child = context.Process(target=target, args=(queue,))
                child.start()
                child.join(120)
                assert child.exitcode == 0, (method, child.exitcode)
                assert queue.get() == expected
            client.put("parent/key", "2")
            assert watcher.next(timeout=60).kv.value == b"2"
            lock.check()
            assert not lease.is_lost
    client.close()
    print("well")
"""
)

BY_A_LOOP_OF_WORKERS = """
client = Client(endpoint)
client.put("workers", "0")

def worker(at):
    "Forked before its first call, as by `gunicorn --preload`, and ended by SIGTERM within one."
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    client.put(f"worker/{at}", "1")
    with client.watch("never") as watcher:
        for event in watcher:
            pass

workers = []
for at in range(number):
    pid = os.fork()
    if pid == 0:
        try:
            worker(at)
        except SystemExit:
            client.close()
            os._exit(0)
        os._exit(1)
    workers.append(pid)
ends = time.monotonic() + 60
while client.range(prefix="worker/").count < number and time.monotonic() < ends:
    time.sleep(0.01)
for pid in workers:
    os.kill(pid, signal.SIGTERM)
assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in workers] == [0] * number
client.put("workers", "1")
client.close()
print("well")
"""


def test_a_fork_while_eight_threads_call(shared_server: EtcdServer, pytestconfig: pytest.Config) -> None:
    turns = TURNS.get(str(pytestconfig.getoption("tier")), 5)
    assert run_program(WHILE_THREADS_CALL, shared_server.endpoint, turns) == "well\n"


def test_multiprocessing_by_fork_and_by_spawn(shared_server: EtcdServer, tmp_path: Path) -> None:
    assert run_program(BY_MULTIPROCESSING, shared_server.endpoint, file=tmp_path / "program.py") == "well\n"


def test_workers_that_are_forked_with_a_client_end_by_a_signal(shared_server: EtcdServer) -> None:
    assert run_program(BY_A_LOOP_OF_WORKERS, shared_server.endpoint, 4) == "well\n"
