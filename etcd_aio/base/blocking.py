"""Blocking: what all classes for blocking code have in common, so that code of asyncio can refuse their objects."""


class Blocking:
    """Base class of all classes of `etcd_aio.sync`."""

    __slots__ = ()


def check_asyncio(given: object, name: str) -> None:
    """Check that an argument is not an object for blocking code.

    Raises:
        TypeError: it is one. `name` is that of the argument.
    """
    if isinstance(given, Blocking):
        kind = type(given).__name__
        raise TypeError(
            f"{name} is a {kind} of etcd_aio.sync, for blocking code, and this is for asyncio: use etcd_aio.Client, or "
            "the class of this name in etcd_aio.sync if there is one"
        )
