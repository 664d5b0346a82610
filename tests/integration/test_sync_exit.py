"""Programs that use the blocking client end at once, without a traceback, whatever they forgot to close."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from etcd_aio.testing import EtcdServer
from tests.support.until import PATIENCE

pytestmark = pytest.mark.slow

LONGEST = 10.0  # seconds from the end of the program's own code: two are promised, a loaded machine adds to it
ROOT = Path(__file__).parents[2]

# Each prints "end" when its own code is over, and what it leaves open is listed beside it.
LEFT_OPEN = {
    "nothing": "client.close()",
    "a client": "",
    "a client that was never used": "client.close(); client = Client(endpoint)",
    "a block of the client, left by an exit": """
        with Client(endpoint) as other:
            other.put("a", "b")
            end()
            sys.exit(0)
    """,
    "a held lock": "client.lock('exit/lock', ttl=60).acquire()",
    "a kept lease": "client.lease(60).__enter__()",
    "a watch": "watcher = client.watch('exit/key'); watcher.__enter__()",
    "a session and an election": """
        session = client.session(ttl=60)
        session.__enter__()
        leader = client.election("exit/election").lead(value="v")
        leader.__enter__()
    """,
    "a cache": "cache = client.cache('exit/'); cache.__enter__()",
    "a worker": """
        from etcd_aio.sync.recipes import WorkQueue
        worker = WorkQueue(client, "exit/jobs").worker()
        worker.__enter__()
    """,
    "a daemon thread in a watch": """
        def follow():
            with client.watch("exit/key") as watcher:
                entered.set()
                for event in watcher:
                    pass
        in_thread(follow)
    """,
    "a daemon thread that waits for a lock": """
        client.lock("exit/other", ttl=60).acquire()
        def wait():
            entered.set()
            client.lock("exit/other").acquire()
        in_thread(wait)
    """,
    "a daemon thread in a call of a frozen server": """
        client.put("a", "b")
        freeze()
        def put():
            entered.set()
            client.put("a", "b", timeout=60)
        in_thread(put)
    """,
    "a held lock of a frozen server": """
        client.lock("exit/frozen", ttl=60).acquire()
        freeze()
    """,
    "calls in daemon threads that go on": """
        def work():
            while True:
                client.get("a")
                entered.set()
        for _ in range(8):
            in_thread(work)
        time.sleep(0.2)
    """,
    "daemon threads in watches": """
        def follow():
            with client.watch("exit/key") as watcher:
                entered.set()
                for event in watcher:
                    pass
        for _ in range(8):
            in_thread(follow)
        time.sleep(0.2)
    """,
    "a client whose thread has ended": """
        def use():
            global second
            second = Client(endpoint)
            second.put("a", "b")
            entered.set()
        in_thread(use)
    """,
    "a client that is closed by an exit handler": "atexit.register(client.close)",
    "a client that is used by an exit handler": "atexit.register(lambda: client.put('a', 'b'))",
    "a client in a running loop": """
        async def main():
            global other
            other = Client(endpoint)
            await asyncio.to_thread(other.put, "a", "b")
        asyncio.run(main())
    """,
    "a client in a cycle": """
        class Owner:
            def __init__(self):
                self.client, self.itself = Client(endpoint), self
        Owner().client.put("a", "b")
    """,
    "a transaction whose function exits": """
        def leave(txn):
            txn.get("a")
            end()
            sys.exit(0)
        client.stm(leave)
    """,
    "a forked child that ends as programs do": """
        client.put("a", "b")
        child = os.fork()
        if child == 0:
            client.put("child", "c")
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.get("child").text() == "c"
    """,
}

PROGRAM = """
import asyncio, atexit, os, signal, sys, threading, time
from etcd_aio.sync import Client

endpoint, pid = sys.argv[1], int(sys.argv[2])
entered = threading.Event()

def end():
    print("end", time.monotonic(), flush=True)

def in_thread(function):
    threading.Thread(target=function, daemon=True).start()
    assert entered.wait(60)

def freeze():
    os.kill(pid, signal.SIGSTOP)

client = Client(endpoint)
{body}
end()
"""


@pytest.fixture(scope="module")
def own_server() -> Iterator[EtcdServer]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer()) as server:
        yield server


@pytest.mark.parametrize("left", LEFT_OPEN)
@pytest.mark.parametrize("turn", range(5) if "--nightly" in sys.argv else range(1))
def test_a_program_ends_at_once(own_server: EtcdServer, left: str, turn: int) -> None:
    program = PROGRAM.format(body=textwrap.dedent(LEFT_OPEN[left]))
    arguments = [sys.executable, "-W", "default::ResourceWarning", "-c", program, own_server.endpoint]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        ended = subprocess.run(
            [*arguments, str(own_server.pid)], capture_output=True, text=True, timeout=PATIENCE, env=environ
        )
        now = time.monotonic()
    finally:
        os.kill(own_server.pid, signal.SIGCONT)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    word, _, at = ended.stdout.partition(" ")
    assert word == "end"
    assert now - float(at) < LONGEST
    is_closed = left in ("nothing", "a client that is closed by an exit handler")
    assert ("ResourceWarning: unclosed" in ended.stderr) is not is_closed, ended.stderr
