"""EtcdChannel: a channel of `grpc.aio` whose calls go to the endpoints of a service in etcd.

grpcio has no resolver for Python programs. So there is a channel of grpcio for each endpoint (`subchannels.py`), and
this one picks among those that are connected, as the policy "round_robin" of gRPC does. A call that finds one is a call
of that channel, with nothing in between. A call that finds none begins as a call of a channel that never connects: its
interceptor waits, and continues on a channel that does.
"""

import asyncio
import random
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Final, Self, TypeAlias
from weakref import WeakKeyDictionary

from etcd_aio.contrib.missing import missing

try:
    import grpc
    import grpc.aio
except ModuleNotFoundError as _error:
    raise missing(__name__, "grpcio", _error) from _error

from etcd_aio.arguments import finite_seconds
from etcd_aio.base import NEVER, Waiters, when_constructed
from etcd_aio.contrib.discovery.picking import Picker, PickPolicy
from etcd_aio.contrib.discovery.running import DEFAULT_DRAIN
from etcd_aio.contrib.discovery.subchannels import Subchannel
from etcd_aio.services import Choice, Endpoints, ServiceEndpoint

State: TypeAlias = grpc.ChannelConnectivity

_NOWHERE: Final = "unix:/nonexistent"  # what never connects, since no call of it is continued


