"""concurrency/session.py: what it makes, turns, and sweeps. The rest is in the integration tests."""

import asyncio
import inspect
from typing import Any

import pytest

from etcd_aio import Client
from etcd_aio.concurrency import Session
from etcd_aio.concurrency import session as module
from tests.support.virtual_time import turns

pytestmark = pytest.mark.anyio


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
    assert result.args == (client, session, "a")
    assert result.options == {**options, "ttl": 17}


async def test_a_turn_that_comes_with_a_cancellation_goes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "id", 1)
    session = Client("127.0.0.1:1").session()
    loan = await session.borrow(60, b"a/")
    second, third = (asyncio.create_task(session.borrow(60, b"a/")) for _ in range(2))
    await turns()
    loan.give_back()
    second.cancel()  # it has its turn, and has not run yet
    await turns()
    assert second.cancelled()
    assert third.done()
    third.result().give_back()


async def test_a_turn_that_comes_after_a_cancellation_goes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "id", 1)
    session = Client("127.0.0.1:1").session()
    loan = await session.borrow(60, b"a/")
    second, third = (asyncio.create_task(session.borrow(60, b"a/")) for _ in range(2))
    await turns()
    second.cancel()  # it waits no more, and has not run yet
    loan.give_back()
    await asyncio.wait([second])
    assert second.cancelled()
    await turns()
    assert third.done()
    third.result().give_back()


@pytest.mark.parametrize(("is_orphan", "sweeps"), [(False, 1), (True, 0)])
async def test_a_key_in_doubt_of_an_orphan_is_not_swept(
    is_orphan: bool, sweeps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "id", 1)
    session = Client("127.0.0.1:1").session()
    loan: Any = await session.borrow(60, b"a/")
    monkeypatch.setattr(session, "_is_orphan", is_orphan)
    session.end(loan, is_clean=False)
    found = [task for task in asyncio.all_tasks() if task.get_name().startswith("etcd_aio sweep")]
    assert len(found) == sweeps
    for task in found:
        task.cancel()
