"""calls/store_calls.py: what takes a client refuses everything else at once."""

import asyncio
import importlib
import inspect
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

import etcd_aio
from etcd_aio import Client, KeyRange, sync
from etcd_aio.calls import check_store
from etcd_aio.once import ExactlyOnce
from etcd_aio.recipes import Counter
from etcd_aio.sync import recipes
from release.public import INTERNAL, PUBLIC

pytestmark = pytest.mark.anyio

URL: Final = "http://127.0.0.1:1"
WRONG: Final = (URL, None, 3, KeyRange(b"a"))
MADE_BY_OTHERS: Final = {"etcd_aio.concurrency.Leaders": "Election.changes(), which has checked the store"}
ARGUMENTS: Final[dict[str, Any]] = {
    "add": ("h:1",),
    "address": "h:1",
    "count": 2,
    "every": 60.0,
    "key": "k",
    "known": None,
    "since": 0,
    "keys": KeyRange(b"a", b"b"),
    "limit": 1,
    "logger": logging.getLogger(),
    "member": "m",
    "model": dict,
    "name": "n",
    "on_conflict": "keep",
    "pool": None,
    "prefix": "p/",
    "replicas": 1,
    "source": None,
    "target": "t",
    "timeout": 1.0,
    "ttl": 10,
    "value": b"v",
    "what": "things",
}
OPTIONAL: Final = {"LiveConfig": ("prefix",), "update": ("add",)}


def takers(package: str) -> "Iterator[Any]":
    """The public classes and functions that take a client or a store, and the parameter that is one."""
    for module in PUBLIC:
        if not (module == package or module.startswith(f"{package}.")) or module == "etcd_aio.op":
            continue
        try:
            found = importlib.import_module(module)
        except ImportError as error:
            print(f"{module} is left out: {error}")
            continue
        for name in getattr(found, "__all__", vars(found)):
            taker = getattr(found, name)
            home = getattr(taker, "__module__", "")
            if not callable(taker) or not home.startswith(f"{package}.") or name.startswith("async_"):
                continue
            for one in stores_of(taker):
                full = f"{module}.{name}"
                if full not in INTERNAL and full not in MADE_BY_OTHERS:
                    yield pytest.param(taker, one, id=f"{full}-{one}")


def stores_of(taker: Callable[..., object]) -> list[str]:
    """The parameters that are a client or a store."""
    try:
        parameters = inspect.signature(taker).parameters.values()
    except ValueError:  # an exception or a protocol
        return []
    is_store = re.compile(r"(<class ')?([\w.]+\.)?(StoreCalls|Store|Client)('>)?")
    return [one.name for one in parameters if is_store.fullmatch(str(one.annotation))]


def call(taker: Callable[..., Any], wrong_one: str, wrong: object, right: object) -> object:
    """Call it with a wrong argument, and with right ones else."""
    given: dict[str, object] = {}
    stores = stores_of(taker)
    for one in inspect.signature(taker).parameters.values():
        if one.name == wrong_one:
            given[one.name] = wrong
        elif one.name in stores:
            given[one.name] = right
        elif one.default is one.empty or one.name in OPTIONAL.get(taker.__name__, ()):
            given[one.name] = ARGUMENTS[one.name]
    made = taker(**given)
    return asyncio.run(made) if inspect.iscoroutine(made) else made


ASYNC: Final = [one for one in takers("etcd_aio") if not one.values[0].__module__.startswith("etcd_aio.sync.")]
BLOCKING: Final = list(takers("etcd_aio.sync"))


@pytest.fixture(scope="module")
def blocking() -> "Iterator[sync.Client]":
    with sync.Client(URL) as client:
        yield client


def test_the_search_finds_classes_and_functions() -> None:
    found = {str(one.id).rpartition(".")[2] for one in ASYNC}
    assert {"Cache-store", "LiveConfig-client", "Lock-store", "Mirror-destination", "load_snapshot-store"} <= found
    assert {"Counter-client", "Registration-store", "Session-store", "update-store"} <= found
    assert len(ASYNC) > 25
    assert len(BLOCKING) > 15
    for made in MADE_BY_OTHERS:
        module, _, name = made.rpartition(".")
        assert stores_of(getattr(importlib.import_module(module), name))


def test_an_error_names_the_argument() -> None:
    check_store(Client(URL), "source")
    with pytest.raises(TypeError, match=r"^source must be a client or a store, got str$"):
        check_store(URL, "source")


@pytest.mark.parametrize(("taker", "one"), ASYNC)
def test_asyncio_refuses_a_blocking_client(taker: Any, one: str, blocking: sync.Client) -> None:
    expected = r"of etcd_aio\.sync, .* use etcd_aio\.Client"
    for wrong in (blocking, blocking.namespace("a/")):
        with pytest.raises(TypeError, match=expected):
            call(taker, one, wrong, Client(URL))


@pytest.mark.parametrize(("taker", "one"), ASYNC)
def test_asyncio_refuses_what_is_no_client(taker: Any, one: str) -> None:
    for wrong in WRONG:
        with pytest.raises(TypeError, match=f"must be a client or a store, got {type(wrong).__name__}$"):
            call(taker, one, wrong, Client(URL))


@pytest.mark.parametrize(("taker", "one"), BLOCKING)
def test_blocking_code_refuses_a_client_of_asyncio(taker: Any, one: str, blocking: sync.Client) -> None:
    with pytest.raises(TypeError, match=r"of asyncio, .* use etcd_aio\.sync"):
        call(taker, one, Client(URL), blocking)


@pytest.mark.parametrize(("taker", "one"), BLOCKING)
def test_blocking_code_refuses_what_is_no_client(taker: Any, one: str, blocking: sync.Client) -> None:
    for wrong in WRONG:
        with pytest.raises(TypeError, match=f"must be a client or a store.*, got {type(wrong).__name__}$"):
            call(taker, one, wrong, blocking)


async def test_a_writer_of_blocking_code_is_refused() -> None:
    def make() -> sync.Client:
        return sync.Client(URL)

    client = await asyncio.to_thread(make)
    writer: Any = await asyncio.to_thread(client.exactly_once)
    with pytest.raises(TypeError, match=r"writer .* of etcd_aio\.sync"):
        Counter(etcd_aio.Client(URL), "n", writer=writer)
    await asyncio.to_thread(client.close)


def test_blocking_code_refuses_a_writer_of_asyncio(blocking: sync.Client) -> None:
    writer: Any = ExactlyOnce(Client(URL))
    with pytest.raises(TypeError, match="a ExactlyOnce of asyncio"):
        recipes.Counter(blocking, "n", writer=writer)


def test_a_facade_that_is_no_store_is_refused(blocking: sync.Client) -> None:
    queue: Any = recipes.Queue(blocking, "q")
    with pytest.raises(TypeError, match="must be a client or a store"):
        recipes.Queue(queue, "n")
