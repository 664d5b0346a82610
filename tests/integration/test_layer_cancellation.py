"""The layers above the client are cancelled at every await: no key, lease, watch, slot or task stays.

Locks, elections and exactly-once writes have such tests in their own files.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from etcd_aio import Client, EtcdTimeoutError, OutcomeUnknownError, op
from etcd_aio.testing import EtcdServer, FaultProxy
from tests.support import versions
from tests.support.locks import keys, metric, until
from tests.support.turns import ends_within, more
from tests.support.until import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("patient_close")]


@pytest.fixture
async def server() -> AsyncIterator[EtcdServer]:
    async with EtcdServer() as server:
        yield server


async def enter_and_leave(client: Client) -> None:
    async with client.session(ttl=200):
        pass


async def lock_in_session(client: Client) -> None:
    async with client.session(ttl=200) as session, session.lock("a"):
        pass


async def leave_while_a_task_waits(client: Client) -> None:
    async with client.session(ttl=200) as session, session.lock("a"), asyncio.TaskGroup() as group:
        waiting = group.create_task(session.lock("a").acquire())
        await asyncio.sleep(0)
        waiting.cancel()


async def fenced_put(client: Client) -> None:
    async with client.lock("a", ttl=200) as lock:
        await lock.fenced.put("k", "v")


async def fenced_delete(client: Client) -> None:
    async with client.lock("a", ttl=200) as lock:
        await lock.fenced.delete("k")


async def fenced_txn(client: Client) -> None:
    async with client.lock("a", ttl=200) as lock:
        await lock.fenced.txn().then(op.put("k", "v")).commit()


async def fenced_exactly_once(client: Client) -> None:
    async with client.exactly_once() as once, client.lock("a", ttl=200) as lock:
        await lock.fenced_by(once).put("k", "v")


async def wait_deleted(client: Client) -> None:
    put = await client.put("w", "v")
    async with asyncio.TaskGroup() as group:
        group.create_task(client.wait_deleted("w", put.revision))
        await client.delete("w")


async def update(client: Client) -> None:
    await client.update("u", lambda value: str(int(value or 0) + 1))


async def in_a_namespace(client: Client) -> None:
    space = client.namespace("k")
    async with space.watch(all_keys=True) as watcher, space.lock("a", ttl=200):
        await space.put("ey", "v")
        await anext(watcher)
        assert [kv.key async for kv in space.scan(prefix="e")] == [b"ey"]
        await space.delete("ey")


async def ordered(client: Client) -> None:
    view = client.ordered()
    await view.put("k", "v")
    await view.txn().then(op.get("k", serializable=True)).commit()
    assert [kv.key async for kv in view.scan("k", serializable=True)] == [b"k"]


async def optimistic_writes(client: Client) -> None:
    kubernetes = client.kubernetes()
    found = await kubernetes.get("k")
    await kubernetes.optimistic_put("k", "v", found.kv.mod_revision if found.kv else 0)
    await kubernetes.list("k", limit=1)


async def register(client: Client) -> None:
    async with client.register("svc", "a:1", ttl=200) as registration:
        await registration.update(metadata=1)


async def resolve(client: Client) -> None:
    async with client.resolve("svc") as service:
        await anext(service.changes())


def own_tasks() -> list[str]:
    """The tasks that belong to one use, and not to the client."""
    words = (
        "lock",
        "session",
        "sweep",
        "revocation",
        "slot",
        "settling",
        "watch of",
        "key of",
        "registration",
        "cache",
    )
    names = [task.get_name() for task in asyncio.all_tasks()]
    return [name for name in names if name.startswith("etcd_aio") and any(word in name for word in words)]


@pytest.mark.parametrize(
    "act",
    [
        enter_and_leave,
        lock_in_session,
        leave_while_a_task_waits,
        fenced_put,
        fenced_delete,
        fenced_txn,
        fenced_exactly_once,
        wait_deleted,
        update,
        in_a_namespace,
        ordered,
        optimistic_writes,
        register,
        resolve,
    ],
    ids=lambda act: act.__name__,
)
async def test_nothing_stays(server: EtcdServer, act: Callable[[Client], Awaitable[Any]]) -> None:
    versions.need("3.4.25", "3.5.30", why="under load older ones end connections without a GOAWAY")
    async with Client(server.endpoint) as other:
        turns = 1  # with 0, the action never begins
        async with Client(server.endpoint) as client:
            while not await ends_within(turns, act(client)):
                turns = more(turns)
            assert turns > 3, "the action never waited: the test proves nothing"

            async def has_no_watch() -> bool:
                return not await metric(server, "etcd_debugging_mvcc_watcher_total")

            await until(has_no_watch)  # while the client is open: its close would end them
        assert own_tasks() == []  # an idle lease of the pool had one
        assert (await other.leases.list()).ids == ()
        assert await keys(other, "a") == []
        found = await other.range(all_keys=True, keys_only=True)
        assert {kv.key for kv in found} <= {b"k", b"key", b"u", b"w"}


async def test_closing_the_client_after_a_cancelled_lease_revokes_it(server: EtcdServer) -> None:
    """Also one whose revocation, or whose grant, was under way when the block was cancelled."""
    async with Client(server.endpoint) as other:
        turns = 0
        is_done = False
        while not is_done:
            async with Client(server.endpoint) as client:
                await client.get("k")

                async def hold(client: Client = client) -> None:
                    async with client.lease(200):
                        pass

                is_done = await ends_within(turns, hold())
            assert (await other.leases.list()).ids == (), f"after {turns} turns"
            turns = more(turns)
        assert turns > 5


async def test_an_orphan_keeps_its_lease_and_nothing_else_stays(server: EtcdServer) -> None:
    """Whenever it is cancelled: either the lease was orphaned, and lives, or it is revoked."""
    async with Client(server.endpoint) as other:
        turns = 1
        is_done = False
        orphaned = 0
        while not is_done:
            ids: list[int] = []

            async def orphan(client: Client, ids: list[int] = ids) -> None:
                async with client.session(ttl=200) as session, session.lock("a"):
                    ids.append(session.orphan())
                    for _ in range(200):  # several cancellations come now, however many turns were before
                        await asyncio.sleep(0)

            async with Client(server.endpoint) as client:
                is_done = await ends_within(turns, orphan(client))

            async def are_left(ids: list[int] = ids) -> bool:
                return list((await other.leases.list()).ids) == ids

            await until(are_left)
            assert len(await keys(other, "a")) == len(ids)
            for id_ in ids:
                await other.leases.revoke(id_)
            orphaned += len(ids)
            turns = more(turns)
        assert orphaned > 1, "no cancellation came after the lease was orphaned"
        assert own_tasks() == []


async def test_settling_is_cancelled_and_goes_on(server: EtcdServer) -> None:
    """The outcome can be asked for again, and is what the key shows."""
    async with (
        Client(server.endpoint) as direct,
        FaultProxy(server.endpoint) as proxy,
        Client(proxy.endpoint, timeout=PATIENCE) as client,
    ):
        async with client.exactly_once(slots=2) as once:
            turns = 1
            is_done = False
            while not is_done:
                await once.put("warm", "v")
                proxy.black_hole("to_client")
                (error,) = await asyncio.gather(once.put(f"k/{turns}", "v", timeout=0.05), return_exceptions=True)
                proxy.heal()
                if isinstance(error, EtcdTimeoutError) and not error.maybe_applied:
                    continue  # a slow machine has not even sent it
                assert isinstance(error, OutcomeUnknownError)
                is_done = await ends_within(turns, once.settle(error))
                outcome = await once.settle(error)
                kv = await direct.get(f"k/{turns}")
                assert outcome.applied == (kv is not None)
                assert kv is None or kv.version == 1
                turns = more(turns)
            assert turns > 3, "settling never waited: the test proves nothing"
            assert once.statistics().in_use == 0
            assert once.statistics().unsettled == 0
        assert (await direct.leases.list()).ids == ()
    assert own_tasks() == []
