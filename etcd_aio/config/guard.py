"""The options of the client that renews guarded leases in another thread: those of the client of the application."""

import asyncio
from typing import Final

from etcd_aio.config.options import ClientOptions
from etcd_aio.error_handler import TokenFunction
from etcd_aio.errors import ClientUsageError

_SUFFIX: Final = ":guard"
_LONGEST_NAME: Final = 64  # as of every client


def guard_options(options: ClientOptions) -> ClientOptions:
    """The options of that client. Observers stay in the loop of the application, which is the running one.

    Raises:
        ClientUsageError: the engine may belong to this loop.
    """
    if callable(options.get("engine")):
        raise ClientUsageError(
            "guard='thread' needs an engine by name: one that is a function, as that of a fake, belongs to its loop"
        )
    found = options.copy()
    found.pop("namespace", None)
    found.pop("observers", None)
    found.pop("reject_old_cluster", None)
    if callable(token := options.get("token")):
        found["token"] = _called_in(asyncio.get_running_loop(), token)
    name = options.get("name")
    found["name"] = f"{name[: _LONGEST_NAME - len(_SUFFIX)]}{_SUFFIX}" if name else _SUFFIX[1:]
    return found


def _called_in(loop: asyncio.AbstractEventLoop, function: TokenFunction) -> TokenFunction:
    """A token function for another thread, whose work the loop of the application does."""

    async def call() -> str:
        return await function()

    async def ask() -> str:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), loop))

    return ask
