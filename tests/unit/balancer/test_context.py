"""balancer/sub_connection.py, balancer/endpoint_reporter.py: what is logged, or told observers, about an endpoint
carries no context of the request during which it was found.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar

import pytest

from etcd_aio.balancer import SubConnection
from etcd_aio.errors import AttemptFailure, ClusterChangedError, Delivery, NoLeaderError, StatusCode
from etcd_aio.observing import EndpointChange
from tests.support.balancers import BalancerWorld
from tests.support.virtual_time import tasks, turns

pytestmark = pytest.mark.anyio

REQUEST: ContextVar[str] = ContextVar("REQUEST", default="none")
NO_LEADER = AttemptFailure(StatusCode.UNAVAILABLE, NoLeaderError().message, Delivery.ANSWERED)


class Told(logging.Handler):
    """What the log and an observer were told since `clear`, each with the request whose context it carried."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.rows: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.rows.append((record.getMessage().split(": ")[1], REQUEST.get()))

    def on_change(self, change: EndpointChange) -> None:
        self.rows.append((f"{change.state} {change.health}", REQUEST.get()))

    def of_a_request(self) -> list[tuple[str, str]]:
        return [row for row in self.rows if row[1] != "none"]


@pytest.fixture
def told() -> Iterator[Told]:
    handler, logger = Told(), logging.getLogger("etcd_aio.balancer")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def member(world: BalancerWorld) -> SubConnection:
    """The sub-connection of the only endpoint."""
    return world.sub("m1")


async def in_a_request(world: BalancerWorld) -> None:
    """One attempt at m1, by a task of the application."""

    async def request() -> None:
        REQUEST.set("a request")
        with suppress(AttemptFailure):
            await member(world).unary("/x", b"", (), world.loop.time() + 60)

    await asyncio.create_task(request())


async def test_a_refusal_that_shows_the_health_of_a_member_and_an_answer_that_restores_it(told: Told) -> None:
    world = await BalancerWorld("m1", on_change=told.on_change).started()
    told.rows.clear()
    world["m1"].otherwise = NO_LEADER
    await in_a_request(world)
    assert [text for text, _ in told.rows] == ["unhealthy for linearizable calls", "READY NO_LEADER"]
    world["m1"].otherwise = b"fine"
    await in_a_request(world)
    assert [text for text, _ in told.rows[2:]] == ["healthy again for linearizable calls", "READY HEALTHY"]
    assert not told.of_a_request()
    await world.balancer.aclose()
    assert not tasks()


async def test_a_connection_that_is_lost_when_a_request_is_written(told: Told) -> None:
    """asyncio tells the loss in the context of the write that failed."""
    world = await BalancerWorld("m1", on_change=told.on_change).started()
    told.rows.clear()

    async def request() -> None:
        REQUEST.set("a request")
        asyncio.get_running_loop().call_soon(world["m1"].connection.lose, BrokenPipeError(32, "Broken pipe"))

    await asyncio.create_task(request())
    await turns()
    assert [text for text, _ in told.rows[:2]] == ["connection lost", "IDLE NOT_CONNECTED"]
    assert not told.of_a_request()
    await world.balancer.aclose()
    assert not tasks()


async def test_a_peer_of_another_cluster_that_an_answer_shows(told: Told) -> None:
    world = await BalancerWorld("m1", on_change=told.on_change).started()
    told.rows.clear()

    async def request() -> None:
        REQUEST.set("a request")
        member(world).reject(ClusterChangedError("another cluster"))

    await asyncio.create_task(request())
    await turns()
    assert told.rows[0][0] == "rejected"
    assert not told.of_a_request()
    await world.balancer.aclose()
    assert not tasks()
