"""FastAPI: `FastAPI(lifespan=etcd.lifespan())`, and `EtcdDep` in handlers."""

from typing import Annotated, ClassVar, TypeAlias

from etcd_aio import Client
from etcd_aio.contrib.missing import missing

try:
    from fastapi import APIRouter, Depends
    from fastapi.requests import HTTPConnection
except ModuleNotFoundError as _error:
    raise missing(__name__, "fastapi", _error) from _error

from etcd_aio.contrib.asgi import EtcdStarlette, client_of


class EtcdFastAPI(EtcdStarlette):
    """The client of a FastAPI application.

        etcd = EtcdFastAPI("http://m1:2379,http://m2:2379")
        app = FastAPI(lifespan=etcd.lifespan())
        app.include_router(etcd.probes())

        @app.get("/x")
        async def x(client: EtcdDep) -> str: ...

    Applications that are mounted in this one have the client too; their own lifespans are not run by FastAPI. The
    arguments are those of `EtcdApplication`.
    """

    wiring: ClassVar[str] = "write `FastAPI(lifespan=etcd.lifespan())`, and let the server run the lifespan"

    def probes(self, *, live: str = "/livez", ready: str = "/readyz") -> APIRouter:
        """The probes, for `app.include_router`: liveness, which never asks etcd, and readiness.

        Args:
            live: the path of the former.
            ready: the path of the latter.
        """
        router = APIRouter()
        for path, endpoint in ((live, self._livez), (ready, self._readyz)):
            router.add_route(path, endpoint, methods=["GET"], include_in_schema=False)
        return router


def _client(connection: HTTPConnection) -> Client:
    return client_of(connection, EtcdFastAPI.wiring)


EtcdDep: TypeAlias = Annotated[Client, Depends(_client)]
"""The client, as a parameter of a handler. Tests may replace it: `app.dependency_overrides[etcd_client]`."""

etcd_client = _client
"""The dependency of `EtcdDep`."""
