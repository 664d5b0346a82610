"""testing/proxy.py: what a proxy refuses, and its statistics; its faults need sockets."""

import asyncio
import dataclasses
import errno
import socket

import pytest

from etcd_aio.testing import FaultProxy, FaultProxyStatistics
from etcd_aio.testing import proxy as proxy_module
from etcd_aio.testing.proxy_connection import ProxyConnection
from tests.support import loops


@pytest.mark.parametrize("target", ["127.0.0.1:2379", "http://127.0.0.1", ""])
def test_a_target_is_a_url(target: str) -> None:
    with pytest.raises(ValueError, match="host and port"):
        FaultProxy(target)


def test_impossible_faults_are_refused() -> None:
    proxy = FaultProxy("http://127.0.0.1:1")
    with pytest.raises(ValueError, match="not negative"):
        proxy.delay(-0.1)
    with pytest.raises(ValueError, match="lets something through"):
        proxy.throttle(0)
    with pytest.raises(ValueError, match="not negative"):
        proxy.cut_after(-1)


def test_before_the_start() -> None:
    proxy = FaultProxy("http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match="not started"):
        _ = proxy.endpoint
    with pytest.raises(RuntimeError, match="not started"):
        proxy.accept()
    assert proxy.statistics() == FaultProxyStatistics(0, 0, 0, 0)
    assert "refusing" in repr(proxy)


def test_statistics_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        FaultProxyStatistics(0, 0, 0, 0).connections_open = 1  # type: ignore[misc]


@pytest.mark.anyio
async def test_after_the_close_nothing_listens_again() -> None:
    proxy = FaultProxy("http://127.0.0.1:1")
    await proxy.start()
    address = ("127.0.0.1", int(proxy.endpoint.rpartition(":")[2]))
    await proxy.aclose()
    proxy.heal()
    with pytest.raises(RuntimeError, match="closed"):
        proxy.accept()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", [loops.ASYNCIO], ids=["asyncio"])  # uvloop's sockets cannot be replaced
@pytest.mark.parametrize("where", ["accept", "ProxyConnection"])
async def test_without_a_file_left_it_rests_and_then_goes_on(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {"failures": 0, "accept": 0}
    real_connection = ProxyConnection

    def fail() -> None:
        if calls["failures"] < 3:
            calls["failures"] += 1
            raise OSError(errno.EMFILE, "too many open files")

    class Listener(socket.socket):
        def accept(self) -> tuple[socket.socket, object]:
            calls["accept"] += 1
            if where == "accept":
                fail()
            return super().accept()

    def connection(*given: object) -> object:
        if where == "ProxyConnection":
            fail()
        return real_connection(*given)  # type: ignore[arg-type]  # as they are

    class Target(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.write(b"hello")

    server = await asyncio.get_running_loop().create_server(Target, "127.0.0.1", 0)
    target = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    monkeypatch.setattr(socket, "socket", Listener)
    monkeypatch.setattr(proxy_module, "ProxyConnection", connection)
    proxy = FaultProxy(target)
    await proxy.start()
    monkeypatch.setattr(socket, "socket", Listener.__base__)
    address = ("127.0.0.1", int(proxy.endpoint.rpartition(":")[2]))
    try:
        async with asyncio.timeout(10):
            while True:  # a connection that could not be passed on ends, and the next one may be better
                reader, writer = await asyncio.open_connection(*address)
                try:
                    got = await reader.read(5)
                except ConnectionError:
                    got = b""
                writer.transport.abort()
                if got:
                    break
        assert got == b"hello"
        assert calls["failures"] == 3
        assert calls["accept"] < 20, "it is not asked in a busy loop"
    finally:
        await proxy.aclose()
        server.close()
        await server.wait_closed()
