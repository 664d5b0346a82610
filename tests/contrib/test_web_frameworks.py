"""contrib/aiohttp.py, contrib/asgi.py, contrib/fastapi.py, contrib/litestar.py, contrib/quart.py, contrib/sanic.py:
each framework under its own test client, on a fake that is served: a start, requests, a stop, and nothing left.
"""

import json
import time
from importlib.util import find_spec
from inspect import signature
from pkgutil import resolve_name

import pytest

from etcd_aio.contrib.web import ApplicationOptions, EtcdApplication, readiness
from tests.contrib import web_apps, web_clients
from tests.contrib.served import Served
from tests.support.until import PATIENCE

FRAMEWORKS = [name for name in web_apps.NAMES if find_spec(name) is not None]


def wait_for(served: Served, prefix: str) -> None:
    """Wait in a thread until there is a key."""
    ends = time.monotonic() + PATIENCE
    while not served.keys(prefix):
        assert time.monotonic() < ends, f"no key under {prefix}"
        time.sleep(0.01)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_start_requests_and_a_stop(name: str, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ["/livez", "/x", "/readyz", *(["/mounted/x"] if name in {"fastapi", "aiohttp"} else [])]
    monkeypatch.setenv("ETCD", served.endpoint)
    monkeypatch.setattr(readiness, "READ_TIMEOUT", PATIENCE)  # a second may pass on a busy machine
    for number in (1, 2):  # the same process may start it again
        answers = web_clients.ask(name, getattr(web_apps, name)(), paths, lambda: wait_for(served, "job/"))
        assert json.loads(answers["/livez"][1]) == {"alive": True}
        assert answers["/readyz"][0] == 200, answers
        assert json.loads(answers["/readyz"][1])["ready"] is True
        for path in paths:
            if path.endswith("/x"):
                assert answers[path] == (200, "hello")
        assert len(served.keys("job/")) >= number  # more if a slow machine has lost a leadership
        assert served.keys("started/")
        assert served.keys("stopped/")  # the client was there when the application's own lifespan ended
        ends = time.monotonic() + PATIENCE
        while not served.is_clean():
            assert time.monotonic() < ends
            time.sleep(0.01)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_without_the_lifespan_the_first_request_names_the_line(
    name: str, served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ETCD", served.endpoint)
    monkeypatch.setenv("LIFESPAN", "none")
    lines = {
        "starlette": "Starlette(lifespan=etcd.lifespan())",
        "fastapi": "FastAPI(lifespan=etcd.lifespan())",
        "litestar": "Litestar(plugins=[etcd])",
        "quart": "QuartEtcd(app)",
        "aiohttp": "app.cleanup_ctx.append(etcd.context)",
        "sanic": "SanicEtcd(app)",
    }
    if name in {"starlette", "fastapi"}:  # their test client raises errors of the application
        with pytest.raises(RuntimeError) as raised:
            web_clients.ask(name, getattr(web_apps, name)(), ["/x"], lambda: None)
        assert lines[name] in str(raised.value)
        return
    answers = web_clients.ask(name, getattr(web_apps, name)(), ["/x"], lambda: None)
    assert answers["/x"][0] == 500
    assert lines[name] in caplog.text + answers["/x"][1]


@pytest.mark.skipif("quart" not in FRAMEWORKS, reason="quart is not installed")
def test_an_application_of_quart_starts_again(served: Served) -> None:
    """As one that is made with its module does in each test of it."""
    from quart import Quart

    from etcd_aio.contrib.quart import QuartEtcd

    app = Quart("again")
    etcd = QuartEtcd(app, served.endpoint)
    for _ in range(2):
        answers = web_clients.ask("quart", app, ["/livez"], lambda: None)
        assert answers["/livez"][0] == 200
        assert "not running" in repr(etcd)


PLUGINS = [
    name
    for name in ("litestar:EtcdPlugin", "quart:QuartEtcd", "sanic:SanicEtcd")
    if name.partition(":")[0] in FRAMEWORKS
]


@pytest.mark.parametrize("name", PLUGINS)
def test_every_application_takes_the_common_options_and_no_others(name: str) -> None:
    kind = resolve_name(f"etcd_aio.contrib.{name}")
    etcd = kind(
        source="http://m1:2379", ready="connected", ready_timeout=1, shutdown_timeout=2, read=False, details=True
    )
    assert etcd.details
    assert set(signature(EtcdApplication).parameters) - {"source"} == set(ApplicationOptions.__annotations__)
    with pytest.raises(ValueError, match="ready must be one of"):
        kind(ready="eager")
    with pytest.raises(TypeError, match="unknown"):
        kind(unknown=1)
