"""A client's life: from nothing to nothing, in any order, without a trace."""

import asyncio
import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from etcd_aio import Client, ClientClosedError
from etcd_aio.errors import WrongLoopError
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support.health import other_tasks

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine")]


def run_program(body: str, endpoint: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in which every warning is an error and asyncio watches itself."""
    program = f"import asyncio, os, sys\nfrom etcd_aio import *\nENDPOINT = {endpoint!r}\n{body}"
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program], capture_output=True, text=True, timeout=60
    )


PROGRAMS = {
    "never used": """
client = Client(ENDPOINT)
""",
    "entered and left": """
async def main():
    async with Client(ENDPOINT):
        pass
asyncio.run(main())
""",
    "used": """
async def main():
    async with Client(ENDPOINT) as client:
        await client.put("k", "v")
        await client.get("k")
asyncio.run(main())
""",
    "left with calls under way": """
async def main():
    async with Client(ENDPOINT) as client:
        await client.get("k")
        calls = [asyncio.create_task(client.get("k")) for _ in range(20)]
        await asyncio.sleep(0)
    for call in calls:
        try:
            await call
        except ClientClosedError:
            pass
asyncio.run(main())
""",
    "left while connecting": """
async def main():
    async with Client([ENDPOINT, "127.0.0.1:1"]):
        await asyncio.sleep(0)
asyncio.run(main())
""",
    "left by an exception": """
async def main():
    async with Client(ENDPOINT) as client:
        await client.get("k")
        raise KeyError("mine")
try:
    asyncio.run(main())
except KeyError:
    pass
""",
    "left by cancellation": """
async def main():
    async with Client(ENDPOINT) as client:
        await client.get("k")
        asyncio.current_task().cancel()
        await client.get("k")
try:
    asyncio.run(main())
except asyncio.CancelledError:
    pass
""",
    "entered and left in different tasks": """
async def main():
    client = Client(ENDPOINT)
    await asyncio.create_task(client.connect())
    await asyncio.create_task(client.put("k", "v"))
    await asyncio.create_task(client.aclose())
    await client.aclose()
asyncio.run(main())
""",
    "abandoned scan": """
async def main():
    async with Client(ENDPOINT) as client:
        await client.put("k", "v")
        async for kv in client.scan(all_keys=True, page_size=1):
            break
asyncio.run(main())
""",
}


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The errors of a program, without asyncio's word about callbacks that took 0.1 s on a slow machine."""
    return [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]


@pytest.mark.parametrize("body", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_exit_leaves_no_task_and_no_warning(body: str, shared_server: EtcdServer) -> None:
    done = run_program(body, shared_server.endpoint)
    assert (done.returncode, done.stdout, told(done)) == (0, "", [])


async def test_nothing_touches_the_network_before_the_first_use() -> None:
    async with FaultProxy("http://127.0.0.1:1") as proxy:
        client = Client(proxy.endpoint)
        await asyncio.sleep(0.05)
        assert proxy.statistics().connections_accepted == 0
        await client.aclose()


async def test_every_call_after_close_fails_at_once(shared_server: EtcdServer) -> None:
    client = Client(shared_server.endpoint)
    await client.get("k")
    await client.aclose()
    for call in (client.get("k"), client.put("k", "v"), client.wait_ready(), client.connect()):
        with pytest.raises(ClientClosedError):
            await call
    with pytest.raises(ClientClosedError):
        client.set_endpoints([shared_server.endpoint])
    assert repr(client) == "<Client closed>"


@pytest.mark.both_engines
async def test_calls_under_way_end_with_the_close(shared_server: EtcdServer) -> None:
    async with FaultProxy(shared_server.endpoint) as proxy:
        client = Client([proxy.endpoint, "127.0.0.1:1"], timeout=None)
        await client.get("k")
        proxy.black_hole()
        on_the_wire = asyncio.ensure_future(client.put("k", "v"))
        await asyncio.sleep(0.05)
        async with asyncio.timeout(15):
            await client.aclose()
        with pytest.raises(ClientClosedError) as caught:
            await on_the_wire
        assert caught.value.maybe_applied

    waiting_for_an_endpoint = Client("127.0.0.1:1", timeout=None)
    call = asyncio.ensure_future(waiting_for_an_endpoint.put("k", "v"))
    await asyncio.sleep(0.05)
    async with asyncio.timeout(15):
        await waiting_for_an_endpoint.aclose()
    with pytest.raises(ClientClosedError) as caught:
        await call
    assert not caught.value.maybe_applied


async def test_use_from_another_loop_fails_at_once(shared_server: EtcdServer) -> None:
    async def use(client: Client) -> None:
        with pytest.raises(WrongLoopError):
            await client.get("k")
        with pytest.raises(WrongLoopError):
            await client.aclose()

    async with Client(shared_server.endpoint) as client:
        await client.get("k")
        with ThreadPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, lambda: asyncio.run(use(client)))
        await client.get("k")


def test_a_client_made_before_a_fork_fails_at_once_in_the_child(shared_server: EtcdServer) -> None:
    done = run_program(
        """
from etcd_aio.errors import ForkedError
client = Client(ENDPOINT)
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
async def use():
    try:
        await client.get("k")
    except ForkedError:
        async with Client(ENDPOINT) as new:
            await new.get("k")
    else:
        os._exit(3)
asyncio.run(use())
os._exit(0)
""",
        shared_server.endpoint,
    )
    assert (done.returncode, told(done)) == (0, [])


def test_a_lock_held_across_a_fork_is_that_of_the_parent(shared_server: EtcdServer, prefix: str) -> None:
    done = run_program(
        f"""
from etcd_aio.errors import ForkedError
async def use():
    async with Client(ENDPOINT) as client:
        async with client.lock({prefix!r}) as lock:
            child = os.fork()
            if not child:
                try:
                    await lock.release()
                except ForkedError:
                    os._exit(0 if lock.is_held else 4)
                finally:
                    os._exit(3)
            _, status = os.waitpid(child, 0)
            assert lock.is_held
            assert len(await lock.contenders()) == 1
        assert not await lock.contenders()
        sys.exit(os.waitstatus_to_exitcode(status))
asyncio.run(use())
""",
        shared_server.endpoint,
    )
    assert (done.returncode, told(done)) == (0, [])


async def test_a_thousand_calls_leave_nothing_behind(shared_server: EtcdServer) -> None:
    async with Client(shared_server.endpoint) as client:

        async def call_often() -> None:
            for _ in range(50):
                await asyncio.gather(*(client.get("k") for _ in range(20)))

        await call_often()  # what is cached is cached now
        gc.collect()
        tasks, objects = len(other_tasks()), len(gc.get_objects())
        await call_often()
        gc.collect()
        assert len(other_tasks()) == tasks
        assert len(gc.get_objects()) < objects + 500
        assert client.statistics()[0].in_flight == 0
