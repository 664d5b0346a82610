"""The server of tests/support/stream_server.py leaves nothing behind, at whatever moment it ends."""

import asyncio
import gc
import socket
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.stream_server import stream_server


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize("turns", range(5))
def test_a_connection_that_is_accepted_as_the_server_ends(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", left.append)

    def report(loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        left.append(context)

    async def connect() -> None:
        asyncio.get_running_loop().set_exception_handler(report)
        async with stream_server(_read) as port:
            for _ in range(turns):
                await asyncio.sleep(0)
            connection = socket.create_connection(("127.0.0.1", port))
            for _ in range(turns):
                await asyncio.sleep(0)
        connection.close()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(connect(), debug=True)
        gc.collect()
    assert left == []
