"""NotAwaitable: says what to write where a caller awaits an object that is used in another way."""

from typing import TYPE_CHECKING, ClassVar, NoReturn

from etcd_aio.errors import ClientUsageError


class NotAwaitable:
    """Base class of objects that are made by a plain call, such as `client.lock(...)`, and used by `async with`.

    Attributes:
        usage: the text of the error that awaiting one raises.
    """

    __slots__ = ()

    usage: ClassVar[str]

    if not TYPE_CHECKING:  # hidden from type checkers, so that they report the mistake

        def __await__(self) -> NoReturn:
            raise ClientUsageError(self.usage)
