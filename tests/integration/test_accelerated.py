"""The accelerators on a real server: all usual calls take the quick path, so that no change can cost it unnoticed."""

import asyncio
import os
from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.http2 import Http2Connection, Outgoing
from etcd_aio.testing import EtcdServer
from etcd_aio.transport.native import accelerated

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

CALLS = 1000
AT_ONCE = 50


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls and the frames of calls that Python has processed."""
    if accelerated.ACCELERATOR is None:
        assert os.environ.get("ETCD_AIO_ACCELERATOR") != "yes", accelerated.BACKEND
        pytest.skip(f"no accelerator: {accelerated.BACKEND}")
    seen: list[str] = []
    for owner, name in ((Http2Connection, "_on_data"), (Http2Connection, "_on_headers"), (Outgoing, "_start")):
        original = getattr(owner, name)

        def noted(self: Any, *arguments: Any, name: str = name, original: Any = original) -> Any:
            seen.append(name)
            return original(self, *arguments)

        monkeypatch.setattr(owner, name, noted)
    return seen


@pytest.mark.parametrize("kind", ["get", "put", "delete"])
async def test_usual_calls_take_the_quick_path(
    kind: str, shared_server: EtcdServer, prefix: str, in_python: list[str]
) -> None:
    async with Client(shared_server.endpoint, name="quick") as client:
        key = prefix + "k"

        async def call() -> None:
            match kind:
                case "get":
                    await client.get(key)
                case "put":
                    await client.put(key, "v")
                case _:
                    await client.delete(key)

        for _ in range(3):  # makes the headers known
            await call()
        in_python.clear()
        for _ in range(CALLS // AT_ONCE):
            await asyncio.gather(*(call() for _ in range(AT_ONCE)))
    assert len(in_python) <= CALLS // 100, "a new value of grpc-timeout, and no more"
