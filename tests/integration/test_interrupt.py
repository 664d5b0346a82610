"""Ctrl-C: with all that a client can have open, a program ends within a second, and says only KeyboardInterrupt."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from etcd_aio.testing import EtcdCluster
from tests.support.interrupts import interruptible
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.slow]

LONGEST = 10.0  # seconds, from the signal to the end of the process: one is promised, a loaded machine adds to it
ROOT = str(Path(__file__).parents[2])

# Each prints "open" when everything is open and goes on when its standard input ends: then the members may be frozen.
# It prints "waiting" from within the last thing that it opened.
PROGRAMS = {
    "a watch": """
        async with client.lease(60) as lease, client.watch(prefix="other/") as quiet, scan(client) as pages:
            await client.put("service", "v", lease=lease)
            async with client.watch(prefix="k/", start_revision=1) as watcher:
                await go_on()
                async for event in watcher:
                    pass
""",
    "a lease": """
        async with client.watch(prefix="k/") as watcher, scan(client) as pages, client.lease(60) as lease:
            await client.put("service", "v", lease=lease)
            await go_on()
            await asyncio.sleep(60)
""",
    "a scan": """
        async with client.lease(60), client.watch(prefix="k/") as watcher, scan(client) as pages:
            await go_on()
            while True:
                async for kv in client.scan(all_keys=True, page_size=1):
                    pass
""",
    "tasks": """
        async def follow():
            async with client.watch(prefix="k/") as watcher:
                nonlocal entered
                entered += 1
                async for event in watcher:
                    pass
        async def register():
            async with client.lease(60):
                nonlocal entered
                entered += 1
                await asyncio.sleep(60)
        entered = 0
        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(follow())
                group.create_task(register())
            while entered < 100:
                await asyncio.sleep(0.01)
            await go_on()
""",
    "what is being entered": """
        async def within(block):
            async with block:
                await asyncio.sleep(60)
        await client.put("k", "v")
        await go_on()
        async with asyncio.TaskGroup() as group:
            for n in range(20):
                group.create_task(within(client.watch(f"k/{n}", timeout=None)))
                group.create_task(within(client.lease(60, timeout=None)))
            await asyncio.sleep(60)
""",
}

FRAME = """
import asyncio
from contextlib import asynccontextmanager
from etcd_aio import Client

@asynccontextmanager
async def scan(client):
    pages = client.scan(prefix="k/", page_size=1)
    assert (await anext(pages)).key == b"k/0"
    yield pages

async def go_on():
    print("open", flush=True)
    told = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, told.set)
    await told.wait()
    asyncio.get_running_loop().remove_reader(0)
    asyncio.get_running_loop().call_later(0.05, lambda: print("waiting", flush=True))

async def main():
    asyncio.get_running_loop().slow_callback_duration = 10  # of a loaded machine nothing is to be said
    async with Client({endpoints!r}, engine={engine!r}, timeout=30) as client:  # patient with a loaded machine
        for n in range(3):
            await client.put(f"k/{{n}}", "v")
{body}
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def frozen(cluster: EtcdCluster, is_wanted: bool) -> AsyncIterator[None]:
    members = cluster.members if is_wanted else ()
    for member in members:
        member.pause()
    try:
        yield
    finally:
        for member in members:
            member.resume()
        if is_wanted:
            await cluster.wait_healthy()


@asynccontextmanager
async def started(program: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A child that runs a program; afterwards it is gone."""
    process = await asyncio.create_subprocess_exec(
        *interruptible("-P", "-X", "dev", "-W", "error", "-c", program),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def says(process: asyncio.subprocess.Process, line: bytes) -> None:
    assert process.stdout is not None
    assert await process.stdout.readline() == line, await process.communicate()


@pytest.mark.parametrize("is_frozen", [False, True], ids=["healthy", "frozen"])
@pytest.mark.parametrize("engine", ["native", pytest.param("grpclib", marks=pytest.mark.nightly)])
async def test_an_interrupt_ends_everything_at_once(cluster: EtcdCluster, engine: str, is_frozen: bool) -> None:
    programs = {
        name: FRAME.format(endpoints=cluster.endpoints, engine=engine, body=body) for name, body in PROGRAMS.items()
    }
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE):
        children = {name: await stack.enter_async_context(started(program)) for name, program in programs.items()}
        for child in children.values():
            await says(child, b"open\n")
        await stack.enter_async_context(frozen(cluster, is_frozen))
        for name, child in children.items():
            assert child.stdin is not None
            child.stdin.close()
            await says(child, b"waiting\n")
            begun = time.monotonic()
            child.send_signal(signal.SIGINT)
            _, said = await child.communicate()
            seconds = time.monotonic() - begun
            assert child.returncode == -signal.SIGINT, (name, said.decode())
            assert only_the_interrupt(said.decode()), (name, said.decode())
            assert seconds <= LONGEST, (seconds, name, said.decode())


def only_the_interrupt(said: str) -> bool:
    """Whether nothing was said but one traceback, which ends in the interrupt."""
    unwanted = (
        "Warning",
        "never retrieved",
        "was destroyed",
        "never awaited",
        "ignored in",
        "Task exception",
        "Error:",
    )
    return (
        said.startswith("Traceback")
        and said.endswith("\nKeyboardInterrupt\n")
        and not any(word in said for word in unwanted)
    )
