"""A server on asyncio's streams that leaves nothing behind: every connection it accepted ends with it.

`asyncio.Server.close` stops the listening only. A connection that is open when the test's event loop ends would be
found by the garbage collector later, and its ResourceWarning would fail another test.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def stream_server(
    serve: Serve,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    path: str | Path = "",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """Run `serve` for every connection; yields the port, or 0 for a Unix socket.

    Args:
        serve: is cancelled at the end. If it returns, the connection stays open until it closes it, or until the end.
        host: the address to listen on.
        port: 0 is a free one.
        path: of a Unix socket, in place of `host` and `port`.
        tls: the server's context.
    """
    tasks: set[asyncio.Task[None]] = set()
    writers: set[asyncio.StreamWriter] = set()  # from Python 3.13 on, nothing else keeps one whose task is over

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        writers.add(writer)
        with suppress(
            asyncio.CancelledError
        ):  # the end; before 3.12 asyncio's streams report a task that was cancelled
            await serve(reader, writer)
        if writer.transport.is_closing():  # thousands of connections must not add up
            tasks.discard(task)
            writers.discard(writer)

    server = await (
        asyncio.start_unix_server(accepted, path, ssl=tls)
        if path
        else asyncio.start_server(accepted, host, port, ssl=tls)
    )
    try:
        yield 0 if path else server.sockets[0].getsockname()[1]
    finally:
        for listening in server.sockets:  # a server that is closed fails the connection that was accepted a moment ago
            asyncio.get_running_loop().remove_reader(listening.fileno())
        await asyncio.sleep(0.01)  # that connection gets its task
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await server.wait_closed()
        await asyncio.sleep(0.01)  # what was aborted ends in a later turn of the loop
