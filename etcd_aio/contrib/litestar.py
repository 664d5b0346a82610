"""Litestar 2.23 or newer: `Litestar(plugins=[EtcdPlugin("http://m1:2379")])`, and `etcd: EtcdDep` in handlers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar, TypeAlias, Unpack

from etcd_aio import Client
from etcd_aio.arguments import flag
from etcd_aio.contrib.missing import missing
from etcd_aio.contrib.source import ClientSource
from etcd_aio.contrib.web.application import ApplicationOptions, EtcdApplication
from etcd_aio.contrib.web.readiness import Document

try:
    from litestar import Litestar, Response, get
    from litestar.config.app import AppConfig
    from litestar.datastructures import CacheControlHeader
    from litestar.di import NamedDependency, Provide
    from litestar.handlers import HTTPRouteHandler
    from litestar.plugins import InitPlugin
except ModuleNotFoundError as _error:
    raise missing(__name__, "litestar", _error) from _error


EtcdDep: TypeAlias = NamedDependency[Client]
"""The client, as the parameter `etcd` of a handler."""


class EtcdPlugin(EtcdApplication, InitPlugin):
    """The client of a Litestar application: its lifespan, the dependency `etcd`, and the probes.

        etcd = EtcdPlugin("http://m1:2379,http://m2:2379")
        app = Litestar([index], plugins=[etcd])

        @get("/x")
        async def x(etcd: EtcdDep) -> str: ...

    The client is there in `on_startup` and in all lifespans; but Litestar calls `on_shutdown` when all lifespans have
    ended, and so when it is closed: use a lifespan for what needs it.

    Args:
        source: see `EtcdApplication`.
        probes: whether there are `/livez` and `/readyz`. Default: True.
        options: the keyword arguments of `EtcdApplication`.
    """

    wiring: ClassVar[str] = "write `Litestar(plugins=[etcd])`, and let the server run the lifespan"

    def __init__(
        self, source: ClientSource = None, *, probes: bool = True, **options: Unpack[ApplicationOptions]
    ) -> None:
        super().__init__(source, **options)
        self._has_probes = flag(probes, "probes")

    def on_app_init(self, app_config: AppConfig) -> AppConfig:
        """Called by Litestar: the client comes before the other lifespans, and the background tasks after them."""
        app_config.lifespan = [self._client_lifespan, *app_config.lifespan, self._jobs_lifespan]
        app_config.dependencies["etcd"] = Provide(self._provide, sync_to_thread=False)
        app_config.signature_namespace["Client"] = Client
        if self._has_probes:
            app_config.route_handlers.extend([_livez, self._new_readyz()])
        return app_config

    def _provide(self) -> Client:
        return self.client

    @asynccontextmanager
    async def _client_lifespan(self, app: Litestar) -> AsyncIterator[None]:
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    @asynccontextmanager
    async def _jobs_lifespan(self, app: Litestar) -> AsyncIterator[None]:
        self.start_jobs()
        try:
            yield
        finally:
            await self.stop_jobs()

    def _new_readyz(self) -> HTTPRouteHandler:
        @get("/readyz", include_in_schema=False, cache_control=_NOT_STORED)
        async def readyz() -> Response[Document]:
            found = await self.readiness()
            return Response(found.document(details=self.details), status_code=found.status)

        return readyz


_NOT_STORED = CacheControlHeader(no_store=True)


@get("/livez", include_in_schema=False, cache_control=_NOT_STORED)
async def _livez() -> dict[str, bool]:
    return {"alive": True}
