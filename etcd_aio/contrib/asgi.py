"""Starlette, and other frameworks that take a lifespan of its form: `Starlette(lifespan=etcd.lifespan())`."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar, Final, TypeAlias, TypeVar

from etcd_aio import Client
from etcd_aio.contrib.missing import missing
from etcd_aio.contrib.web.application import EtcdApplication

try:
    from starlette.applications import Starlette
    from starlette.requests import HTTPConnection, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ModuleNotFoundError as _error:
    raise missing(__name__, "starlette", _error) from _error

App = TypeVar("App")

State: TypeAlias = Mapping[str, object]
"""The value that a lifespan yields; it becomes `request.state`."""

Lifespan: TypeAlias = Callable[[App], AbstractAsyncContextManager[State]]
"""A context manager around the life of an application."""

InnerLifespan: TypeAlias = Callable[[App], AbstractAsyncContextManager[State | None]]
"""A lifespan of the application, which may yield nothing."""

STATE: Final = "etcd"
"""The name of the client in `request.state`."""

_NOT_STORED: Final = {"Cache-Control": "no-store"}


class EtcdStarlette(EtcdApplication):
    """The client of a Starlette application.

        etcd = EtcdStarlette("http://m1:2379,http://m2:2379")
        app = Starlette(lifespan=etcd.lifespan(), routes=[*etcd.routes(), ...])

    A handler uses `request.state.etcd`, or `client_of(request)`, which says what is missing if there is none. The
    arguments are those of `EtcdApplication`.
    """

    wiring: ClassVar[str] = "write `Starlette(lifespan=etcd.lifespan())`, and let the server run the lifespan"

    def lifespan(self, inner: InnerLifespan[App] | None = None) -> Lifespan[App]:
        """The lifespan of the application. An application has one, so this wraps that of its own.

        Background tasks begin when the inner lifespan has started, and end before it ends.

        Args:
            inner: the lifespan of the application; it runs inside, where `etcd.client` is. What it yields is in
                `request.state` too.

        Returns:
            The lifespan, for `lifespan=`. It raises what `start` raises, and errors of the inner one unchanged.

        Raises:
            TypeError: `inner` is an application: this very method was given to it, and not what it returns.
        """
        if isinstance(inner, Starlette):
            raise TypeError(f"`lifespan` must be called: {self.wiring}")

        @asynccontextmanager
        async def lifespan(app: App) -> AsyncIterator[State]:
            client = await self.start()
            try:
                if inner is None:
                    self.start_jobs()
                    yield {STATE: client}
                    return
                async with inner(app) as state:
                    self.start_jobs()
                    try:
                        yield {STATE: client} | dict(state or {})
                    finally:
                        await self.stop_jobs()
            finally:
                await self.stop()

        return lifespan

    def routes(self, *, live: str = "/livez", ready: str = "/readyz") -> Sequence[Route]:
        """The probes: liveness, which never asks etcd, and readiness.

        Args:
            live: the path of the former.
            ready: the path of the latter.
        """
        return [
            Route(live, self._livez, methods=["GET"], include_in_schema=False),
            Route(ready, self._readyz, methods=["GET"], include_in_schema=False),
        ]

    async def _livez(self, request: Request) -> Response:
        return JSONResponse({"alive": True}, headers=_NOT_STORED)

    async def _readyz(self, request: Request) -> Response:
        found = await self.readiness()
        return JSONResponse(found.document(details=self.details), status_code=found.status, headers=_NOT_STORED)


def client_of(connection: HTTPConnection, wiring: str = EtcdStarlette.wiring) -> Client:
    """The client of the application that got a request, or a WebSocket.

    Args:
        connection: the request.
        wiring: what to write if there is none.

    Raises:
        RuntimeError: the application does not run with a client: its lifespan was not given, or not run.
    """
    found: Client | None = getattr(connection.state, STATE, None)
    if found is None:
        raise RuntimeError(f"there is no etcd client in `request.state`: {wiring}")
    return found
