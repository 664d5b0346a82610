"""Endpoints: the endpoints of a service, kept up to date in memory.

They are read from a cache of the service's prefix, so what holds for caches holds for them: each state is that of etcd
at one revision, and in an outage the last one stays.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import ClassVar, Final, Literal, Self, TypeAlias, get_args

from etcd_aio import EtcdError, EtcdTimeoutError, KeyLike, KeyRange
from etcd_aio.base import UNSET, NotAwaitable, Timeout, deadline_after, when_constructed
from etcd_aio.cache import Cache, CacheChanges
from etcd_aio.calls import StoreCalls
from etcd_aio.errors import InvalidRequestError, NoServiceEndpointError
from etcd_aio.services.endpoint_json import JSONValue, ServiceEndpoint, decode_entry, target_prefix
from etcd_aio.types import shown_keys

PickPolicy: TypeAlias = Literal["round_robin", "random"]
"""How `pick` chooses: all in turn, or any."""

Choice: TypeAlias = Callable[[Sequence[ServiceEndpoint]], ServiceEndpoint]
"""A function that chooses one of the endpoints, of which there is at least one."""

_NONE: Final[tuple[ServiceEndpoint, ...]] = ()


class Endpoints(NotAwaitable):
    """The endpoints of a service: `async with client.resolve("svc/web") as web:`.

    Entering reads them; from then on they follow etcd. All changes of one txn are seen at once. In an outage the last
    ones stay, however long it is, and `age` grows: there is no endpoint only if etcd has said so. Entries that are not
    in the format of Go's `naming/endpoints` are passed over, and logged once.

    Any number of tasks may use one object.
    """

    usage: ClassVar[str] = "endpoints cannot be awaited: write `async with client.resolve(...) as endpoints:`"

    def __init__(
        self, store: StoreCalls, target: KeyLike, *, keep_current: float | None = None, timeout: Timeout = UNSET
    ) -> None:
        self._keys = KeyRange.of(prefix=target_prefix(target))
        self._cache: Cache[tuple[str, JSONValue]] = Cache(
            store, self._keys, decode=decode_entry, keep_current=keep_current, timeout=timeout
        )
        self._endpoints = _NONE
        self._version = -1  # of the content that they were read from
        self._picked = 0

    @when_constructed
    def __repr__(self) -> str:
        return f"<Endpoints {shown_keys(self._keys.key, self._keys.range_end)} of {self._cache!r}>"

    # The block.

    async def __aenter__(self) -> Self:
        """Read the endpoints.

        Raises:
            EtcdError: they could not be read.
            ClientUsageError: it was entered before, or the client is closed.

        Cancellation leaves nothing behind.
        """
        await self._cache.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._cache.aclose()

    async def aclose(self) -> None:
        """End the watch. Leaving does this. Safe to repeat."""
        await self._cache.aclose()

    # State.

    @property
    def endpoints(self) -> tuple[ServiceEndpoint, ...]:
        """The endpoints, as they are here, in the order of their keys. It is a plain read from memory.

        Raises:
            CacheError: the block was not entered, was left, or has ended: the client is closed, or the user may not
                read the prefix any more.
        """
        cache = self._cache
        if cache.content_version != self._version:
            entries = cache.range()  # raises if it has ended
            self._endpoints = tuple(self._endpoint(key, *entry) for key, entry in entries.items())
            self._version = cache.content_version
        else:
            len(cache)  # raises if it has ended
        return self._endpoints

    def _endpoint(self, key: bytes, address: str, metadata: JSONValue) -> ServiceEndpoint:
        kv = self._cache.kv(key)
        return ServiceEndpoint(key, address, metadata, 0 if kv is None else kv.mod_revision)

    def __len__(self) -> int:
        return len(self.endpoints)

    def __bool__(self) -> bool:
        return True  # also without endpoints: it is a connection, rather than a container

    @property
    def cache(self) -> Cache[tuple[str, JSONValue]]:
        """The cache that they are read from: `await web.cache.wait_current()` brings them up to date."""
        return self._cache

    @property
    def revision(self) -> int:
        """The revision of etcd at which the endpoints were as they are here."""
        return self._cache.revision

    @property
    def age(self) -> float:
        """Seconds: every change that was made longer ago is seen. See `Cache.age`; with `keep_current` it is small."""
        return self._cache.age

    # Followers.

    def changes(self) -> "EndpointChanges":
        """Follow the endpoints: `async for endpoints in web.changes():`.

        The present ones come at once, then those after each change. Only a consumer that is slower than the changes
        misses some in between; the newest ones always come.

        Raises:
            CacheError: as `endpoints`.
        """
        return EndpointChanges(self, self._cache.changes())

    async def wait_any(self, *, timeout: float | None = None) -> tuple[ServiceEndpoint, ...]:
        """Wait until there is at least one endpoint.

        Args:
            timeout: seconds. Default: None, no limit.

        Returns:
            The endpoints.

        Raises:
            EtcdTimeoutError: there was none in time.
            CacheError: as `endpoints`.

        Cancellation leaves nothing behind.
        """
        deadline_after(timeout, 0.0)
        if self.endpoints:
            return self.endpoints
        changes = self.changes()
        try:
            async with asyncio.timeout(timeout):
                async for endpoints in changes:
                    if endpoints:
                        return endpoints
        except TimeoutError as error:
            if isinstance(error, EtcdError):
                raise
            shown = shown_keys(self._keys.key, self._keys.range_end)
            raise EtcdTimeoutError(f"there was no endpoint under {shown} in time") from None
        finally:
            await changes.aclose()
        return self.endpoints  # raises, since the block was left

    def pick(self, policy: PickPolicy | Choice = "round_robin") -> ServiceEndpoint:
        """Choose an endpoint. It is a plain read from memory.

        Args:
            policy: `"round_robin"` takes all in turn, `"random"` takes any; or a function that gets all of them.

        Raises:
            NoServiceEndpointError: there is none now. `wait_any` waits for one.
            InvalidRequestError: there is no such policy.
            CacheError: as `endpoints`.
        """
        if not callable(policy) and policy not in get_args(PickPolicy):
            words = ", ".join(map(repr, get_args(PickPolicy)))
            raise InvalidRequestError(f"policy must be one of {words}, or a function; got {policy!r}")
        endpoints = self.endpoints
        if not endpoints:
            raise NoServiceEndpointError(
                f"there is no endpoint under {shown_keys(self._keys.key, self._keys.range_end)}"
            )
        if callable(policy):
            return policy(endpoints)
        if policy == "random":
            return random.choice(endpoints)
        self._picked += 1
        return endpoints[(self._picked - 1) % len(endpoints)]


class EndpointChanges(AsyncIterator[tuple[ServiceEndpoint, ...]]):
    """The endpoints of a service after each change; made by `Endpoints.changes`. Cancelling a step loses nothing."""

    def __init__(self, owner: Endpoints, changes: CacheChanges) -> None:
        self._owner = owner
        self._changes = changes
        self._told: tuple[ServiceEndpoint, ...] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[ServiceEndpoint, ...]:
        if self._told is None:
            self._told = self._owner.endpoints
            return self._told
        while True:
            await anext(self._changes)
            endpoints = self._owner.endpoints
            if endpoints != self._told:
                self._told = endpoints
                return endpoints

    async def aclose(self) -> None:
        """End the iteration. Safe to repeat."""
        if self._told is None:
            self._told = _NONE  # the present ones do not come any more
        await self._changes.aclose()
