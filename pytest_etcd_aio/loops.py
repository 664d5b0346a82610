"""ClientLoop: the loop of a test, in which synchronous fixtures open clients and close them."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from etcd_aio import Client

_T = TypeVar("_T")


class ClientLoop:
    """The running loop. It does not run while synchronous fixtures are set up and torn down."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()

    @property
    def is_closed(self) -> bool:
        """Whether its runner has closed it."""
        return self.loop.is_closed()

    def run(self, coroutine: Coroutine[object, object, _T]) -> _T:
        """Run a coroutine to its end."""
        return self.loop.run_until_complete(coroutine)

    @contextmanager
    def opened(self, client: "Client") -> "Iterator[Client]":
        """Enter a client, and close it at the end."""
        try:
            yield self.run(client.connect())
        finally:
            self.run(client.aclose())
