"""EtcdTransport: a transport of httpx and of httpx2, in whose URLs a host may be a service in etcd.

Each endpoint has a transport of its own, with its own pool: an endpoint that is gone takes its idle connections with
it, and a connection that was verified for one service is never used for another one.
"""

import asyncio
import logging
import random
import sys
import types
from collections.abc import AsyncIterator, Callable, Mapping
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, get_args

from etcd_aio.arguments import finite_seconds, whole_number
from etcd_aio.base import start_background_task, when_constructed
from etcd_aio.contrib.discovery.addresses import by_host, dialable, server_name_of
from etcd_aio.contrib.discovery.picking import Picker, PickPolicy, eligible
from etcd_aio.contrib.discovery.running import DEFAULT_DRAIN, Running
from etcd_aio.errors import InvalidRequestError
from etcd_aio.services import Choice, Endpoints, ServiceEndpoint

if TYPE_CHECKING:
    import httpx
    import httpx2

    class _Transport(httpx.AsyncBaseTransport, httpx2.AsyncBaseTransport):  # type: ignore[misc] # untyped if one is missing
        """A transport of either library, to type checkers."""

    _Request: TypeAlias = httpx.Request | httpx2.Request
    _AnyTransport: TypeAlias = httpx.AsyncBaseTransport | httpx2.AsyncBaseTransport
else:
    _Transport = object

logger: Final = logging.getLogger("etcd_aio.discovery")

ServerName: TypeAlias = Literal["service", "metadata"]
"""The name that the certificate of an endpoint must have: the host in the URL, or `server_name` in its metadata."""

DEFAULT_EJECT: Final = 5.0
"""Seconds: a server is back soon, or its entry ends with its lease."""


class EtcdTransport(_Transport):
    """A transport that knows services: `httpx.AsyncClient(transport=EtcdTransport({"api": service}))`.

    A request to `https://api/users` goes to an endpoint of the service: its host and port are those of the endpoint.
    What the server sees does not change: the `Host` header is `api`, and so is the name that its certificate must have.
    Cookies and redirects belong to `api` too. Requests to other hosts are sent as usual.

    A request is repeated, on another endpoint, only if no connection could be made, so that nothing of it was sent.
    Such an endpoint is left out for a while, unless there is no other one.

    When an endpoint is gone, it gets no new request; those under way go on for `drain` seconds. Closing the client
    closes the transport. The services are the caller's: close them later.

    Args:
        services: what `client.resolve()` returned for each host that is a service.
        pick: how an endpoint is picked for a request; or a function that gets the endpoints and returns one of them.
        retries: how many other endpoints are tried if no connection can be made.
        eject: seconds for which an endpoint is left out after that. Default: 5.
        drain: seconds for which requests may go on to an endpoint that is gone. Default: 30, Kubernetes' default for
            shutting down.
        transport: makes the transport of an endpoint, and that for other hosts. Default: `AsyncHTTPTransport()` of the
            library whose client sends the request, with one TLS context for all.
        server_name: the name that the certificate of an endpoint must have. `"metadata"` takes `server_name` in the
            metadata of its entry, if there is one: then those who may write the entry choose which server is trusted.

    Raises:
        InvalidRequestError, TypeError: an argument is invalid.
    """

    def __init__(
        self,
        services: Mapping[str, Endpoints],
        *,
        pick: PickPolicy | Choice = "round_robin",
        retries: int = 1,
        eject: float = DEFAULT_EJECT,
        drain: float = DEFAULT_DRAIN,
        transport: "Callable[[], _AnyTransport] | None" = None,
        server_name: ServerName = "service",
    ) -> None:
        if server_name not in get_args(ServerName):
            words = " or ".join(map(repr, get_args(ServerName)))
            raise InvalidRequestError(f"server_name must be {words}; got {server_name!r}")
        self._retries = whole_number(retries, "retries")
        self._eject = finite_seconds(eject, "eject")
        self._drain = finite_seconds(drain, "drain")
        self._make = transport
        self._trusts_metadata = server_name == "metadata"
        self._contexts: dict[types.ModuleType, object] = {}
        self._making = asyncio.Lock()
        self._plain: Any = None
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._services = {
            host: _ServicePools(self, service, Picker(pick, random.randrange))
            for host, service in by_host(services).items()
        }

    @when_constructed
    def __repr__(self) -> str:
        return f"<EtcdTransport of {', '.join(self._services)}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection. Closing the client does this. Safe to repeat."""
        self._is_closed = True
        pools = [pool for service in self._services.values() for pool in service.end()]
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*self._closing, *(pool.aclose() for pool in pools), return_exceptions=True)
        plain, self._plain = self._plain, None
        if plain is not None:
            await plain.aclose()

    # The type is Any, since one method serves two libraries that do not know each other.
    async def handle_async_request(self, request: "_Request") -> Any:
        """Send a request; called by the client.

        Raises:
            RuntimeError: the transport is closed.
            ConnectError: the library's: the service has no endpoint, or no connection could be made.
            HTTPError: the library's.
        """
        if self._is_closed:
            raise RuntimeError("the transport is closed")
        service = self._services.get(request.url.host)
        if service is None:
            if self._plain is None:
                made = await self.make_transport(_library(request))
                if self._plain is None:  # no other request was faster
                    self._plain = made
            return await self._plain.handle_async_request(request)
        library = _library(request)
        not_connected = (library.ConnectError, library.ConnectTimeout)
        now = asyncio.get_running_loop().time
        tried: list[_EndpointPool] = []
        while True:
            pool = service.pick(now(), tried)
            if pool is None:
                raise library.ConnectError(f"the service {request.url.host!r} has no endpoint", request=request)
            tried.append(pool)
            try:
                return await pool.send(request, library)
            except not_connected as error:
                pool.ejected_until = now() + self._eject
                logger.debug("no connection to %s: %s", pool.endpoint.address, type(error).__name__)
                if len(tried) > self._retries or len(tried) >= len(service.pools):
                    raise

    async def make_transport(self, library: types.ModuleType) -> Any:
        """Make the transport of an endpoint.

        Raises:
            RuntimeError: the transport was closed meanwhile.
        """
        if self._make is not None:
            return self._make()
        async with self._making:
            if library not in self._contexts:  # reads all certificate authorities, which takes long
                self._contexts[library] = await asyncio.to_thread(library.create_ssl_context)
        if self._is_closed:  # nothing would close it
            raise RuntimeError("the transport is closed")
        return library.AsyncHTTPTransport(verify=self._contexts[library])

    def server_name(self, endpoint: ServiceEndpoint) -> str | None:
        """The name that the certificate of an endpoint must have, if its metadata tells it and is trusted."""
        return server_name_of(endpoint) if self._trusts_metadata else None

    def retire(self, pool: "_EndpointPool") -> None:
        """Close the connections to an endpoint that is gone, once its requests have ended."""
        if pool.transport is None and not pool.running:
            return
        task = start_background_task(pool.drain(self._drain), name="etcd_aio drain")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class _ServicePools:
    """The endpoints of a service, each with its pool."""

    def __init__(self, owner: EtcdTransport, service: Endpoints, picker: "Picker[_EndpointPool]") -> None:
        self._owner = owner
        self._service = service
        self._picker = picker
        self._by_address: dict[str, _EndpointPool] = {}
        self.pools: tuple[_EndpointPool, ...] = ()
        self._known: tuple[ServiceEndpoint, ...] | None = None
        self._unsubscribe = service.subscribe(lambda change: self._take(change.endpoints))

    def pick(self, now: float, tried: "list[_EndpointPool]") -> "_EndpointPool | None":
        """The pool for the next request; None if there is none."""
        if self._known is None:
            self._take(self._service.endpoints)
        pools = eligible(self.pools, now, tried)
        return self._picker.pick(pools) if pools else None

    def end(self) -> "list[_EndpointPool]":
        """Follow the service no longer. Returns the pools."""
        self._unsubscribe()
        pools, self.pools, self._by_address = list(self.pools), (), {}
        return pools

    def _take(self, endpoints: tuple[ServiceEndpoint, ...]) -> None:
        self._known = endpoints
        before, self._by_address = self._by_address, {}
        for endpoint in dialable(endpoints):
            pool = before.pop(endpoint.address, None) or _EndpointPool(self._owner)
            pool.endpoint = endpoint
            self._by_address[endpoint.address] = pool
        self.pools = tuple(self._by_address.values())
        for pool in before.values():
            self._owner.retire(pool)


