"""Backend: the connections of a client, or a view that changes the requests to another backend. Each store has one.

Every call of a store makes operations and watches, and its backend carries them out. A view is a backend on top of
another one, such as that of a namespace. What stands on a store needs no more than this: no connection, no retry and
no stream of its own.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar
from weakref import WeakSet, WeakValueDictionary

from etcd_aio import kv
from etcd_aio import watch as watching
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.deadline import NEVER, deadline_after
from etcd_aio.base.key_space import KeySpace
from etcd_aio.dataclass import dataclass
from etcd_aio.exports import late_names
from etcd_aio.kv import KVOperation
from etcd_aio.types import KeyRange, Operation
from etcd_aio.types import WatchView as WatchView

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker
    from etcd_aio.kv import ChunkReader as ChunkReader
    from etcd_aio.lease import Leases
    from etcd_aio.types import EndpointVersions
    from etcd_aio.watch import Watcher, WatchService
    from etcd_aio.watch import WatchOptions as WatchOptions
else:
    __getattr__ = late_names(__name__)[0]

__all__ = ["Backend", "Block", "ChunkReader", "Shared", "WatchCall", "WatchOptions", "WatchView"]

_R = TypeVar("_R")


class Block(Protocol):
    """A block that ends when the client is closed."""

    async def aclose(self) -> None:
        """End it."""
        ...


class Shared:
    """State that all stores of one client share.

    Args:
        name: of the client; empty if it has none.
        timeout: seconds of a call without a `timeout` of its own; None for no limit.
        clock: returns the time of the event loop; raises if the client cannot be used here.
        versions: asks each endpoint for its release.

    Attributes:
        name, versions: see above.
        blocks: those that end when the client is closed.
    """

    __slots__ = ("_clock", "_seconds", "blocks", "name", "versions")

    def __init__(
        self,
        name: str,
        timeout: float | None,
        clock: Callable[[], float],
        versions: "Callable[[Timeout], Awaitable[tuple[EndpointVersions, ...]]]",
    ) -> None:
        self.name = name
        self._seconds = deadline_after(timeout, 0.0)
        self._clock = clock
        self.versions = versions
        self.blocks: WeakSet[Block] = WeakSet()

    def clock(self) -> float:
        """The time of the event loop.

        Raises:
            ClientUsageError: the client is closed, or belongs to another loop or process.
        """
        return self._clock()

    @property
    def timeout(self) -> float | None:
        """Seconds of a call without a `timeout` of its own; None for no limit."""
        return None if self._seconds == NEVER else self._seconds

    def seconds(self, timeout: Timeout) -> float | None:
        """A timeout in seconds; None for no limit.

        Raises:
            InvalidRequestError, TypeError: it is no timeout.
        """
        if timeout is UNSET:
            return self.timeout
        deadline_after(timeout, 0.0)
        return timeout

    def deadline(self, timeout: Timeout) -> float:
        """The instant at which a timeout ends that begins now.

        Raises:
            InvalidRequestError, TypeError: it is no timeout.
        """
        now = self._clock()
        return now + self._seconds if timeout is UNSET else deadline_after(timeout, now)


@dataclass(frozen=True, slots=True)
class WatchCall:
    """One call of `Store.watch`, on its way through the backends.

    Attributes:
        options: those that the server and the stream need, with the keys.
        start_revision: the first revision of interest; 0 is from now on.
        timeout: seconds that entering may take.
        stream: the name of the stream; "" for the common one.
        views: the views that show each batch before the user gets it, in this order: the innermost store first.
    """

    options: "WatchOptions"
    start_revision: int
    timeout: Timeout
    stream: str = ""
    views: tuple[WatchView, ...] = ()

    def shown_by(self, view: WatchView, keys: KeyRange | None = None) -> "WatchCall":
        """The call for the backend beneath.

        Args:
            view: shows the batches of the watch beneath.
            keys: the range there. Default: the same.
        """
        options = self.options if keys is None else replace(self.options, keys=keys)
        return replace(self, options=options, views=(view, *self.views))


class Backend(Protocol):
    """Sends what the calls of a store make: `Store(backend)`. A view takes a backend, and is one."""

    @property
    def shared(self) -> Shared:
        """State that all stores of the client share."""
        ...

    @property
    def key_space(self) -> KeySpace:
        """The cluster or namespace whose keys the operations name."""
        ...

    @property
    def leases(self) -> "Leases":
        """The single lease calls, and the leases of locks."""
        ...

    async def do(self, operation: Operation[_R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> _R:
        """Send one operation; see `Store.do`."""
        ...

    def chunks(self) -> "ChunkReader":
        """A reader of the rest of one scan, as a stream."""
        ...

    def watch(self, call: WatchCall) -> "Watcher":
        """A watch, not entered yet. A view of a store passes `call.shown_by(...)` on."""
        ...


class ClientBackend:
    """The backend of a client: its connections and streams.

    Args:
        invoker: runs calls and streams.
        leases: returns the lease calls of the client, which are imported with the first use.
        shared: what all stores of the client share.
        shown: returns the `repr` of the client.
    """

    __slots__ = ("_common", "_invoker", "_leases", "_services", "_shown", "key_space", "shared")

    def __init__(
        self,
        invoker: "Invoker",
        leases: "Callable[[], Leases]",
        shared: Shared,
        shown: Callable[[], str] = lambda: "<Client>",
    ) -> None:
        self._invoker = invoker
        self._leases = leases
        self.shared = shared
        self.key_space = KeySpace(invoker)
        self._shown = shown
        # Watchers, and open streams, hold them; the common one stays.
        self._services: WeakValueDictionary[str, WatchService] = WeakValueDictionary()
        self._common: WatchService | None = None

    def __repr__(self) -> str:
        return self._shown()

    @property
    def leases(self) -> "Leases":
        """The single lease calls, and the leases of locks."""
        return self._leases()

    async def do(self, operation: Operation[_R], *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> _R:
        """Send one operation; see `Store.do`."""
        if not isinstance(operation, KVOperation):
            raise TypeError(f'do() takes an operation such as op.put("k", "v"), got {type(operation).__name__}')
        reply = await self._invoker.unary(
            operation.method,
            operation.message(),
            timeout=timeout,
            retry=retry,
            repeatable=operation.is_read_only or None,
            needs_leader=not operation.serializable,
        )
        result: _R = operation.result(reply)
        return result

    def chunks(self) -> "ChunkReader":
        """A reader of the rest of one scan, as a stream."""
        return kv.RangeStreamReader(self._invoker)

    def watch(self, call: WatchCall) -> "Watcher":
        """A watch, not entered yet; see `Backend.watch`."""
        service = self._watches_on(call.stream)
        if call.views:
            return watching.ViewedWatcher(service, call.options, call.start_revision, call.timeout, call.views)
        return watching.Watcher(service, call.options, call.start_revision, call.timeout)

    def _watches_on(self, stream: str) -> "WatchService":
        service = self._services.get(stream)
        if service is None:
            service = self._services[stream] = self._service_on(stream)
            if not stream:
                self._common = service
        return service

    def _service_on(self, stream: str) -> "WatchService":
        return watching.WatchService(self._invoker, self.do, stream)
