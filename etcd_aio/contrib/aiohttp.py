"""aiohttp: `app.cleanup_ctx.append(etcd.context)`, and `request.app[ETCD]` in handlers."""

from collections.abc import AsyncIterator
from typing import ClassVar, Final

from etcd_aio import Client
from etcd_aio.contrib.missing import missing
from etcd_aio.contrib.web.application import EtcdApplication

try:
    from aiohttp import web
except ModuleNotFoundError as _error:
    raise missing(__name__, "aiohttp", _error) from _error

ETCD: Final = web.AppKey("etcd", Client)
"""The key of the client: `request.app[ETCD]`; `request.config_dict[ETCD]` in nested applications too."""

_NOT_STORED: Final = {"Cache-Control": "no-store"}


class EtcdAiohttp(EtcdApplication):
    """The client of an aiohttp application.

        etcd = EtcdAiohttp("http://m1:2379,http://m2:2379")
        app = web.Application()
        app.cleanup_ctx.append(etcd.context)
        app.add_routes(etcd.routes())

    Contexts that come later in the list have the client, and end before it. Background tasks run as long as the client.
    A handler uses `request.app[ETCD]`, or `client_of(request)`, which says what is missing if there is none. The
    arguments are those of `EtcdApplication`.
    """

    wiring: ClassVar[str] = "write `app.cleanup_ctx.append(etcd.context)`"

    async def context(self, app: web.Application) -> AsyncIterator[None]:
        """The client for as long as the application runs, for `app.cleanup_ctx`. It raises what `start` raises."""
        async with self.running() as client:
            app[ETCD] = client
            yield

    def routes(self, *, live: str = "/livez", ready: str = "/readyz") -> list[web.RouteDef]:
        """The probes: liveness, which never asks etcd, and readiness.

        Args:
            live: the path of the former.
            ready: the path of the latter.
        """
        return [web.get(live, self._livez), web.get(ready, self._readyz)]

    async def _livez(self, request: web.Request) -> web.Response:
        return web.json_response({"alive": True}, headers=_NOT_STORED)

    async def _readyz(self, request: web.Request) -> web.Response:
        found = await self.readiness()
        body = found.document(details=self.details)
        return web.json_response(body, status=found.status, headers=_NOT_STORED)


def client_of(request: web.Request) -> Client:
    """The client of the application that got a request.

    Raises:
        RuntimeError: the application does not run with a client.
    """
    found = request.config_dict.get(ETCD)
    if found is None:
        raise EtcdAiohttp.not_running()
    return found
