"""Backends for tests: a store without a client, and stores whose operations go through a function."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

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
