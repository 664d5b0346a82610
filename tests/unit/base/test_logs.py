"""base/logs.py: the name of a client is in every line that it logs, and in the fields of the records."""

import ast
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import etcd_aio
from etcd_aio import Client, ConfigError
from etcd_aio.base.logs import log_for, log_of
from etcd_aio.fake import FakeEtcd
from etcd_aio.observing import Observer, WatchAdvance
from tests.support.observer import Remembers
from tests.support.until import until

PACKAGE = Path(etcd_aio.__file__).parent
TESTS_AND_TOOLS = {"cli", "fake", "testing"}
OF_NO_CLIENT = {"contrib/discovery/httpx.py"}  # about connections to other servers
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


@pytest.fixture(autouse=True)
def everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "etcd_aio")


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str | None]]:
    """The lines, each with the name in its fields."""
    records = [record for record in caplog.records if record.name.startswith("etcd_aio")]
    return [(record.getMessage(), vars(record).get("client")) for record in records]


async def outage(client: Client, fake: FakeEtcd) -> None:
    """Let a client meet what it logs: attempts that move, streams and connections that are lost and come again."""
    await until(lambda: [one.state.name for one in client.statistics()] == ["READY"] * len(fake.members))
    with fake.fault("KV/Range", status="UNAVAILABLE", times=1):
        await client.get("a")
    async with client.watch("a"), client.lease(60):
        (*_, stream) = client.streams()
        member = next(one for one in fake.members if one.endpoint == stream.endpoint)
        member.stop()
        await until(lambda: client.streams()[-1].is_open and client.streams()[-1].endpoint != member.endpoint)
        member.start()
        await until(lambda: all(one.state.name == "READY" for one in client.statistics()))


@pytest.mark.anyio
async def test_every_line_of_a_client_with_a_name_begins_with_it(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd(members=3) as fake, fake.client(name="orders") as client:
        await outage(client, fake)
    lines = said(caplog)
    assert [line for line, name in lines if not (line.startswith("orders: ") and name == "orders")] == []
    for part in ("call KV/Range: attempt 1", "connected again after", "stream watch: lost at", "stream watch: resumed"):
        assert [line for line, _ in lines if part in line], part


@pytest.mark.anyio
async def test_a_client_without_a_name_logs_as_if_there_were_none(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd(members=3) as fake, fake.client() as client:
        await outage(client, fake)
    lines = said(caplog)
    assert lines
    assert {name for _, name in lines} == {None}
    assert not [line for line, _ in lines if line.startswith(":")]


@pytest.mark.anyio
async def test_the_end_of_an_outage_is_one_line_at_info_with_its_duration(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        await client.get("a")
        fake.members[0].stop()
        await until(lambda: client.statistics()[0].state.name != "READY")
        fake.members[0].start()
        await until(lambda: client.statistics()[0].state.name == "READY")
    (again,) = [record for record in caplog.records if "connected again after" in record.getMessage()]
    assert (again.levelno, vars(again)["endpoint"]) == (logging.INFO, client.endpoints[0])


@pytest.mark.anyio
@pytest.mark.parametrize("is_wrapped", [False, True])
async def test_layers_above_the_client_log_its_name_too(is_wrapped: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd() as fake, fake.client(name="orders") as client:
        store = client.namespace("app/") if is_wrapped else client
        assert store.name == "orders"
        async with store.cache(prefix="a", decode=int) as cache:
            await store.put("a", "no number")
            await until(lambda: cache.statistics().revision > 1)
    lines = said(caplog)
    assert [line for line, _ in lines if "cannot be decoded" in line]
    assert [line for line, name in lines if not (line.startswith("orders: ") and name == "orders")] == []


@pytest.mark.anyio
async def test_observers_and_statistics_have_the_name() -> None:
    seen = Remembers()
    async with FakeEtcd() as fake, fake.client(name="orders", observers=[seen]) as client:
        assert client.name == "orders"
        assert "'orders'" in repr(client)
        async with client.watch("a") as watcher, client.lease(60):
            await client.put("a", "1")
            await anext(watcher)
            assert {one.client for one in client.streams()} == {"orders"}
        assert {one.client for one in client.statistics()} == {"orders"}
    told: list[Any] = [
        *seen.endpoints,
        *seen.streams,
        *seen.advances,
        *seen.leases,
        *(call.started for call in seen.calls),
    ]
    assert {type(one).__name__ for one in told} == {
        *("EndpointChange", "StreamChange", "WatchAdvance", "LeaseChange", "CallStarted")
    }
    assert {one.client for one in told} == {"orders"}


@pytest.mark.anyio
async def test_an_observer_that_raises_is_logged_with_the_name(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Observer):
        def watch_advanced(self, advance: WatchAdvance) -> None:
            raise ValueError(advance)

    async with (
        FakeEtcd() as fake,
        fake.client(name="orders", observers=[Broken()]) as client,
        client.watch("a") as watcher,
    ):
        await client.put("a", "1")
        await anext(watcher)
    assert ("orders: observer Broken failed; the client continues", "orders") in said(caplog)


def test_a_name_that_could_not_stand_in_a_line_is_refused() -> None:
    for name in ("a b", "100%", "a\nb", "x" * 65):
        with pytest.raises(ConfigError, match="name must be") as caught:
            Client(name=name)
        assert name not in str(caught.value)


def test_a_url_may_have_the_name() -> None:
    assert Client.from_url("etcd://m1/?name=orders").name == "orders"
    assert repr(Client.from_url("etcd://m1/?name=orders")) == "<Client 'orders' http://m1:2379 IDLE>"


def test_the_fields_of_a_line_stay(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("etcd_aio.test")
    log_of(logger, "orders").warning("%d%% of %s", 5, "it", extra={"endpoint": "m1"})
    (record,) = caplog.records
    assert record.getMessage() == "orders: 5% of it"
    assert (vars(record)["client"], vars(record)["endpoint"]) == ("orders", "m1")
    assert record.filename == Path(__file__).name, "the line is where the logger was called"


def test_a_store_of_the_application_needs_no_name() -> None:
    logger = logging.getLogger("etcd_aio.test")

    class Wrapper:
        name = 5

    assert log_for(logger, object()) is logger
    assert log_for(logger, Wrapper()) is logger


def calls_of_plain_loggers() -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[0] in TESTS_AND_TOOLS or name.as_posix() in OF_NO_CLIENT:
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "logg" in text else ():  # parsing all takes seconds
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
                owner = ast.unparse(node.func.value)
                if owner in {"logger", "logging"} or owner.endswith(".logger"):
                    yield f"{name}:{node.lineno}"


def test_no_line_is_logged_without_the_name_of_its_client() -> None:
    assert list(calls_of_plain_loggers()) == []
