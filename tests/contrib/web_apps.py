"""The same application in each framework: a handler that writes and reads, a background task, probes, a lifespan.

`ETCD` names the endpoint; `LIFESPAN=none` leaves out the line that lets the application run with the client. Each
worker puts `started/<pid>` and `stopped/<pid>` where the framework has a place for it inside of the client's life.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from etcd_aio import Client
from etcd_aio.concurrency import Leadership

ASGI = ("starlette", "fastapi", "litestar", "quart")
NAMES = (*ASGI, "aiohttp", "sanic")


def endpoint() -> str:
    return os.environ["ETCD"]


def is_wired() -> bool:
    return os.environ.get("LIFESPAN") != "none"


async def hello(client: Client) -> str:
    """The answer to `GET /x`."""
    await client.put(f"x/{os.getpid()}", "hello")
    found = await client.get(f"x/{os.getpid()}")
    assert found is not None
    return found.text()


async def job(leadership: Leadership) -> None:
    """The background task of the leader."""
    await leadership.fenced.put(f"job/{leadership.fencing_token}", str(os.getpid()))
    await asyncio.Event().wait()


async def started(client: Client) -> None:
    await client.put(f"started/{os.getpid()}", "")


async def stopped(client: Client) -> None:
    await client.put(f"stopped/{os.getpid()}", "")


def starlette() -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    from etcd_aio.contrib.asgi import EtcdStarlette, client_of

    etcd = EtcdStarlette(endpoint())
    etcd.leader_only("jobs")(job)

    @asynccontextmanager
    async def inner(app: Starlette) -> AsyncIterator[dict[str, object]]:
        await started(etcd.client)
        yield {"own": "state"}
        await stopped(etcd.client)

    async def x(request: Request) -> PlainTextResponse:
        client = client_of(request)
        assert request.state.own == "state"
        return PlainTextResponse(await hello(client))

    lifespan = etcd.lifespan(inner) if is_wired() else None
    return Starlette(lifespan=lifespan, routes=[*etcd.routes(), Route("/x", x)])


def fastapi() -> Any:
    from fastapi import FastAPI
    from fastapi.responses import PlainTextResponse

    from etcd_aio.contrib.fastapi import EtcdDep, EtcdFastAPI

    etcd = EtcdFastAPI(endpoint())
    etcd.leader_only("jobs")(job)

    @asynccontextmanager
    async def inner(app: FastAPI) -> AsyncIterator[None]:
        await started(etcd.client)
        yield
        await stopped(etcd.client)

    app = FastAPI(lifespan=etcd.lifespan(inner)) if is_wired() else FastAPI()
    app.include_router(etcd.probes())
    mounted = FastAPI()

    @app.get("/x")
    @mounted.get("/x")
    async def x(client: EtcdDep) -> PlainTextResponse:
        return PlainTextResponse(await hello(client))

    app.mount("/mounted", mounted)
    return app


def litestar() -> Any:
    from litestar import Litestar, get

    from etcd_aio.contrib.litestar import EtcdDep, EtcdPlugin

    etcd = EtcdPlugin(endpoint())
    etcd.leader_only("jobs")(job)

    @asynccontextmanager
    async def inner(app: Litestar) -> AsyncIterator[None]:
        await started(etcd.client)
        yield
        await stopped(etcd.client)

    @get("/x", media_type="text/plain")
    async def x(etcd: EtcdDep) -> str:
        return await hello(etcd)

    if not is_wired():
        etcd._client_lifespan = etcd._jobs_lifespan = _nothing  # type: ignore[method-assign]
    return Litestar(
        [x],
        plugins=[etcd],
        lifespan=[inner] if is_wired() else [],
        signature_namespace={"EtcdDep": EtcdDep},
        debug=not is_wired(),  # otherwise Litestar neither answers nor logs the error
    )


@asynccontextmanager
async def _nothing(app: object) -> AsyncIterator[None]:
    yield


def quart() -> Any:
    from quart import Quart

    from etcd_aio.contrib.quart import QuartEtcd, current_client

    app = Quart(__name__)
    if is_wired():
        etcd = QuartEtcd(app, endpoint())
        etcd.leader_only("jobs")(job)

        @app.while_serving
        async def inner() -> AsyncGenerator[None, None]:
            await started(etcd.client)
            yield
            await stopped(etcd.client)

    @app.get("/x")
    async def x() -> str:
        return await hello(current_client())

    return app


def aiohttp() -> Any:
    from aiohttp import web

    from etcd_aio.contrib.aiohttp import ETCD, EtcdAiohttp, client_of

    etcd = EtcdAiohttp(endpoint())
    etcd.leader_only("jobs")(job)
    app = web.Application()

    async def inner(app: web.Application) -> AsyncIterator[None]:
        await started(app[ETCD])
        yield
        await stopped(app[ETCD])

    async def x(request: web.Request) -> web.Response:
        return web.Response(text=await hello(client_of(request)))

    if is_wired():
        app.cleanup_ctx.extend([etcd.context, inner])
    app.add_routes([*etcd.routes(), web.get("/x", x)])
    nested = web.Application()
    nested.add_routes([web.get("/x", x)])
    app.add_subapp("/mounted", nested)
    return app


def sanic() -> Any:
    from sanic import HTTPResponse, Request, Sanic, text

    from etcd_aio.contrib.sanic import SanicEtcd

    app = Sanic("etcd_aio_tests")
    etcd = SanicEtcd(app if is_wired() else None, endpoint())
    etcd.leader_only("jobs")(job)

    async def begin(app: Any) -> None:
        await started(app.ctx.etcd)

    async def end(app: Any) -> None:
        await stopped(etcd.client)

    if is_wired():
        app.register_listener(begin, "before_server_start")
        app.register_listener(end, "before_server_stop")

    @app.get("/x")
    async def x(request: Request) -> HTTPResponse:
        return text(await hello(etcd.client))

    return app
