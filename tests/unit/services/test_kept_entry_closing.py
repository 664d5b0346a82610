"""services/kept_entry.py: blocks and clients that end leave nothing, however the program ends."""

import asyncio
import gc
from collections.abc import Callable
from typing import Final

import anyio
import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from etcd_aio.recipes import Group, Membership
from etcd_aio.services import Registration
from tests.support.turns import ends_within

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

_TTL: Final = 600  # so that nothing ends by itself
_MOST: Final = 400  # turns; every program has ended by then


def _member(client: Client) -> Membership:
    return Group(client, "g", ttl=_TTL).join("m")


def _member_in_a_namespace(client: Client) -> Membership:
    return Group(client.namespace("ns/"), "g", ttl=_TTL).join("m")


def _service(client: Client) -> Registration:
    return client.register("svc", "a:1", ttl=_TTL)


ENTRIES = pytest.mark.parametrize("make", [_member, _member_in_a_namespace, _service])
Make = Callable[[Client], Membership | Registration]


@ENTRIES
@pytest.mark.parametrize("scope", [False, True])
async def test_a_program_that_is_cancelled_at_any_await_leaves_nothing(make: Make, scope: bool) -> None:
    """The client is closed by the same cancellation. A scope of anyio cancels each further await, too."""
    for turns in range(_MOST):
        async with FakeEtcd(seed=turns) as fake:

            async def program(fake: FakeEtcd = fake) -> None:
                async with fake.client() as client, make(client):
                    pass

            async def program_in_a_scope(fake: FakeEtcd = fake, turns: int = turns) -> bool:
                ended = False
                async with anyio.create_task_group() as group:

                    async def run() -> None:
                        nonlocal ended
                        await program(fake)
                        ended = True

                    group.start_soon(run)
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    group.cancel_scope.cancel()
                return ended

            ended = await (program_in_a_scope() if scope else ends_within(turns, program()))
            await asyncio.sleep(2.0)
            assert (fake.keys(), list(fake.leases)) == ({}, []), turns
        if ended:
            assert turns > 10, "the program never waited: the test proves nothing"
            return
    raise AssertionError("it does not end")


@ENTRIES
async def test_a_client_that_is_closed_under_an_entry_of_another_task_deletes_it(make: Make) -> None:
    async with FakeEtcd() as fake:
        async with fake.client() as client:

            async def hold() -> None:
                async with make(client):
                    await asyncio.sleep(100.0)

            holding = asyncio.create_task(hold())
            await asyncio.sleep(1.0)
            assert len(fake.keys()) == 1
        assert (fake.keys(), list(fake.leases)) == ({}, [])
        holding.cancel()
        await asyncio.wait([holding])


@ENTRIES
async def test_a_client_has_no_entries_in_mind_that_were_left(make: Make) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        for _ in range(5):
            async with make(client):
                pass
        await asyncio.sleep(1.0)
        gc.collect()
        assert len(client.backend.shared.blocks) <= 1  # the last one may still be at its end


@pytest.mark.parametrize("late", ["lock", "registration", "exactly once"])
async def test_what_is_entered_while_the_client_closes_is_ended_too(late: str) -> None:
    async with FakeEtcd(latency=0.1) as fake:
        client = await fake.client().connect()
        await client.get("x")

        async def early() -> None:
            async with client.register("svc", "early:1"):
                await asyncio.sleep(30)

        async def enter_late() -> None:
            if late == "lock":
                async with client.lock("late"):
                    await asyncio.sleep(30)
            elif late == "registration":
                async with client.register("svc", "late:1"):
                    await asyncio.sleep(30)
            else:
                async with client.exactly_once() as once:
                    await once.put("late", "v")
                    await asyncio.sleep(30)

        first = asyncio.create_task(early())
        await asyncio.sleep(1)
        second = asyncio.create_task(enter_late())
        await client.aclose()
        await asyncio.sleep(1)
        assert set(fake.keys()) <= {b"late"}
        for task in (first, second):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
