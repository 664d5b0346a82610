"""Quart: `QuartEtcd(app, "http://m1:2379")`, and `etcd.client` in handlers."""

from typing import TYPE_CHECKING, ClassVar, Final, Unpack, cast

from etcd_aio import Client
from etcd_aio.arguments import flag
from etcd_aio.contrib.missing import missing
from etcd_aio.contrib.source import ClientSource
from etcd_aio.contrib.web.application import ApplicationOptions, EtcdApplication

try:
    from quart import Quart, Response, current_app, jsonify
except ModuleNotFoundError as _error:
    raise missing(__name__, "quart", _error) from _error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_EXTENSION: Final = "etcd"


class QuartEtcd(EtcdApplication):
    """The client of a Quart application.

        app = Quart(__name__)
        etcd = QuartEtcd(app, "http://m1:2379,http://m2:2379")

    A handler uses `etcd.client`, or `current_client()` where the object is not at hand. Functions
    of `while_serving` that are registered later have the client; those of `before_serving` come before it, and those of
    `after_serving` after its end.

    Args:
        app: the application; without it call `init_app`.
        source: see `EtcdApplication`.
        probes: whether there are `/livez` and `/readyz`. Default: True.
        options: the keyword arguments of `EtcdApplication`.
    """

    wiring: ClassVar[str] = "write `QuartEtcd(app)`, and let the server run the lifespan"

    def __init__(
        self,
        app: Quart | None = None,
        source: ClientSource = None,
        *,
        probes: bool = True,
        **options: Unpack[ApplicationOptions],
    ) -> None:
        super().__init__(source, **options)
        self._has_probes = flag(probes, "probes")
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Quart) -> None:
        """Let the application run with the client."""
        app.extensions[_EXTENSION] = self
        app.while_serving(lambda: cast("AsyncGenerator[None, None]", _Serving(self, app)))
        if self._has_probes:
            app.add_url_rule("/livez", "etcd_livez", _livez)
            app.add_url_rule("/readyz", "etcd_readyz", self._readyz)

    async def _readyz(self) -> Response:
        found = await self.readiness()
        return _answer(found.document(details=self.details), found.status)


class _Serving:
    """A generator stand-in that survives several starts of one Quart app.

    Quart asks `while_serving` for one only, so a real generator would fail when the application starts again.
    """

    def __init__(self, etcd: QuartEtcd, app: Quart) -> None:
        self._etcd = etcd
        self._app = app

    async def __anext__(self) -> None:
        if not self._app.shutdown_event.is_set():  # each start has an event of its own
            await self._etcd.start()
            self._etcd.start_jobs()
        else:
            await self._etcd.stop()
            raise StopAsyncIteration


def _answer(body: object, status: int) -> Response:
    response = jsonify(body)
    response.status_code = status
    response.headers["Cache-Control"] = "no-store"
    return response


async def _livez() -> Response:
    return _answer({"alive": True}, 200)


def current_client() -> Client:
    """The client of the current application.

    Raises:
        RuntimeError: the application does not run with a client.
    """
    found = current_app.extensions.get(_EXTENSION)
    if not isinstance(found, QuartEtcd):
        raise QuartEtcd.not_running()
    return found.client
