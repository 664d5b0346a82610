"""Tracebacks of errors: short, and without secrets even where local variables are shown, as crash reporters do."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import dropwhile
from pathlib import Path
from types import TracebackType

import pytest

import etcd_aio
from etcd_aio import Client
from etcd_aio.errors import (
    AuthenticationFailedError,
    EtcdTimeoutError,
    FutureRevisionError,
    InvalidTokenError,
    NoAvailableEndpointsError,
    PermissionDeniedError,
    TokenUnavailableError,
    TransportError,
)
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.auth import QUICK_LOGINS, ROOT, WEB, enable_auth
from tests.support.canary import chain
from tests.support.versions import need

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine")]

PACKAGE = str(Path(etcd_aio.__file__).parent)
WRONG = ("web", "wrong-c4n4ry")


async def failure_of(call: Callable[[], Awaitable[object]]) -> BaseException:
    try:
        await call()
    except BaseException as error:
        return error
    raise AssertionError("it did not fail")


def frames(traceback_: TracebackType | None) -> list[traceback.FrameSummary]:
    """Those behind the last one of this test, with their local variables."""
    found = traceback.StackSummary.extract(traceback.walk_tb(traceback_), capture_locals=True)
    return list(dropwhile(lambda frame: not frame.filename.startswith(PACKAGE), found))


def shown(error: BaseException) -> str:
    """All that a reporter could show of an error, its causes and contexts."""
    lines: list[str] = []
    for one in chain(error):
        lines += traceback.format_exception_only(one)
        for frame in frames(one.__traceback__):
            lines += [f"{frame.filename} {frame.name}"]
            lines += [f"  {name} = {value}" for name, value in (frame.locals or {}).items()]
    return "\n".join(lines)


@pytest.mark.both_engines
async def test_no_error_shows_a_password_or_a_token() -> None:
    need("3.4.25", "3.5.8", why="older ones say 'permission denied' of a token that expired")
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(EtcdServer(flags=(QUICK_LOGINS, "--auth-token-ttl=2")))
        await enable_auth(server, web=True)
        proxy = await stack.enter_async_context(FaultProxy(server.endpoint))

        async def new(**options: object) -> Client:
            client = Client(proxy.endpoint, allow_insecure_auth=True, timeout=10, **options)  # type: ignore[arg-type]
            return await stack.enter_async_context(client)

        async with Client(server.endpoint, auth=ROOT, allow_insecure_auth=True) as root:
            token = (await root.auth.authenticate(*WEB)).token
            asked = 0

            async def give() -> str:
                nonlocal asked
                asked += 1
                return token

            client, wrong = await new(auth=WEB), await new(auth=WRONG)
            fixed, asking = await new(token=token), await new(token=give)
            stale = await new(token="stale-c4n4ry.1")
            for one in (client, fixed, asking):
                await one.put("app/k", "v")
            secrets = [token, "c4n4ry", client._invoker._tokens.state.token]

            async def check(kind: type[BaseException], call: Callable[[], Awaitable[object]]) -> None:
                error = await failure_of(call)
                assert isinstance(error, kind), repr(error)
                text = shown(error)
                assert PACKAGE in text
                for secret in secrets:
                    assert secret not in text, f"{kind.__name__}: {text.replace(secret, '!!!')}"

            def watched(one: Client) -> Callable[[], Awaitable[object]]:
                async def watch() -> None:
                    async with one.watch("app/k", timeout=10):
                        pass

                return watch

            async def scan() -> None:
                async for _ in fixed.scan(prefix="web/"):
                    pass

            async def cancelled() -> None:
                task = asyncio.create_task(client.put("app/k", "v"))
                asyncio.get_running_loop().call_later(0.1, task.cancel)
                await task

            async def in_a_scope() -> None:
                async with asyncio.timeout(0.1):
                    await asking.get("app/k")

            await check(AuthenticationFailedError, lambda: wrong.get("app/k"))
            await check(AuthenticationFailedError, watched(wrong))
            await check(InvalidTokenError, lambda: stale.put("app/k", "v"))
            await check(InvalidTokenError, watched(stale))
            await check(PermissionDeniedError, lambda: client.put("web/k", "v"))
            await check(PermissionDeniedError, scan)
            await check(FutureRevisionError, lambda: fixed.range("app/k", revision=10**9))
            server.pause()
            await check(EtcdTimeoutError, lambda: client.put("app/k", "v", timeout=0.2))
            await check(EtcdTimeoutError, lambda: fixed.get("app/k", timeout=0.2))
            await check(asyncio.CancelledError, cancelled)
            await check(TimeoutError, in_a_scope)
            asyncio.get_running_loop().call_later(0.1, proxy.reset)
            await check(TransportError, lambda: client.put("app/k", "v"))
            proxy.refuse()
            await check(NoAvailableEndpointsError, lambda: fixed.get("app/k", timeout=0.5))
            server.resume()
            proxy.heal()
            await client.put("app/k", "v")
            await root.auth.user_change_password("web", "other-c4n4ry")  # which ends all tokens of the user
            await check(AuthenticationFailedError, lambda: client.get("app/k"))
            await check(InvalidTokenError, lambda: asking.get("app/k"))
            assert asked == 2
        await client.aclose()
        await check(etcd_aio.ClientClosedError, lambda: client.get("app/k"))


async def test_a_traceback_tells_where_the_call_was_made_and_little_else() -> None:
    async with EtcdServer() as server, Client(server.endpoint) as client:
        error = await failure_of(lambda: client.range("k", revision=10**9))
        text = "".join(traceback.format_exception(error))
        assert "AttemptFailure" not in text
        assert "direct cause" not in text
        assert "During handling" not in text
        assert len(frames(error.__traceback__)) <= 8


async def test_a_functions_error_is_the_cause_that_users_see() -> None:
    async def give() -> str:
        raise OSError("of the user's own")

    async with EtcdServer() as server, Client(server.endpoint, token=give, allow_insecure_auth=True) as client:
        error = await failure_of(lambda: client.get("k"))
        assert isinstance(error, TokenUnavailableError)
        assert isinstance(error.__cause__, OSError)
