"""base/closing.py: closes, in general and of a busy client: whatever happens, nothing stays."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest

from etcd_aio import Client, ClientClosedError
from etcd_aio.base.closing import TwoPartClose, Unwinding, close_all, unwound
from etcd_aio.errors import NoLeaderError
from etcd_aio.transport.metadata import token_of
from tests.support.fake_engine import Accept, FakeEngine, Hang, Refuse
from tests.support.virtual_time import tasks, timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Part(TwoPartClose):
    """Has one task, which takes some seconds to unwind."""

    def __init__(self, seconds: float = 0.0, error: Exception | None = None) -> None:
        self._seconds = seconds
        self._error = error
        self.task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self._seconds)

    def close(self) -> Unwinding:
        if self._error is not None:
            raise self._error
        self.task.cancel()
        return (self.task,)


async def test_aclose_waits_for_tasks_to_end_but_not_for_long() -> None:
    loop = asyncio.get_running_loop()
    parts = [Part(0.25), Part(0.5)]
    await turns()
    started = loop.time()
    await unwound(close_all(parts))
    assert loop.time() - started == 0.5
    assert all(part.task.cancelled() for part in parts)
    slow = Part(3600.0)
    await turns()
    started = loop.time()
    await slow.aclose()
    assert 0.5 < loop.time() - started < 1.0
    slow.task.cancel()
    await asyncio.wait([slow.task])


async def test_a_part_that_cannot_be_closed_is_reported_and_does_not_keep_the_others_open() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    error = ValueError("a defect")
    parts = [Part(error=error), Part()]
    await turns()
    await unwound(close_all(parts))
    assert parts[1].task.cancelled()
    assert [context["exception"] for context in reported] == [error]
    assert reported[0]["message"] == "etcd_aio: Part could not be closed"
    parts[0].task.cancel()
    await asyncio.wait([parts[0].task])


async def test_a_task_that_closes_its_own_owner_does_not_wait_for_itself() -> None:
    loop = asyncio.get_running_loop()
    current = asyncio.current_task()
    assert current is not None
    started = loop.time()
    await unwound([current])
    assert loop.time() == started


# A client in which everything is under way.

Close = Callable[[Client], Awaitable[None]]


async def in_a_cancelled_scope(client: Client) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await client.aclose()


async def in_a_scope_that_is_cancelled_around_the_client(client: Client) -> None:
    with anyio.CancelScope() as scope:
        async with client:
            scope.cancel()
            await anyio.sleep_forever()


async def cancelled_twice(client: Client) -> None:
    closing = asyncio.ensure_future(client.aclose())
    await turns(1)
    closing.cancel()
    await turns(1)
    closing.cancel()
    await asyncio.wait([closing])


async def cancelled_before_its_first_step(client: Client) -> None:
    closing = asyncio.ensure_future(client.aclose())
    closing.cancel()
    await asyncio.wait([closing])
    await client.aclose()  # the first one never ran


async def undisturbed(client: Client) -> None:
    await client.aclose()


CLOSES = [
    undisturbed,
    in_a_cancelled_scope,
    in_a_scope_that_is_cancelled_around_the_client,
    cancelled_twice,
    cancelled_before_its_first_step,
]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    engine = FakeEngine()
    monkeypatch.setattr("etcd_aio.client.create_engine", lambda *given: engine)
    return engine


async def nothing_is_left(client: Client, engine: FakeEngine, begun: "Sequence[asyncio.Future[Any]]") -> None:
    await turns(20)
    assert {task.get_name() for task in tasks()} == set()
    assert timers() == 0
    assert all(one.is_lost for member in engine.members.values() for one in member.connections)
    outcomes = await asyncio.gather(*begun, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ClientClosedError] * len(begun)
    loop = asyncio.get_running_loop()
    started = loop.time()
    await client.aclose()
    assert loop.time() == started


@pytest.mark.parametrize("close", CLOSES)
async def test_a_busy_client_leaves_nothing(close: Close, engine: FakeEngine) -> None:
    client = Client("serves,silent,refuses,removed", policy="leader_first", auto_sync=0.5, timeout=None)
    for name in ("serves", "removed"):
        engine[f"{name}:2379"].otherwise = Hang()
    engine["silent:2379"].dial = Hang()
    engine["refuses:2379"].dial = Refuse()
    await client.connect()
    await turns(10)
    begun: list[asyncio.Future[Any]] = [asyncio.ensure_future(client.get("k")) for _ in range(2)]
    watch = client.watch("k")
    begun.append(asyncio.ensure_future(watch.__aenter__()))
    begun.append(asyncio.ensure_future(client.lease(10).__aenter__()))
    begun.append(asyncio.ensure_future(client.sync()))
    await turns(10)
    client.set_endpoints("serves,silent,refuses")
    for sub_connection in client._balancer._pool.current.values():
        if sub_connection.endpoint_name.startswith("serves"):
            sub_connection.note_refusal(NoLeaderError("no leader"))
    await asyncio.sleep(1.0)
    names = " ".join(task.get_name() for task in tasks())
    for part in ("dial serves", "dial silent", "dial refuses", "discovery", "leader", "probe serves", "watch"):
        assert f"etcd_aio {part}" in names
    await close(client)
    await nothing_is_left(client, engine, begun)


@pytest.mark.parametrize("close", CLOSES)
async def test_a_client_that_is_still_logging_in_leaves_nothing(close: Close, engine: FakeEngine) -> None:
    asked = asyncio.Event()

    async def token() -> str:
        if asked.is_set():
            await asyncio.Event().wait()
        asked.set()
        return "c4n4ry"

    client = Client("m1,m2", token=token, allow_insecure_auth=True, timeout=None)
    engine["m1:2379"].otherwise = Hang()  # its peer is verified, since secrets go there
    engine["m2:2379"].dial = Accept(seconds=3600.0)
    await client.connect()
    await client._invoker._tokens.obtain(float("inf"))
    assert token_of(client._invoker._metadata.with_leader)
    client._invoker._tokens.state.refused("c4n4ry", asyncio.get_running_loop().time(), lambda: 0.0)
    begun = [asyncio.ensure_future(client.get("k"))]
    await asyncio.sleep(1.0)
    names = " ".join(task.get_name() for task in tasks())
    for part in ("dial m1", "dial m2", "token"):
        assert f"etcd_aio {part}" in names
    await close(client)
    assert not token_of(client._invoker._metadata.with_leader)
    assert client._invoker._credentials is not None
    await nothing_is_left(client, engine, begun)


async def test_a_second_close_waits_for_what_the_first_has_begun(engine: FakeEngine) -> None:
    client = Client("m1")
    await client.connect()
    await turns(10)
    engine["m1:2379"].connection.close_takes = 0.5
    loop = asyncio.get_running_loop()
    started = loop.time()
    await in_a_cancelled_scope(client)
    assert loop.time() == started
    await client.aclose()
    assert loop.time() - started == 0.5
