"""What every engine makes of a peer that cannot be reached, does not speak, or speaks something else."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import pytest

from etcd_aio.errors import ConnectError
from etcd_aio.transport import EngineName
from tests.support.scripted import Wire, scripted
from tests.support.transport import Owner, engine, target

pytestmark = pytest.mark.anyio


async def freeze(wire: Wire) -> None:
    await asyncio.sleep(3600)


async def connect_error(name: EngineName, port: int, seconds: float = 0.3, **changes: Any) -> Exception:
    owner = Owner()
    with pytest.raises((OSError, ConnectError)) as caught:
        await engine(name, connect_timeout=seconds).connect(target(port, **changes), owner)
    assert (owner.lost, owner.draining) == ([], []), "an owner without a connection is told nothing"
    return caught.value


async def test_a_refused_dial_gives_the_systems_reason(name: EngineName) -> None:
    assert isinstance(await connect_error(name, 1), ConnectionRefusedError)


async def test_a_host_that_cannot_be_one_is_a_connect_error(name: EngineName) -> None:
    error = await connect_error(name, 1, host="a" * 70 + ".invalid")
    assert isinstance(error, ConnectError)


async def test_a_peer_that_accepts_and_never_speaks(name: EngineName) -> None:
    async with scripted(freeze, speaks=False) as port:
        error = await connect_error(name, port)
        assert isinstance(error, ConnectError)
        assert "no answer within 0.3 s" in str(error)


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_dial_that_ends_without_a_handshake_leaves_no_connection(name: EngineName, is_cancelled: bool) -> None:
    is_begun, is_over = asyncio.Event(), asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.reader.readexactly(24)  # the client's preface
        is_begun.set()
        with suppress(ConnectionError):
            while await wire.reader.read(1000):
                pass
        is_over.set()

    async with scripted(script, speaks=False) as port:
        seconds = 60.0 if is_cancelled else 0.3
        dial = asyncio.ensure_future(engine(name, connect_timeout=seconds).connect(target(port), Owner()))
        await is_begun.wait()
        if is_cancelled:
            dial.cancel()
        await asyncio.wait([dial])
        assert dial.cancelled() is is_cancelled
        assert is_cancelled or isinstance(dial.exception(), ConnectError)
        async with asyncio.timeout(10):
            await is_over.wait()


async def test_a_listener_whose_backlog_is_full(name: EngineName) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        try:
            assert isinstance(await connect_error(name, port), ConnectError)
        finally:
            for filler in fillers:
                filler.close()


@pytest.mark.parametrize(
    ("greeting", "word"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n", "HTTP/1"),
        (b"HTTP/1", "HTTP/1"),
        (b"\x15\x03\x01\0\x02\x02\x46", "TLS"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "does not speak HTTP/2"),
        (b"\0\0\0\4\0\0\0\0", "no answer|closed"),
        (b"", "closed|no answer"),
    ],
)
@pytest.mark.parametrize("closes", [True, False])
async def test_a_peer_that_speaks_something_else_is_told_apart(
    name: EngineName, greeting: bytes, word: str, closes: bool
) -> None:
    async def script(wire: Wire) -> None:
        await wire.reader.readexactly(24)  # the client's preface
        wire.raw(greeting)
        if closes:
            wire.writer.close()
        await freeze(wire)

    async with scripted(script, speaks=False) as port:
        error = await connect_error(name, port)
        assert isinstance(error, ConnectError)
        assert any(one in str(error) for one in word.split("|")), error


async def test_a_peer_that_goes_away_with_its_settings_is_no_connection(name: EngineName) -> None:
    async def script(wire: Wire) -> None:
        wire.go_away(0)
        await freeze(wire)

    async with scripted(script) as port:
        assert isinstance(await connect_error(name, port), ConnectError)