class _EndpointPool(Running):
    """The connections to an endpoint."""

    endpoint: ServiceEndpoint

    def __init__(self, owner: EtcdTransport) -> None:
        super().__init__()
        self._owner = owner
        self.transport: Any = None
        self.ejected_until = 0.0

    async def send(self, request: "_Request", library: types.ModuleType) -> Any:
        """Send a request to the endpoint. It is under way until its response is closed."""
        endpoint = self.endpoint
        self.began()
        try:
            if self.transport is None:
                made = await self._owner.make_transport(library)
                if self.transport is None:
                    self.transport = made
            name = self._owner.server_name(endpoint) or request.url.host
            try:
                url = request.url.copy_with(host=endpoint.host, port=endpoint.port or request.url.port)
            except library.InvalidURL as error:  # of a name that the library refuses: the next endpoint is tried
                raise library.ConnectError(
                    f"{endpoint.address!r} is not an address: {error}", request=request
                ) from None
            response = await self.transport.handle_async_request(
                library.Request(
                    request.method,
                    url,
                    headers=request.headers,
                    stream=request.stream,
                    extensions={"sni_hostname": name, **request.extensions},
                )
            )
            response.stream = _stream_class(library)(response.stream, self.ended)
        except BaseException:  # a cancellation too
            self.ended()
            raise
        return response

    async def drain(self, seconds: float) -> None:
        """Wait until no request is under way, and close the connections."""
        try:
            await self.wait_idle(seconds)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        transport, self.transport = self.transport, None
        if transport is not None:
            await transport.aclose()


class _EndingStream:
    """The body of a response, which tells when it is closed."""

    def __init__(self, stream: Any, on_closed: Callable[[], None]) -> None:
        self._stream = stream
        self._on_closed: Callable[[], None] | None = on_closed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        """Close the body."""
        try:
            await self._stream.aclose()
        finally:
            on_closed, self._on_closed = self._on_closed, None
            if on_closed is not None:
                on_closed()


@lru_cache
def _stream_class(library: types.ModuleType) -> type[_EndingStream]:
    """The class of bodies that the library accepts."""
    return types.new_class("EndingStream", (_EndingStream, library.AsyncByteStream))


def _library(request: "_Request") -> Any:
    """The library of a request: httpx or httpx2."""
    return sys.modules[type(request).__module__.partition(".")[0]]
