"""Backends for tests: a store without a client, and stores whose operations go through a function."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from etcd_aio import Client
from etcd_aio.backend import Backend, Shared
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.key_space import KeySpace
from etcd_aio.types import EndpointVersions


async def no_versions(timeout: Timeout) -> tuple[EndpointVersions, ...]:
    """What a client without endpoints would return."""
    del timeout
    return ()


def shared(timeout: float | None = 5.0, clock: Callable[[], float] | None = None) -> Shared:
    """What the stores of a client share that has no connections."""
    return Shared("", timeout, clock or (lambda: asyncio.get_running_loop().time()), no_versions)


Do = Callable[..., Awaitable[Any]]


class StandInBackend:
    """A backend whose operations go to a function, and which has nothing else.

    Args:
        do: gets the operation, `timeout` and `retry`.
    """

    def __init__(self, do: Do | None = None) -> None:
        self.shared = shared()
        self.key_space = KeySpace(self)
        self._do = do

    async def do(self, operation: Any, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> Any:
        assert self._do is not None
        return await self._do(operation, timeout=timeout, retry=retry)


def backend_of(do: Do) -> Backend:
    """The same, typed."""
    return cast("Backend", StandInBackend(do))


class ClientWithADetour(Client):
    """A client whose operations take a detour: `detour` gets each, and may send it on by `send`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._beneath = self.backend
        self.backend = _Around(self._beneath, self.detour)

    async def send(self, operation: Any, **options: Any) -> Any:
        """Send an operation on."""
        return await self._beneath.do(operation, **options)

    async def detour(self, operation: Any, **options: Any) -> Any:
        """Gets each operation, with `timeout` and `retry`."""
        return await self.send(operation, **options)


class _Around:
    """A backend whose operations go to a function."""

    def __init__(self, beneath: Backend, do: Do) -> None:
        self.shared, self.key_space, self.leases = beneath.shared, beneath.key_space, beneath.leases
        self.chunks, self.watch = beneath.chunks, beneath.watch
        self._beneath = beneath
        self._do = do

    def __repr__(self) -> str:
        return repr(self._beneath)

    async def do(self, operation: Any, *, timeout: Timeout = UNSET, retry: RetryMode | None = None) -> Any:
        return await self._do(operation, timeout=timeout, retry=retry)
