"""Source: where the client of an application comes from, in the forms in which settings have it."""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from etcd_aio import Client

ClientSource: TypeAlias = str | Iterable[str] | Callable[[], Client] | None
"""Endpoints as `Client` takes them, a URL as `Client.from_url` takes it, or a function that makes a client."""

_URL_SCHEMES: Final = ("etcd://", "etcds://", "etcd+", "etcds+")


def new_client(source: ClientSource) -> Client:
    """Make a client.

    Raises:
        ConfigError: the endpoints or the URL are invalid.
        TypeError: the function returned something else.
    """
    if callable(source):
        client = source()
        if not isinstance(client, Client):
            raise TypeError(f"the function must return a Client, not {type(client).__name__}")
        return client
    if isinstance(source, str) and source.lower().startswith(_URL_SCHEMES):
        return Client.from_url(source)
    return Client(source)
