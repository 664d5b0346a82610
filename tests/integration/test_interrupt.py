"""Ctrl-C: with all that a client can have open, a program ends within a second, and says only KeyboardInterrupt."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from etcd_aio.testing import EtcdCluster
from etcd_aio.transport import ENGINES
from tests.support.interrupts import interruptible

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.slow]

LONGEST = 1.8  # seconds, from the signal to the end of the process: the promised second, and what a loaded machine adds
PATIENCE = 30.0

# Each prints a line when everything is open, and waits in the last thing that it opened.
PROGRAMS = {
    "a watch": """
        async with client.lease(10) as lease, client.watch(prefix="other/") as quiet, scan(client) as pages:
            await client.put("service", "v", lease=lease)
            async with client.watch(prefix="k/", start_revision=1) as watcher:
                print("open", flush=True)
                async for event in watcher:
                    pass
""",
    "a lease": """
        async with client.watch(prefix="k/") as watcher, scan(client) as pages, client.lease(10) as lease:
            await client.put("service", "v", lease=lease)
            print("open", flush=True)
            await asyncio.sleep(60)
""",
    "a scan": """
        async with client.lease(10), client.watch(prefix="k/") as watcher, scan(client) as pages:
            print("open", flush=True)
            await asyncio.sleep(0.5)  # until the members are frozen, if they are to be
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
            async with client.lease(10):
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
            print("open", flush=True)
""",
    "what is being entered": """
        async def within(block):
            async with block:
                await asyncio.sleep(60)
        await client.put("k", "v")
        print("open", flush=True)
        await asyncio.sleep(0.5)
        async with asyncio.TaskGroup() as group:
            for n in range(20):
                group.create_task(within(client.watch(f"k/{n}", timeout=None)))
                group.create_task(within(client.lease(10, timeout=None)))
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

async def main():
    asyncio.get_running_loop().slow_callback_duration = 10  # of a loaded machine nothing is to be said
    async with Client({endpoints!r}, engine={engine!r}) as client:
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


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_interrupt_ends_everything_at_once(cluster: EtcdCluster, engine: str) -> None:
    for is_frozen in (False, True):
        for name, body in PROGRAMS.items():
            program = FRAME.format(endpoints=cluster.endpoints, engine=engine, body=body)
            process = await asyncio.create_subprocess_exec(
                *interruptible("-P", "-X", "dev", "-W", "error", "-c", program),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async with asyncio.timeout(PATIENCE):
                    assert process.stdout is not None
                    assert await process.stdout.readline() == b"open\n", (name, await process.communicate())
                    async with frozen(cluster, is_frozen):
                        await asyncio.sleep(0.7)
                        begun = time.monotonic()
                        process.send_signal(signal.SIGINT)
                        _, said = await process.communicate()
                        seconds = time.monotonic() - begun
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            context = (name, f"frozen: {is_frozen}", said.decode())
            assert process.returncode == -signal.SIGINT, context
            assert seconds <= LONGEST, (seconds, *context)
            assert only_the_interrupt(said.decode()), context


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
