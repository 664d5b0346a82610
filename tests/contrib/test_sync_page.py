"""The page about Flask, Django, Celery and gunicorn: its programs run, and answer what they should."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from etcd_aio.testing.ports import free_ports
from tests.contrib.served import Served
from tests.examples.blocks import python_blocks, read
from tests.examples.paths import PAGES, ROOT
from tests.support.until import PATIENCE

PAGE = read(PAGES / "how-to" / "flask-django-celery.md")
PROGRAMS = {block.file: block.code for block in python_blocks(PAGE) if block.file is not None}


def test_every_program_is_tested() -> None:
    assert set(PROGRAMS) == {"flask_app.py", "django_views.py", "gunicorn_conf.py", "celery_tasks.py"}


def program(name: str, served: Served) -> str:
    return PROGRAMS[name].replace("http://127.0.0.1:2379", served.endpoint)


@pytest.fixture
def load(served: Served) -> Iterator[Callable[[str], Any]]:
    """Run a program as a module, and close its client in the end."""
    modules: list[Any] = []

    def load(name: str) -> Any:
        module: Any = ModuleType(Path(name).stem)
        modules.append(module)
        exec(compile(program(name, served), name, "exec"), vars(module))
        module.etcd.put("greeting", "hello")
        return module

    yield load
    for module in modules:
        module.etcd.close()


def test_flask(load: Callable[[str], Any]) -> None:
    client = load("flask_app.py").app.test_client()
    assert client.get("/").text == "hello"
    assert [client.post("/visits").text for _ in range(2)] == ["1", "2"]


def test_django(load: Callable[[str], Any]) -> None:
    django = pytest.importorskip("django")
    settings = import_module("django.conf").settings
    if not settings.configured:
        settings.configure(DEFAULT_CHARSET="utf-8")
        django.setup()
    request = import_module("django.test").RequestFactory().get("/")
    answer = load("django_views.py").greeting(request)
    assert answer.content == b"hello"


def test_celery(load: Callable[[str], Any], served: Served) -> None:
    pytest.importorskip("celery")
    tasks = load("celery_tasks.py")
    assert tasks.archive.apply(args=[42]).get() == "done"
    assert served.keys("archive/") == {b"archive/42": b"done"}


def test_gunicorn_forks_a_client_that_was_made_before(served: Served, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    for name in ("flask_app.py", "gunicorn_conf.py"):
        (tmp_path / name).write_text(program(name, served))
    served.fake.load({"greeting": "hello"})
    command = ("-m", "gunicorn", "--config", "gunicorn_conf.py", "--workers", "3", "--threads", "2")
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, *command, "--bind", f"127.0.0.1:{port}", "flask_app:app"],
            env={"PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: len(served.keys("workers/")) == 3, log)
        url = f"http://127.0.0.1:{port}/"
        assert httpx.get(url, timeout=PATIENCE, trust_env=False).text == "hello"
        visits = [httpx.post(f"{url}visits", timeout=PATIENCE, trust_env=False).text for _ in range(6)]
        assert visits == ["1", "2", "3", "4", "5", "6"]
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0, log.read_text()
    finally:
        server.kill()
        server.wait()
    assert "Traceback" not in log.read_text(), log.read_text()
    wait_until(served.is_clean, log)
    assert served.keys("workers/") == {}


def wait_until(holds: Callable[[], object], log: Path) -> None:
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends, log.read_text()
        time.sleep(0.05)
