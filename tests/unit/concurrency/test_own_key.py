"""concurrency/own_key.py: the ends of a key, by the table of its file."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.concurrency import HoldOptions, OwnKey
from etcd_aio.errors import LockLostError, LockTimeoutError, UnavailableError
from etcd_aio.fake import FakeEtcd

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def own_key(client: Client, source: Any = None) -> OwnKey[LockLostError]:
    source = client.leases.pool if source is None else source
    options = HoldOptions.checked(
        client, source, "n", 600, None, "cancel", kind="beacon", lost=LockLostError, late=LockTimeoutError
    )
    return OwnKey(options, b"n/")


async def leave(own: OwnKey[LockLostError]) -> None:
    await own.leave()


async def leave_cancelled(own: OwnKey[LockLostError]) -> None:
    await own.leave(is_cancelled=True)


async def leave_in_doubt(own: OwnKey[LockLostError]) -> None:
    own.is_dirty = True
    await own.leave()


async def leave_lost(own: OwnKey[LockLostError]) -> None:
    own.leave_lost()
    await asyncio.sleep(0.1)


async def leave_without_an_answer(own: OwnKey[LockLostError]) -> None:
    delete = own._delete

    async def fail() -> None:
        raise UnavailableError("no answer")

    own._delete = fail  # type: ignore[method-assign, assignment]
    try:
        await own.leave()
    finally:
        own._delete = delete  # type: ignore[method-assign]
    await asyncio.sleep(0.1)


async def abandon(own: OwnKey[LockLostError]) -> None:
    own.abandon()


@pytest.mark.parametrize(
    ("end", "key_stays", "lease"),
    [
        (leave, False, "returned"),
        (leave_cancelled, False, "returned"),
        (leave_in_doubt, False, "revoked"),
        (leave_lost, False, "revoked"),
        (leave_without_an_answer, False, "revoked"),
        (abandon, True, "abandoned"),
    ],
)
async def test_each_end_of_the_key_and_its_lease(
    end: Callable[[OwnKey[LockLostError]], Awaitable[None]], key_stays: bool, lease: str
) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        own = own_key(client)
        async with own.waiting(5.0):
            assert await own.create(b"v")
        key, id_ = own.key, fake.leases[0].id
        assert fake.keys() == {key: b"v"} == {f"n/{id_:x}".encode(): b"v"}
        await end(own)
        assert own.loan is None
        assert bool(fake.keys(key)) == key_stays
        assert bool(fake.leases) == (lease != "revoked")
        again = await client.leases.pool.borrow(600)
        assert (again.id == id_) == (lease == "returned")
        await own.leave()  # there is nothing to leave any more
        assert bool(fake.keys(key)) == key_stays


async def test_the_key_of_an_orphaned_session_stays_however_it_is_left() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        for end in (leave, leave_cancelled, leave_in_doubt, leave_lost):
            async with client.session(ttl=600) as session:
                own = own_key(client, session._leases)
                await own.create(b"v")
                session.orphan()
                await end(own)
                assert fake.keys(own.key)


async def test_a_wait_that_is_late_is_left() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        own = own_key(client)
        with pytest.raises(LockTimeoutError, match="beacon 'n' was not acquired in time"):  # noqa: PT012 - the block is what is tested
            async with own.waiting(1.0):
                await own.create(b"v")
                await asyncio.sleep(2.0)
        assert fake.keys() == {}
