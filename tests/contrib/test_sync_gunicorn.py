"""Blocking clients in `gunicorn --preload`: made before the fork, used by the workers' threads and the master."""

import os
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from etcd_aio.testing.ports import free_ports
from tests.contrib.served import Served
from tests.contrib.test_web_servers import answers, ask, running, wait_until
from tests.support.until import PATIENCE

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.skipif(find_spec("gunicorn") is None, reason="gunicorn is not installed"),
]

TTL = 3
WORKERS = 3
APP = f"""
import atexit, os, threading

from etcd_aio.errors import ForkedError
from etcd_aio.sync import Client

client = Client(os.environ["ETCD"])
atexit.register(client.close)
lease = client.lease({TTL})
lease.__enter__()
atexit.register(lease.__exit__, None, None, None)
client.put("master", str(os.getpid()), lease=lease)
client.put("started", "1")


def app(environ, start_response):
    client.put(f"hits/{{os.getpid()}}/{{threading.get_ident()}}", "1")
    try:
        lease.revoke()
        told = "revoked"
    except ForkedError:
        told = "forked"
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/x":
        return [b"hello"]
    return [f"{{os.getpid()}} {{client.get('master').text()}} {{told}}".encode()]
"""


def test_workers_use_the_client_that_their_master_has_made(served: Served, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    log = tmp_path / "log"
    (tmp_path / "preloaded.py").write_text(APP)
    command = ("gunicorn", "--preload", "--workers", str(WORKERS), "--threads", "4", "--timeout", str(int(PATIENCE)))
    with running(served, log, *command, "--bind", "127.0.0.1:PORT", "preloaded:app", port=port) as server:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/x"), server, log)
        workers: set[str] = set()
        begun = time.monotonic()

        def all_have_answered() -> bool:
            pid, master, told = ask(f"http://127.0.0.1:{port}/").text.split()
            assert (master, told) == (str(server.pid), "forked")
            assert pid != master
            workers.add(pid)
            return len(workers) == WORKERS and time.monotonic() > begun + 2 * TTL

        wait_until(all_have_answered, server, log)
        assert served.keys("master"), "the lease of the master lives"
    assert not served.keys("master")
