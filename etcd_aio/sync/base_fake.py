"""BaseFake: a fake etcd for blocking code. It has a loop while a client of it has one, or for a single call."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from etcd_aio.portal import Block, Facade, Portal

T = TypeVar("T")


class BaseFake(Facade):
    """Base of the blocking fake, which has its functions."""

    @property
    def _aio(self) -> Any:
        return self._object

    def _run(self, function: Callable[..., object], /, *arguments: object, **keywords: object) -> Any:
        portal = Portal("fake etcd")
        try:
            return portal.call(function, arguments, keywords)
        finally:
            portal.close()

    @contextmanager
    def _within(self, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Run a block of asyncio around one of blocking code."""
        portal = Portal("fake etcd")
        try:
            with Block._around(context, portal) as value:
                yield value
        finally:
            portal.close()

    def __enter__(self) -> Self:
        self._run(self._object.__aenter__)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._object.close()
