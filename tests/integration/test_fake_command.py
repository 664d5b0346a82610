"""`etcd-aio fake`: it prints where it listens, serves every member, and ends by a signal; what is wrong is refused."""

import asyncio
import signal
from pathlib import Path

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from tests.support.command_line import run, started

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_serves_its_members_until_a_signal_though_clients_are_connected(number: signal.Signals) -> None:
    words = ("fake", "--listen=127.0.0.1", "--members=3", "--release=3.6")
    async with started(*words) as child, asyncio.timeout(120):
        assert child.stdout is not None
        endpoints = (await child.stdout.readline()).decode().strip()
        async with Client(endpoints) as client, client.watch("a") as watch:
            await client.put("a", "1")
            assert (await anext(watch)).value == b"1"
            members = (await client.cluster.members()).members
            assert [one.client_urls for one in members] == [(url,) for url in endpoints.split(",")]
            assert (await client.maintenance.status(endpoints.split(",")[2])).version == "3.6.16"
            child.send_signal(number)
            assert await child.communicate() == (b"", b"")
        assert child.returncode == 0


async def test_a_unix_socket_is_gone_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "etcd.sock"
    async with started("fake", f"--listen=unix:{path}") as child, asyncio.timeout(120):
        assert child.stdout is not None
        assert (await child.stdout.readline()).decode() == f"unix:{path}\n"
        async with Client(f"unix:{path}") as client:
            await client.put("a", "1")
        child.terminate()
        assert await child.wait() == 0
    assert not path.exists()


async def test_an_address_that_is_taken_is_an_error() -> None:
    async with FakeEtcd() as fake, fake.serve() as endpoint:
        address = endpoint.removeprefix("http://")
        ended = await run("fake", f"--listen={address}")
    assert (ended.code, ended.stdout) == (1, b"")
    assert ended.stderr == f"Error: cannot listen at '{address}': Address already in use\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--listen=127.0.0.1:x", "'HOST', 'HOST:PORT' or 'unix:PATH'; got '127.0.0.1:x'"),
        ("--members=0", "1 or more; got 0"),
        ("--release=3.3", "3.4, 3.5, 3.6, 3.7; got '3.3'"),
        ("more", "fake accepts no arguments"),
    ],
)
async def test_what_it_cannot_be_is_refused(words: str, text: str) -> None:
    ended = await run("fake", words)
    assert (ended.code, ended.stdout) == (128, b"")
    assert ended.stderr.endswith(f"{text}\n")
