"""Ctrl-C in every wait of a blocking client: it ends at once, and says what it may have left behind."""

import os
import signal
from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal

from etcd_aio.testing import EtcdServer
from tests.support.sync_programs import run_program

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(os.name == "nt", reason="no process sends itself a Ctrl-C there")]

# Each begins to wait on its last line; `number` is the server's process.
WAITS = {
    "a lock": "client.lock('taken').acquire()",
    "a block of a lock": "client.lock('taken').__enter__()",
    "a session's lock": "session.lock('taken').acquire()",
    "a permit": "client.semaphore('permit', limit=1).acquire()",
    "a watch": "next(watcher)",
    "a watch with a limit": "watcher.next(timeout=300)",
    "a queue": "from etcd_aio.sync.recipes import Queue; Queue(client, 'queue').get()",
    "a job": """
        from etcd_aio.sync.recipes import WorkQueue
        with WorkQueue(client, 'jobs').worker() as worker:
            next(worker)
    """,
    "an election": "client.election('led').lead().__enter__()",
    "an election's work": "client.election('free').run(lambda leadership: time.sleep(300))",
    "the changes of leaders": """
        with client.election('led').changes() as leaders:
            next(leaders)
            next(leaders)
    """,
    "a barrier": """
        from etcd_aio.sync.recipes import Barrier
        barrier = Barrier(client, 'barrier')
        barrier.hold()
        barrier.wait_released()
    """,
    "a double barrier": """
        from etcd_aio.sync.recipes import DoubleBarrier
        DoubleBarrier(client, 'double', count=2).__enter__()
    """,
    "a transaction": "client.stm(lambda tx: (tx.get('a'), time.sleep(300)))",
    "a cache": "cache.wait_revision(2**60, timeout=None)",
    "an exactly-once write": "freeze(); once.put('b', '1', timeout=None)",
    "a get": "freeze(); client.get('a', timeout=None)",
    "a grant": "freeze(); client.leases.grant(60, timeout=None)",
    "a commit": """
        from etcd_aio import op
        freeze()
        client.txn().then(op.put('a', '2')).commit(timeout=None)
    """,
}

PROGRAM = """
client = Client(endpoint)
holder = Client(endpoint)
own = threading.current_thread()

def freeze():
    os.kill(number, signal.SIGSTOP)

def interrupt():
    while True:  # until the main thread waits for a call
        frames, frame = [], sys._current_frames()[own.ident]
        while frame is not None:
            frames.append(frame.f_code.co_name)
            frame = frame.f_back
        if "wait" in frames[:2] or "<lambda>" in frames[:2]:
            break
        time.sleep(0.01)
    time.sleep(0.3)
    sent.append(time.monotonic())
    signal.pthread_kill(own.ident, signal.SIGINT)  # to the process, it may go to another thread

sent = []
with (
    holder.lock("taken"), holder.semaphore("permit", limit=1), holder.election("led").lead(),
    holder.watch("never") as watcher, holder.cache(prefix="cached/") as cache, client.exactly_once() as once,
    client.session() as session,
):
    client.put("a", "1")
    once.put("a", "1")
    threads = threading.active_count()
    try:
        def act():
{body}
            raise AssertionError("it ended")
        threading.Thread(target=interrupt).start()
        act()
    except KeyboardInterrupt as interruption:
        took = time.monotonic() - sent[0]
        notes = getattr(interruption, "__notes__", [])
    else:
        raise AssertionError("it was not interrupted")
    os.kill(number, signal.SIGCONT)
    client.put("a", "2")  # the client goes on
    deadline = time.monotonic() + 60
    while client.lock("taken").contenders()[1:] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(client.lock("taken").contenders()) == 1, "nothing is left in the line"
    import gc
    gc.collect()
client.close(), holder.close()
deadline = time.monotonic() + 60
while threading.active_count() > 1 and time.monotonic() < deadline:
    time.sleep(0.01)
assert threading.active_count() == 1, threading.enumerate()
assert took < 10, took  # it is within a second, and a loaded machine adds to that
print(json.dumps(notes))
"""


@pytest.fixture(scope="module")
def own_server() -> Iterator[EtcdServer]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer()) as server:
        yield server


@pytest.fixture(autouse=True)
def goes_on(own_server: EtcdServer) -> Iterator[None]:
    yield
    os.kill(own_server.pid, signal.SIGCONT)


def interrupted(server: EtcdServer, body: str) -> str:
    """Run a program that is interrupted in a wait. Returns the notes of the KeyboardInterrupt."""
    lines = [line for line in body.splitlines() if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    text = "\n".join(" " * 12 + line[margin:] for line in lines)
    return run_program(PROGRAM.format(body=text), server.endpoint, server.pid)


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_the_wait(own_server: EtcdServer, wait: str) -> None:
    interrupted(own_server, WAITS[wait])


def test_ctrl_c_within_a_put_of_a_frozen_cluster_says_that_it_may_have_been_applied(own_server: EtcdServer) -> None:
    assert "may have been applied" in interrupted(own_server, "freeze(); client.put('a', '2', timeout=None)")
