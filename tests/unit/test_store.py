"""store.py: what it makes sends nothing, and is imported at the first use."""

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from etcd_aio import Client, InvalidRequestError, Store, concurrency, once
from etcd_aio.errors import EmptyKeyError
from etcd_aio.lease import calls as lease_calls
from etcd_aio.once import DEFAULT_PREFIX, DEFAULT_SLOTS, DEFAULT_TTL, DEFAULT_WINDOW, ExactlyOnce
from tests.support.virtual_time import turns

ROOT = Path(__file__).parents[2]


def test_they_make_objects_that_share_the_leases_of_the_client() -> None:
    client = Client()
    assert isinstance(client, Store)
    lock = client.lock("a")
    assert lock.name == b"a"
    assert client.rwlock("a").name == b"a"
    assert client.semaphore("a", limit=3).limit == 3
    assert not client.session().is_orphan
    assert client.leases.pool is client.leases.pool is client.namespace("b").leases.pool
    assert Client().leases.used_pool is None


class Recorder:
    """Stands for a class; it has the arguments that it was called with."""

    def __init__(self, *args: object, **options: object) -> None:
        self.args = args
        self.options = options


@pytest.mark.parametrize(
    ("shortcut", "made"),
    [
        ("lock", "Lock"),
        ("rwlock", "RWLock"),
        ("semaphore", "Semaphore"),
        ("election", "Election"),
        ("session", "Session"),
        ("exactly_once", "ExactlyOnce"),
    ],
)
def test_every_argument_is_passed_on(shortcut: str, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once if made == "ExactlyOnce" else concurrency, made, Recorder)
    client = Client("127.0.0.1:1", timeout=7.0)
    method = getattr(client, shortcut)
    options: dict[str, object] = {name: object() for name in inspect.signature(method).parameters if name != "name"}
    result = method(*(("a",) if shortcut not in ("session", "exactly_once") else ()), **options)
    assert result.options == options
    if shortcut not in ("session", "exactly_once"):
        assert result.args == (client, client.leases.pool, "a")


def test_every_argument_of_a_lease_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_calls, "Lease", Recorder)
    options: dict[str, object] = {name: object() for name in ("id", "adopt", "timeout")}
    made: Any = Client("127.0.0.1:1").lease(7, on_lost="signal", **options)  # type: ignore[arg-type]
    assert (made.args[1:], made.options) == ((7, "signal"), options)


def test_nothing_of_them_is_imported_with_the_client() -> None:
    code = (
        "import sys, etcd_aio; client = etcd_aio.Client(); "
        "late = ('etcd_aio.concurrency', 'etcd_aio.once', 'etcd_aio.lease.pool'); "
        "assert not [name for name in sys.modules if name.startswith(late)]; "
        "client.lock('a'); assert 'etcd_aio.concurrency' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_defaults_are_those_of_the_classes() -> None:
    parameters = inspect.signature(Client.exactly_once).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items() if name != "self"}
    expected = {"slots": DEFAULT_SLOTS, "ttl": DEFAULT_TTL, "window": DEFAULT_WINDOW, "prefix": DEFAULT_PREFIX}
    assert defaults == expected
    of_class = inspect.signature(ExactlyOnce).parameters
    assert {name: of_class[name].default for name in expected} == expected


def test_building_an_exactly_once_sends_nothing() -> None:
    client = Client("127.0.0.1:1")
    assert isinstance(client.exactly_once(slots=1), ExactlyOnce)
    assert not client.statistics()


@pytest.mark.parametrize("options", [{"slots": 0}, {"ttl": 0}, {"window": 0}, {"prefix": ""}])
def test_wrong_arguments_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError if "prefix" not in options else EmptyKeyError):
        Client("127.0.0.1:1").exactly_once(**options)  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_wait_deleted_checks_its_arguments_first() -> None:
    client = Client("127.0.0.1:1")
    with pytest.raises(EmptyKeyError):
        await client.wait_deleted("")
    with pytest.raises(InvalidRequestError, match="revision must not be negative"):
        await client.wait_deleted("k", -1)
    with pytest.raises(InvalidRequestError, match="timeout must be"):
        await client.wait_deleted("k", timeout=-1)
    assert not client.statistics()


@pytest.mark.anyio
async def test_closing_a_client_that_was_not_used_starts_nothing() -> None:
    client = Client()
    client.lock("a")
    await client.aclose()
    assert client.statistics() == ()


@pytest.mark.anyio
async def test_closing_leaves_no_block_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Block(Recorder):
        async def aclose(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(once, "ExactlyOnce", Block)
    client = await Client("127.0.0.1:1").connect()
    block = client.exactly_once()
    await client.aclose()
    await turns()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "etcd_aio once close"]
    assert isinstance(block, Block)
