"""The test client of each framework: runs an application, asks it, and stops it."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from tests.support.until import PATIENCE

Answers = dict[str, tuple[int, str]]
Wait = Callable[[], None]


def ask(name: str, app: Any, paths: list[str], while_running: Wait) -> Answers:
    """Start an application, wait, ask it for each path, and stop it.

    Args:
        name: the framework.
        app: the application.
        paths: what to ask for.
        while_running: called in another thread than the application's before the first question.
    """
    if name in {"starlette", "fastapi"}:
        from starlette.testclient import TestClient

        with TestClient(app) as client:
            while_running()
            return _all(client, paths)
    if name == "litestar":
        import litestar.testing

        with litestar.testing.TestClient(app) as client:
            while_running()
            return _all(client, paths)
    return asyncio.run({"quart": _quart, "aiohttp": _aiohttp, "sanic": _sanic}[name](app, paths, while_running))


def _all(client: Any, paths: list[str]) -> Answers:
    return {path: (answer.status_code, answer.text) for path in paths for answer in [client.get(path)]}


async def _quart(app: Any, paths: list[str], while_running: Wait) -> Answers:
    async with app.test_app() as running:
        await asyncio.to_thread(while_running)
        client = running.test_client()
        answers = {}
        for path in paths:
            answer = await client.get(path)
            answers[path] = (answer.status_code, await answer.get_data(as_text=True))
        return answers


async def _aiohttp(app: Any, paths: list[str], while_running: Wait) -> Answers:
    from aiohttp.test_utils import TestClient, TestServer

    async with TestClient(TestServer(app)) as client:
        await asyncio.to_thread(while_running)
        answers = {}
        for path in paths:
            async with client.get(path) as answer:
                answers[path] = (answer.status, await answer.text())
        return answers


async def _sanic(app: Any, paths: list[str], while_running: Wait) -> Answers:
    import httpx
    from sanic import Sanic

    app.config.MOTD = False
    # Sanic rewrites its own classes from their source when an application starts, and fails at the second one.
    app.config.TOUCHUP = False
    # Sanic takes its default port instead of port 0.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = await app.create_server(sock=listening, return_asyncio_server=True)
        await server.startup()
        await server.before_start()
        await server.after_start()
        try:
            await asyncio.to_thread(while_running)
            answers = {}
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=PATIENCE, trust_env=False
            ) as client:
                for path in paths:
                    answer = await client.get(path)
                    answers[path] = (answer.status_code, answer.text)
            return answers
        finally:
            await server.before_stop()
            await server.close()
            await server.after_stop()
            Sanic.unregister_app(app)  # a process has one application of a name