class EtcdChannel(grpc.aio.Channel):
    """A channel to all endpoints of a service: `async with EtcdChannel(service) as channel:`, as any other channel.

    Stubs are made of it as of any channel. It connects to all endpoints, and each call goes to one that is connected. A
    call that finds none waits while a connection is being made; if none can be made, it fails with `UNAVAILABLE`, or
    waits with `wait_for_ready=True`, as on other channels.

    When an endpoint is gone, it gets no new call; those under way go on for `drain` seconds, and are cancelled then.
    Calls are repeated as grpcio does it, on the same endpoint: give it a retry policy by `options`, if need be.

    Make it in the event loop. The service is the caller's, and must have been entered: close it later.

    Args:
        service: what `client.resolve()` returned.
        credentials: those of the channels; None for channels without TLS.
        policy: how an endpoint is picked for a call; or a function that gets the endpoints and returns one of them.
        server_name: the name that certificates must have, and `:authority` of calls. Default: the host of each
            endpoint.
        options: those of each channel.
        compression: that of each channel.
        interceptors: those of each channel.
        drain: seconds for which calls may go on to an endpoint that is gone. Default: 30, Kubernetes' default for
            shutting down.

    Raises:
        ClientUsageError: the service was not entered.
        InvalidRequestError, TypeError: an argument is invalid.
    """

    def __init__(
        self,
        service: Endpoints,
        credentials: grpc.ChannelCredentials | None = None,
        *,
        policy: PickPolicy | Choice = "round_robin",
        server_name: str | None = None,
        options: Iterable[tuple[str, Any]] = (),
        compression: grpc.Compression | None = None,
        interceptors: Sequence[grpc.aio.ClientInterceptor] = (),
        drain: float = DEFAULT_DRAIN,
    ) -> None:
        self._picker: Picker[Subchannel] = Picker(policy, random.randrange)
        self._drain = finite_seconds(drain, "drain")
        self._credentials = credentials
        self._options = [*options]
        if server_name is not None:
            self._options.append(("grpc.default_authority", server_name))
            if credentials is not None:
                self._options.append(("grpc.ssl_target_name_override", server_name))
        self._compression = compression
        self._interceptors = list(interceptors)
        self._subchannels: dict[str, Subchannel] = {}
        self._ready: list[Subchannel] = []
        self._leaving: set[asyncio.Task[None]] = set()
        self._changed = Waiters()
        self._is_closed = False
        self._waiting: dict[str, tuple[_Method, dict[str, Any]]] = {}  # calls that find no channel, by their numbers
        self._numbers = count()
        self._nowhere: grpc.aio.Channel | None = None
        self._service = service
        self._take(service.endpoints)
        self._unsubscribe = service.subscribe(lambda change: self._take(change.endpoints))

    @when_constructed
    def __repr__(self) -> str:
        return f"<EtcdChannel of {self._service!r}, {len(self._ready)} of {len(self._subchannels)} connected>"

    # The endpoints.

    def _take(self, endpoints: Iterable[ServiceEndpoint]) -> None:
        before, self._subchannels = self._subchannels, {}
        for endpoint in endpoints:
            subchannel = before.pop(endpoint.address, None) or self._subchannels.get(endpoint.address)
            if subchannel is None:
                subchannel = Subchannel(endpoint, self._make(endpoint.address), self._on_state)
            subchannel.endpoint = endpoint
            self._subchannels[endpoint.address] = subchannel
        for subchannel in before.values():
            self._retire(subchannel, self._drain)
        self._on_state()

    def _make(self, address: str) -> grpc.aio.Channel:
        options, interceptors = self._options, self._interceptors
        if self._credentials is None:
            return grpc.aio.insecure_channel(address, options, self._compression, interceptors)
        return grpc.aio.secure_channel(address, self._credentials, options, self._compression, interceptors)

    def _retire(self, subchannel: Subchannel, seconds: float) -> None:
        task = subchannel.leave(seconds)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def _on_state(self) -> None:
        ready = State.READY
        self._ready = [subchannel for subchannel in self._subchannels.values() if subchannel.state is ready]
        self._changed.wake()

    # Calls.

    def start(self, method: "_Method", argument: object, options: dict[str, Any]) -> Any:
        """Start a call.

        Raises:
            UsageError: the channel is closed.
        """
        if self._is_closed:
            raise grpc.aio.UsageError("Channel is closed.")
        if self._ready:
            return method.call(self._picker.pick(self._ready), argument, options)
        if self._nowhere is None:
            self._nowhere = grpc.aio.insecure_channel(_NOWHERE, interceptors=_interceptors(self._start_later))
        number = f"/{next(self._numbers)}"
        timeout = options.get("timeout")
        deadline = NEVER if timeout is None else asyncio.get_running_loop().time() + timeout
        self._waiting[number] = method, {**options, "deadline": deadline}
        call = getattr(self._nowhere, method.kind)(number)(argument, timeout=timeout)
        call.add_done_callback(lambda _: self._waiting.pop(number, None))
        return call

    async def _start_later(
        self, continuation: object, details: grpc.aio.ClientCallDetails, argument: object
    ) -> Any:  # a call, which is of four kinds
        number = details.method.decode() if isinstance(details.method, bytes) else details.method
        method, options = self._waiting.pop(number)
        deadline = options.pop("deadline")
        subchannel = await self._pick_later(deadline, waits=bool(options.get("wait_for_ready")))
        if deadline != NEVER:
            options["timeout"] = max(deadline - asyncio.get_running_loop().time(), 0.0)
        return method.call(subchannel, argument, options)

    async def _pick_later(self, deadline: float, *, waits: bool) -> Subchannel:
        """Wait for a channel that is connected; or pick one whose error is the answer, since none can be."""
        while True:
            if self._is_closed:
                raise _rpc_error(grpc.StatusCode.CANCELLED, "Channel closed!")
            if self._ready:
                return self._picker.pick(self._ready)
            subchannels = list(self._subchannels.values())
            if not waits and all(one.state is State.TRANSIENT_FAILURE for one in subchannels):
                if not subchannels:
                    raise _rpc_error(grpc.StatusCode.UNAVAILABLE, f"no endpoint: {self._service!r}")
                return self._picker.pick(subchannels)
            if not await self._changed.wait(deadline):
                raise _rpc_error(grpc.StatusCode.DEADLINE_EXCEEDED, f"no connection: {self._service!r}")

    # `grpc.aio.Channel`.

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> "grpc.aio.UnaryUnaryMultiCallable[Any, Any]":
        """See `grpc.aio.Channel`."""
        return _UnaryUnary(self, "unary_unary", method, request_serializer, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> "grpc.aio.UnaryStreamMultiCallable[Any, Any]":
        """See `grpc.aio.Channel`."""
        return _UnaryStream(self, "unary_stream", method, request_serializer, response_deserializer)

    def stream_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> "grpc.aio.StreamUnaryMultiCallable[Any, Any]":
        """See `grpc.aio.Channel`."""
        return _StreamUnary(self, "stream_unary", method, request_serializer, response_deserializer)

    def stream_stream(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> "grpc.aio.StreamStreamMultiCallable[Any, Any]":
        """See `grpc.aio.Channel`."""
        return _StreamStream(self, "stream_stream", method, request_serializer, response_deserializer)

    def get_state(self, try_to_connect: bool = False) -> State:
        """The state: the best one of any endpoint. It always tries to connect. Without endpoints, it has failed."""
        if self._is_closed:
            return State.SHUTDOWN
        states = {subchannel.state for subchannel in self._subchannels.values()}
        for state in State.READY, State.CONNECTING, State.IDLE:
            if state in states:
                return state
        return State.TRANSIENT_FAILURE

    async def wait_for_state_change(self, last_observed_state: State) -> None:
        """Wait until the state is another one."""
        while self.get_state() is last_observed_state:
            await self._changed.wait(NEVER)

    async def channel_ready(self) -> None:
        """Wait until a call could begin.

        Raises:
            UsageError: the channel is closed.
        """
        while (state := self.get_state()) is not State.READY:
            if state is State.SHUTDOWN:
                raise grpc.aio.UsageError("Channel is closed.")
            await self._changed.wait(NEVER)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Close the channel.

        Args:
            grace: seconds for which calls under way may go on; None cancels them at once.

        Cancellation closes it in the background.
        """
        if not self._is_closed:
            self._is_closed = True
            self._unsubscribe()
            for task in self._leaving:
                task.cancel()
            subchannels, self._subchannels, self._ready = self._subchannels, {}, []
            for subchannel in subchannels.values():
                self._retire(subchannel, grace or 0.0)
            self._changed.wake()
        if self._leaving:
            await asyncio.wait(self._leaving)
        if self._nowhere is not None:
            await self._nowhere.close()


class _Method:
    """A method of a service, as a stub has it."""

    def __init__(
        self,
        owner: EtcdChannel,
        kind: str,
        method: str,
        request_serializer: Callable[[Any], bytes] | None,
        response_deserializer: Callable[[bytes], Any] | None,
    ) -> None:
        self._owner = owner
        self.kind = kind
        self._arguments = method, request_serializer, response_deserializer
        self._made: WeakKeyDictionary[Subchannel, Callable[..., Any]] = WeakKeyDictionary()

    def call(self, subchannel: Subchannel, argument: object, options: dict[str, Any]) -> Any:
        """Call it on a channel."""
        made = self._made.get(subchannel)
        if made is None:
            made = self._made[subchannel] = getattr(subchannel.channel, self.kind)(*self._arguments)
        return subchannel.start(made, argument, options)

    def _start(self, argument: object, options: dict[str, Any]) -> Any:
        return self._owner.start(self, argument, options)


_Requests: TypeAlias = "AsyncIterable[Any] | Iterable[Any] | None"
_Metadata: TypeAlias = "grpc.aio.Metadata | Sequence[tuple[str, str | bytes]] | None"


class _StreamMethod(_Method):
    """A method whose requests are a stream: its options may be given by their positions, as in grpcio."""

    def __call__(
        self,
        request_iterator: _Requests = None,
        timeout: float | None = None,
        metadata: _Metadata = None,
        credentials: grpc.CallCredentials | None = None,
        wait_for_ready: bool | None = None,
        compression: grpc.Compression | None = None,
    ) -> Any:
        options = {
            "timeout": timeout,
            "metadata": metadata,
            "credentials": credentials,
            "wait_for_ready": wait_for_ready,
            "compression": compression,
        }
        return self._start(request_iterator, options)


class _UnaryMethod(_Method):
    """A method with one request."""

    def __call__(self, request: Any, **options: Any) -> Any:
        return self._start(request, options)


class _UnaryUnary(_UnaryMethod, grpc.aio.UnaryUnaryMultiCallable[Any, Any]):
    pass


class _UnaryStream(_UnaryMethod, grpc.aio.UnaryStreamMultiCallable[Any, Any]):
    pass


class _StreamUnary(_StreamMethod, grpc.aio.StreamUnaryMultiCallable[Any, Any]):
    pass


class _StreamStream(_StreamMethod, grpc.aio.StreamStreamMultiCallable[Any, Any]):
    pass


def _interceptors(start: Callable[..., Any]) -> list[grpc.aio.ClientInterceptor]:
    """Interceptors of the four kinds of calls, of which grpcio wants one each, that are continued by `start`."""

    async def intercept(_: object, continuation: object, details: grpc.aio.ClientCallDetails, argument: object) -> Any:
        return await start(continuation, details, argument)

    bases = {
        "intercept_unary_unary": grpc.aio.UnaryUnaryClientInterceptor,
        "intercept_unary_stream": grpc.aio.UnaryStreamClientInterceptor,
        "intercept_stream_unary": grpc.aio.StreamUnaryClientInterceptor,
        "intercept_stream_stream": grpc.aio.StreamStreamClientInterceptor,
    }
    return [type("Interceptor", (base,), {name: intercept})() for name, base in bases.items()]


def _rpc_error(code: grpc.StatusCode, details: str) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=details)
