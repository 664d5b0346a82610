"""Says what to write where a caller uses an object in another way than by `async with`."""

from typing import TYPE_CHECKING, ClassVar, NoReturn

from etcd_aio.errors import ClientUsageError


class AsyncBlock:
    """Base class of objects that are used by `async with`."""

    __slots__ = ()

    if not TYPE_CHECKING:  # hidden from type checkers, so that they report the mistake

        def __enter__(self) -> NoReturn:
            text = "this block is asynchronous: write `async with` instead of `with`, or use etcd_aio.sync"
            raise ClientUsageError(text)

        def __exit__(self, *_: object) -> None: ...


class NotAwaitable(AsyncBlock):
    """Base class of objects that are made by a plain call, such as `client.lock(...)`, and used by `async with`.

    Attributes:
        usage: the text of the error that awaiting one raises.
    """

    __slots__ = ()

    usage: ClassVar[str]

    if not TYPE_CHECKING:  # hidden from type checkers, so that they report the mistake

        def __await__(self) -> NoReturn:
            raise ClientUsageError(self.usage)
