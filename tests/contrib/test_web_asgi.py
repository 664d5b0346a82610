"""contrib/asgi.py, contrib/fastapi.py: lifespans, errors of the inner one, overrides, probes; on a fake."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from etcd_aio import Client
from etcd_aio.concurrency import Leadership
from etcd_aio.contrib.fastapi import EtcdDep, EtcdFastAPI, etcd_client
from etcd_aio.fake import FakeEtcd
from tests.support.until import until

pytestmark = pytest.mark.anyio

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[Any]]


@pytest.fixture
async def fake() -> AsyncIterator[FakeEtcd]:
    async with FakeEtcd() as fake:
        yield fake


async def until_clean(fake: FakeEtcd) -> None:
    await until(lambda: not fake.leases and not any(member.connections for member in fake.members))


@asynccontextmanager
async def asking(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as http:
        yield http


class OwnError(Exception):
    """Of the application."""


@pytest.mark.parametrize("where", ["start", "stop"])
async def test_an_error_of_the_inner_lifespan_is_not_changed(fake: FakeEtcd, where: str) -> None:
    etcd = EtcdFastAPI(fake.client)
    error = OwnError(where)

    @asynccontextmanager
    async def inner(app: FastAPI) -> AsyncIterator[None]:
        await etcd.client.put("a", "1")
        if where == "start":
            raise error
        yield
        await etcd.client.put("a", "2")
        raise error

    app = FastAPI(lifespan=etcd.lifespan(inner))
    with pytest.raises(OwnError) as raised:
        async with app.router.lifespan_context(app):
            pass
    assert raised.value is error
    assert error.__context__ is None
    assert fake.keys("a") == {b"a": b"1" if where == "start" else b"2"}
    with pytest.raises(RuntimeError):
        etcd.client  # noqa: B018
    await until_clean(fake)


@pytest.mark.parametrize("is_outside", [True, False])
async def test_libraries_compose_in_either_order(fake: FakeEtcd, is_outside: bool) -> None:
    etcd = EtcdFastAPI(fake.client)
    order: list[str] = []

    def wrap(inner: Lifespan) -> Lifespan:
        """As another library does."""

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, object]]:
            order.append("other begins")
            async with inner(app) as state:
                yield {"other": 1, **(state or {})}
            order.append("other ends")

        return lifespan

    @asynccontextmanager
    async def own(app: FastAPI) -> AsyncIterator[dict[str, object]]:
        order.append(f"own begins, {'etcd' if etcd._worker else 'no etcd'}")
        yield {"own": 2}
        order.append(f"own ends, {'etcd' if etcd._worker else 'no etcd'}")

    lifespan = wrap(etcd.lifespan(own)) if is_outside else etcd.lifespan(wrap(own))
    app = FastAPI(lifespan=lifespan)
    async with app.router.lifespan_context(app) as state:
        assert state is not None
        assert {**state, "etcd": 0} == {"etcd": 0, "other": 1, "own": 2}
        assert state["etcd"] is etcd.client
    assert order == ["other begins", "own begins, etcd", "own ends, etcd", "other ends"]
    await until_clean(fake)


async def test_background_tasks_run_while_the_inner_lifespan_does(fake: FakeEtcd) -> None:
    etcd = EtcdFastAPI(fake.client)
    order: list[str] = []

    @etcd.leader_only("job")
    async def job(leadership: Leadership) -> None:
        order.append("job begins")
        try:
            await asyncio.Event().wait()
        finally:
            order.append("job ends")

    @asynccontextmanager
    async def inner(app: FastAPI) -> AsyncIterator[None]:
        order.append("inner begins")
        yield
        order.append("inner ends")

    app = FastAPI(lifespan=etcd.lifespan(inner))
    async with app.router.lifespan_context(app):
        await until(lambda: "job begins" in order)
    assert order == ["inner begins", "job begins", "job ends", "inner ends"]


async def test_a_handler_may_get_another_client_in_tests(fake: FakeEtcd) -> None:
    app = FastAPI()

    @app.get("/x")
    async def x(client: EtcdDep) -> str:
        return (await client.put("a", "1")).__class__.__name__

    async with fake.client() as client, asking(app) as http:
        app.dependency_overrides[etcd_client] = lambda: client
        assert (await http.get("/x")).json() == "PutResult"


async def test_probes_while_etcd_is_down(fake: FakeEtcd) -> None:
    fake.members[0].stop()
    etcd = EtcdFastAPI(lambda: Client(fake.endpoints, engine=fake.engine))
    app = FastAPI(lifespan=etcd.lifespan())
    app.include_router(etcd.probes(live="/alive"))
    async with app.router.lifespan_context(app), asking(app) as http:
        alive = await http.get("/alive")
        assert (alive.status_code, alive.json()) == (200, {"alive": True})
        ready = await http.get("/readyz")
        assert ready.status_code == 503
        assert ready.headers["cache-control"] == "no-store"
        assert ready.json()["reason"] == "no member is connected"
        assert "fake1" not in ready.text
        fake.members[0].start()
        async with asyncio.timeout(60):
            while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110 # nothing signals it
                await asyncio.sleep(0.01)
        assert "/readyz" not in (await http.get("/openapi.json")).text


@pytest.mark.parametrize("framework", [FastAPI, Starlette])
async def test_a_lifespan_that_is_not_called_names_the_line(fake: FakeEtcd, framework: Any) -> None:
    etcd = EtcdFastAPI(fake.client)
    app = framework(lifespan=etcd.lifespan)
    with pytest.raises(TypeError, match=r"FastAPI\(lifespan=etcd\.lifespan\(\)\)"):
        async with app.router.lifespan_context(app):
            pass
