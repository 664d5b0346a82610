"""Sanic: `SanicEtcd(app, "http://m1:2379")`, and `request.app.ctx.etcd` in handlers."""

from typing import TYPE_CHECKING, ClassVar, TypeAlias, Unpack

from etcd_aio.arguments import flag
from etcd_aio.contrib.missing import missing
from etcd_aio.contrib.source import ClientSource
from etcd_aio.contrib.web.application import ApplicationOptions, EtcdApplication

try:
    from sanic import HTTPResponse, Request, Sanic, json
except ModuleNotFoundError as _error:
    raise missing(__name__, "sanic", _error) from _error

if TYPE_CHECKING:
    from types import SimpleNamespace

    from sanic.config import Config

AnySanic: TypeAlias = "Sanic[Config, SimpleNamespace]"
"""An application with Sanic's own types of configuration and context."""

_NOT_STORED = {"Cache-Control": "no-store"}


class SanicEtcd(EtcdApplication):
    """The client of a Sanic application, one in each worker process.

        app = Sanic("name")
        etcd = SanicEtcd(app, "http://m1:2379,http://m2:2379")

    A handler uses `request.app.ctx.etcd`, or `etcd.client`. Listeners of `before_server_start` that are registered
    later have the client, and so have all of `before_server_stop`, and those of `after_server_stop` that are registered
    later. Background tasks begin after the server has started, and end before it stops.

    Args:
        app: the application; without it call `init_app`.
        source: see `EtcdApplication`.
        probes: whether there are `/livez` and `/readyz`. Default: True.
        options: the keyword arguments of `EtcdApplication`.
    """

    wiring: ClassVar[str] = "write `SanicEtcd(app)` where each worker imports it"

    def __init__(
        self,
        app: "AnySanic | None" = None,
        source: ClientSource = None,
        *,
        probes: bool = True,
        **options: Unpack[ApplicationOptions],
    ) -> None:
        super().__init__(source, **options)
        self._has_probes = flag(probes, "probes")
        if app is not None:
            self.init_app(app)

    def init_app(self, app: "AnySanic") -> None:
        """Let each worker of the application run with a client."""
        app.register_listener(self._start, "before_server_start")
        app.register_listener(self._start_jobs, "after_server_start")
        app.register_listener(self._stop_jobs, "before_server_stop")
        app.register_listener(self._stop, "after_server_stop")
        if self._has_probes:
            app.add_route(_livez, "/livez", name="etcd_livez")
            app.add_route(self._readyz, "/readyz", name="etcd_readyz")

    async def _start(self, app: "AnySanic") -> None:
        app.ctx.etcd = await self.start()

    async def _start_jobs(self, app: "AnySanic") -> None:
        self.start_jobs()

    async def _stop_jobs(self, app: "AnySanic") -> None:
        await self.stop_jobs()

    async def _stop(self, app: "AnySanic") -> None:
        await self.stop()

    async def _readyz(self, request: Request) -> HTTPResponse:
        found = await self.readiness()
        return json(found.document(details=self.details), status=found.status, headers=_NOT_STORED)


async def _livez(request: Request) -> HTTPResponse:
    return json({"alive": True}, headers=_NOT_STORED)
