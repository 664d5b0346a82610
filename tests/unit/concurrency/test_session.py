"""concurrency/session.py, concurrency/session_leases.py: what it makes, turns, and sweeps."""

import asyncio
import inspect
from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.concurrency import Session
from etcd_aio.concurrency import session as module
from etcd_aio.errors import ClientUsageError
from etcd_aio.fake import FakeEtcd
from tests.support.virtual_time import turns

pytestmark = pytest.mark.anyio


def leases_of(session: Session) -> Any:
    """The leases of a session, as if it was entered."""
    session._leases.id = 1
    return session._leases


class Recorder:
    """Stands for a class; it has the arguments that it was called with."""

    def __init__(self, *args: object, **options: object) -> None:
        self.args = args
        self.options = options


@pytest.mark.parametrize(
    ("method", "made"), [("lock", "Lock"), ("rwlock", "RWLock"), ("semaphore", "Semaphore"), ("election", "Election")]
)
def test_every_argument_is_passed_on(method: str, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, made, Recorder)
    client = Client("127.0.0.1:1")
    session = client.session(ttl=17)
    make = getattr(session, method)
    options: dict[str, object] = {name: object() for name in inspect.signature(make).parameters if name != "name"}
    result = make("a", **options)
    assert result.args == (client, session._leases, "a")
    assert result.options == {**options, "ttl": 17}


async def test_a_turn_that_comes_with_a_cancellation_goes_to_the_next() -> None:
    leases = leases_of(Client("127.0.0.1:1").session())
    loan = await leases.borrow(60, b"a/")
    second, third = (asyncio.create_task(leases.borrow(60, b"a/")) for _ in range(2))
    await turns()
    loan.give_back()
    second.cancel()  # it has its turn, and has not run yet
    await turns()
    assert second.cancelled()
    assert third.done()
    third.result().give_back()


async def test_a_turn_that_comes_after_a_cancellation_goes_to_the_next() -> None:
    leases = leases_of(Client("127.0.0.1:1").session())
    loan = await leases.borrow(60, b"a/")
    second, third = (asyncio.create_task(leases.borrow(60, b"a/")) for _ in range(2))
    await turns()
    second.cancel()  # it waits no more, and has not run yet
    loan.give_back()
    await asyncio.wait([second])
    assert second.cancelled()
    await turns()
    assert third.done()
    third.result().give_back()


@pytest.mark.parametrize(("is_orphan", "sweeps"), [(False, 1), (True, 0)])
async def test_a_key_in_doubt_of_an_orphan_is_not_swept(is_orphan: bool, sweeps: int) -> None:
    async with FakeEtcd() as fake, fake.client() as client, client.session() as session:
        loan = await session._leases.borrow(60, b"a/")
        assert loan is not None
        if is_orphan:
            session.orphan()
        await loan.revoke()
        found = [task for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio sweep")]
        assert len(found) == sweeps


async def test_a_session_is_used_within_its_block_only() -> None:
    session = Client("127.0.0.1:1").session()
    for use in (lambda: session.id, lambda: session.lease, session.orphan):
        with pytest.raises(ClientUsageError, match="the session is not entered"):
            use()
    with pytest.raises(ClientUsageError, match="the session is not entered"):
        await session.lock("a").acquire()
