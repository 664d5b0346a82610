"""contrib/web/application.py: several workers, a fork after the import, reloads, and a SIGTERM."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from etcd_aio.testing.ports import free_ports
from tests.contrib.served import Served
from tests.examples.paths import ROOT
from tests.support.until import PATIENCE

WORKERS = 4
APPS = "tests.contrib.web_apps"
# A worker that a busy machine keeps from answering its server for a few seconds is not started again.
UVICORN = (
    *("uvicorn", "--factory", "--workers", str(WORKERS), "--port", "PORT"),
    *("--timeout-worker-healthcheck", str(int(PATIENCE))),
)
SERVERS = {
    "fastapi": (*UVICORN, f"{APPS}:fastapi"),
    "litestar": (*UVICORN, f"{APPS}:litestar"),
    "starlette": (*UVICORN, f"{APPS}:starlette"),
    "quart": ("hypercorn", "--workers", str(WORKERS), "--bind", "127.0.0.1:PORT", f"{APPS}:quart()"),
    "aiohttp": (
        *("gunicorn", "--preload", "--workers", str(WORKERS), "--bind", "127.0.0.1:PORT"),
        *("--timeout", str(int(PATIENCE))),
        *("--worker-class", "aiohttp.GunicornWebWorker", f"{APPS}:aiohttp()"),
    ),
    "sanic": ("sanic", f"{APPS}:sanic", "--factory", "--workers", str(WORKERS), "--port", "PORT"),
}
WARNED = ("ResourceWarning", "was never awaited", "was destroyed", "Traceback")


def wait_until(holds: Callable[[], object], server: "subprocess.Popen[bytes]", log: Path) -> None:
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < ends, log.read_text()
        time.sleep(0.05)


@contextmanager
def running(served: Served, log: Path, *command: str, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server in the block, and end it by SIGTERM."""
    words = [str(port) if word == "PORT" else word.replace(":PORT", f":{port}") for word in command]
    env = {**os.environ, "ETCD": served.endpoint, "PYTHONWARNINGS": "default", "PYTHONPATH": str(ROOT)}
    with log.open("wb") as output:
        server = subprocess.Popen([sys.executable, "-m", *words], env=env, cwd=log.parent, stdout=output, stderr=output)
    try:
        yield server
        server.send_signal(signal.SIGTERM)
        server.wait(PATIENCE)
    finally:
        server.kill()
        server.wait()
    text = without_listener(log.read_text(), port)
    assert not [word for word in WARNED if word in text], text


def without_listener(text: str, port: int) -> str:
    """What a server has printed, without the warning that the socket where it listens was not closed.

    The parent process of uvicorn leaves this socket to the exit of the process. Sockets of clients have other ports.
    """
    warning = rf"\S+ ResourceWarning: unclosed <socket\.socket [^>]*laddr=\('127\.0\.0\.1', {port}\)>\n"
    return re.sub(rf"{warning}(ResourceWarning: Enable tracemalloc .*\n)?", "", text)


def ask(url: str) -> httpx.Response:
    return httpx.get(url, timeout=PATIENCE, trust_env=False)


def answers(url: str) -> bool:
    try:
        return ask(url).text == "hello"
    except httpx.TransportError:
        return False


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "fastapi" else pytest.mark.nightly)
        for name in SERVERS
        if find_spec(name) is not None
    ],
)
def test_workers_start_answer_and_leave_nothing(name: str, served: Served, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    log = tmp_path / "log"
    with running(served, log, *SERVERS[name], port=port) as server:
        wait_until(lambda: len(served.keys("started/")) == WORKERS, server, log)
        wait_until(lambda: served.keys("job/"), server, log)
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/x"), server, log)
        assert ask(f"http://127.0.0.1:{port}/livez").json() == {"alive": True}
        # A read that takes more than a second on a busy machine is no failure of the server.
        wait_until(lambda: ask(f"http://127.0.0.1:{port}/readyz").status_code == 200, server, log)
    assert len(served.keys("stopped/")) == WORKERS
    ends = time.monotonic() + PATIENCE
    while not served.is_clean():
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.mark.nightly
def test_reloads_need_no_care(served: Served, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    log, program = tmp_path / "log", tmp_path / "reloaded.py"
    text = "from tests.contrib.web_apps import fastapi\n\napp = fastapi()\n"
    program.write_text(text)
    command = ("uvicorn", "reloaded:app", "--reload", "--reload-dir", str(tmp_path), "--port", "PORT")
    with running(served, log, *command, port=port) as server:
        for number in range(1, 21):
            wait_until(lambda number=number: len(served.keys("started/")) == number, server, log)  # type: ignore[misc]
            wait_until(lambda: answers(f"http://127.0.0.1:{port}/x"), server, log)
            assert len(served.keys("stopped/")) == number - 1
            if number < 20:
                program.write_text(f"{text}# {number}\n")
    assert len(served.keys("stopped/")) == 20
