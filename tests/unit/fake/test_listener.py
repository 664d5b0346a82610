"""fake/listener.py: a member that is stopped at any turn leaves no socket of a connection that it accepts just then."""

import asyncio
import gc
import socket
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from etcd_aio.fake import FakeEtcd
from tests.support import loops

TURNS = 12


@pytest.mark.parametrize("is_awaited", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize(
    "factory",
    [asyncio.new_event_loop, pytest.param(loops.uvloop_loop, marks=loops.NEEDS_UVLOOP)],
    ids=["asyncio", "uvloop"],
)
def test_a_connection_that_is_accepted_as_the_member_stops(
    factory: Callable[[], asyncio.AbstractEventLoop], before: int, is_awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", left.append)

    def report(loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        left.append(context)

    async def connect(turns: int) -> None:
        asyncio.get_running_loop().set_exception_handler(report)
        async with FakeEtcd() as fake, fake.serve() as endpoint:
            for _ in range(before):
                await asyncio.sleep(0)
            url = urlsplit(endpoint)
            connections = [socket.create_connection((url.hostname, url.port)) for _ in range(3)]
            for _ in range(turns):
                await asyncio.sleep(0)
            fake.members[0].stop()
            if is_awaited:
                await asyncio.sleep(0.01)
            for connection in connections:
                connection.close()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for turns in range(TURNS):
            with asyncio.Runner(debug=True, loop_factory=factory) as runner:
                runner.run(connect(turns))
            gc.collect()
            assert left == [], turns
