"""Cancellation and timeouts around any call behave exactly as around `asyncio.sleep`.

The trap: a client whose transport cancels the caller's task to wake it, and then swallows that cancellation, leaves the
task's cancel count stale; the next timeout in the same task then misfires. So every case here first lives through a
connection that dies under a call, in the same task, and then hangs on a member that does not answer.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import pytest

from etcd_aio import Client, EtcdError
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support import loops

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine")]

Hang = Callable[[], Awaitable[object]]


@pytest.fixture(params=loops.BOTH, scope="module")
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return request.param


@pytest.fixture(params=["sleep", "get", "put", "range", "delete", "txn", "compact", "scan", "wait_ready"])
async def hang(request: pytest.FixtureRequest, shared_server: EtcdServer) -> AsyncIterator[Hang]:
    """Something that waits for ever: `asyncio.sleep` shows what is expected, each call must do the same."""
    if request.param == "sleep":
        yield lambda: asyncio.sleep(60)
        return
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint, timeout=None) as client:

        async def call() -> object:
            match request.param:
                case "get":
                    return await client.get("k")
                case "put":
                    return await client.put("k", "v", retry="always")
                case "range":
                    return await client.range(prefix="k")
                case "delete":
                    return await client.delete("never-written", retry="always")
                case "txn":
                    return await client.txn().commit()
                case "compact":
                    return await client.compact(1, retry="always")
                case "scan":
                    return [kv async for kv in client.scan(prefix="k")]
                case _:
                    await client.wait_ready()
                    return None

        await client.get("k")
        proxy.reset()  # the connection dies, with or without a call on it
        running = asyncio.ensure_future(client.get("k"))
        await asyncio.sleep(0)
        proxy.reset()
        await running
        assert asyncio.current_task() is not None
        proxy.black_hole()
        if request.param == "wait_ready":
            proxy.reset()
            while client.statistics()[0].state.name == "READY":  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0)
        yield call


def cancel_count() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


async def test_asyncio_timeout(hang: Hang) -> None:
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.05):
            await hang()
    assert not isinstance(caught.value, EtcdError), "the caller's own timeout, not one of ours"
    assert cancel_count() == 0
    await asyncio.sleep(0)  # a stale cancellation would come out here


async def test_asyncio_wait_for(hang: Hang) -> None:
    with pytest.raises(TimeoutError) as caught:
        await asyncio.wait_for(hang(), 0.05)
    assert not isinstance(caught.value, EtcdError)
    assert cancel_count() == 0
    await asyncio.sleep(0)


async def test_anyio_fail_after(hang: Hang) -> None:
    with pytest.raises(TimeoutError), anyio.fail_after(0.05):
        await hang()
    assert cancel_count() == 0
    await asyncio.sleep(0)


async def test_anyio_move_on_after(hang: Hang) -> None:
    with anyio.move_on_after(0.05) as scope:
        await hang()
    assert scope.cancelled_caught
    assert cancel_count() == 0
    await asyncio.sleep(0)


async def test_task_cancel(hang: Hang) -> None:
    task = asyncio.ensure_future(hang())
    await asyncio.sleep(0.05)
    task.cancel("because")
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert caught.value.args == ("because",)
    assert task.cancelled()


async def test_cancelled_before_it_began(hang: Hang) -> None:
    task = asyncio.ensure_future(hang())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_sibling_in_a_task_group_fails(hang: Hang) -> None:
    async def fail() -> None:
        await asyncio.sleep(0.05)
        raise LookupError

    with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012 - it comes out of the block as a whole
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            await hang()
    assert [type(error) for error in caught.value.exceptions] == [LookupError]
    assert cancel_count() == 0
    await asyncio.sleep(0)


@pytest.mark.both_engines
async def test_cancelled_at_every_await_and_nothing_stays(shared_server: EtcdServer, prefix: str) -> None:
    """The call is cancelled after k turns of the loop, for every k that it can take."""
    async with Client(shared_server.endpoint) as client:
        await client.get("k")
        turns = 0
        while True:
            task = asyncio.ensure_future(client.put(prefix, str(turns)))
            for _ in range(turns):
                await asyncio.sleep(0)
            if task.done():
                break
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert client.statistics()[0].in_flight == 0
            turns += 1
            assert turns < 100_000
        assert turns > 2, "the call never waited: the test proves nothing"
        # The connection survived all of it.
        assert client.statistics()[0].connects == 1
        assert (await client.range(prefix)).count == 1
