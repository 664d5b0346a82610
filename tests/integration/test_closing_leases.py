"""lease/pool.py, lease/kept_lease.py: clients that are closed while their tasks acquire leave no lease on a server."""

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final

import pytest

from etcd_aio import Client
from etcd_aio.errors import EtcdError
from etcd_aio.testing import EtcdServer
from tests.support.seeds import chosen

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("patient_close")]

_ROUNDS: Final = 40
_TASKS: Final = 4
_TTL: Final = 611  # that no other test names


async def _enter(block: AbstractAsyncContextManager[Any]) -> None:
    async with block:
        await asyncio.sleep(0.002)


WAYS: tuple[Callable[[Client, str], Any], ...] = (
    lambda client, name: _enter(client.lock(f"{name}lock", ttl=_TTL)),
    lambda client, name: _enter(client.semaphore(f"{name}semaphore", limit=2, ttl=_TTL)),
    lambda client, name: _enter(client.rwlock(f"{name}rwlock", ttl=_TTL).reading()),
    lambda client, name: _enter(client.election(f"{name}election", ttl=_TTL).lead()),
)


async def _leases(client: Client) -> list[int]:
    """The leases of this test: those with its TTL."""
    found = [await client.leases.time_to_live(id_) for id_ in (await client.leases.list()).ids]
    return [lease.id for lease in found if lease.granted_ttl == _TTL]


@pytest.mark.parametrize("seed", [chosen()], ids=lambda seed: f"seed{seed}")
async def test_clients_that_are_closed_at_random_instants_leave_no_lease(
    shared_server: EtcdServer, client: Client, prefix: str, seed: int
) -> None:
    drawn = random.Random(seed)
    for _ in range(_ROUNDS):
        closing = await Client(shared_server.endpoint).connect()

        async def acquire(closing: Client = closing) -> None:
            with suppress(EtcdError):
                while True:
                    await drawn.choice(WAYS)(closing, prefix)

        tasks = [asyncio.create_task(acquire()) for _ in range(_TASKS)]
        await asyncio.sleep(drawn.uniform(0.0, 0.02))
        await closing.aclose()
        await asyncio.gather(*tasks)
        assert await _leases(client) == []


async def test_a_session_that_is_entered_while_its_client_closes_leaves_no_lease(
    shared_server: EtcdServer, client: Client, prefix: str
) -> None:
    for round_ in range(_ROUNDS):
        closing = await Client(shared_server.endpoint).connect()
        entered: list[int] = []

        async def enter(closing: Client = closing, entered: list[int] = entered) -> None:
            with suppress(EtcdError):
                async with closing.session(ttl=_TTL) as session:
                    entered.append(session.id)
                    await asyncio.sleep(60.0)

        task = asyncio.create_task(enter())
        await asyncio.sleep(round_ / _ROUNDS * 0.01)
        await closing.aclose()
        await asyncio.wait([task])
        assert await _leases(client) == entered  # etcd keeps that of a block that was entered
        for lease in entered:
            await client.leases.revoke(lease)
