"""Real servers for the integration tests."""

import ssl
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest
import trustme
from anyio.from_thread import start_blocking_portal

from etcd_aio import Client
from etcd_aio.testing import EtcdCluster, EtcdServer, ServerTLS
from tests.support.on_fake import FakeServer, ServedFake, runs_on_fake
from tests.support.servers import QUICK_ELECTIONS, STEADY_LEADER

ENGINES = "native,grpclib"
NIGHTLY_ENGINES = f"{ENGINES},gateway"

_prefixes = count()


@pytest.fixture(scope="session")
def shared_server(pytestconfig: pytest.Config) -> Iterator[EtcdServer | FakeServer | ServedFake]:
    """One member for tests that leave it running and keep to their own `prefix`.

    It runs in its own thread and loop, so that each test may choose its loop. With `--on-fake` it is a fake.
    """
    way = pytestconfig.getoption("on_fake")
    if way == "engine":
        yield FakeServer()
        return
    if way == "sockets":
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(ServedFake()) as fake:
            yield fake
        return
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(EtcdServer()) as server:
        yield server


@pytest.fixture(autouse=True)
def new_fake(request: pytest.FixtureRequest) -> Iterator[None]:
    """With `--on-fake` each test has a new one, unless it is served."""
    if request.config.getoption("on_fake") != "engine":
        yield
        return
    server = request.getfixturevalue("shared_server")
    with server.renewed():
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--on-fake`, leave out those tests of this folder that do not run on a fake."""
    if not config.getoption("on_fake"):
        return
    folder = Path(__file__).parent
    left_out = {item for item in items if item.path.is_relative_to(folder) and not runs_on_fake(item)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


@pytest.fixture
def patient_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is closed waits for what it revokes for longer than a server stands still."""
    monkeypatch.setattr("etcd_aio.client._CLOSE_SECONDS", 30.0)
    monkeypatch.setattr("etcd_aio.lease.pool.CLOSE_SECONDS", 30.0)


@pytest.fixture
async def steady_cluster() -> AsyncIterator[EtcdCluster]:
    """Three members whose leader stays the leader unless the test moves it."""
    async with EtcdCluster(size=3, **STEADY_LEADER) as cluster:
        await cluster.wait_healthy()
        yield cluster


@pytest.fixture
def prefix() -> str:
    """A prefix that no other test writes under."""
    return f"test-{next(_prefixes)}/"


@pytest.fixture
async def client(shared_server: EtcdServer) -> AsyncIterator[Client]:
    async with Client(shared_server.endpoint) as client:
        yield client


@pytest.fixture
async def cluster() -> AsyncIterator[EtcdCluster]:
    """Three members that the test may stop and freeze. They elect a leader five times as fast as by default."""
    async with EtcdCluster(size=3, **QUICK_ELECTIONS) as cluster:
        await cluster.wait_healthy()
        yield cluster


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of `each_engine` run on the native engine; on all in a nightly run or if marked `both_engines`.

    Tests of `each_store` run on whole stores; also in a namespace in a nightly run or if marked `both_stores`, unless
    they are marked `whole_store`, since they look at the store from outside of their clients.
    """
    is_nightly = metafunc.config.getoption("tier") == "nightly"
    if "each_engine" in metafunc.fixturenames:
        marked = any(metafunc.definition.iter_markers("both_engines"))
        engines = NIGHTLY_ENGINES if is_nightly else ENGINES if marked else "native"
        metafunc.parametrize("each_engine", _engines(metafunc, engines), indirect=True)
    if "each_store" in metafunc.fixturenames:
        is_whole = any(metafunc.definition.iter_markers("whole_store"))
        is_both = is_nightly or any(metafunc.definition.iter_markers("both_stores"))
        stores = ("client", "namespace") if is_both and not is_whole else ("client",)
        metafunc.parametrize("each_store", stores, indirect=True)


def _engines(metafunc: pytest.Metafunc, default: str) -> list[str]:
    """The engines of a test. The gateway is left out where the peer of the test speaks HTTP/2 only (`http2_only`)."""
    only_http2 = any(metafunc.definition.iter_markers("http2_only"))
    wanted = metafunc.config.getoption("engines") or default
    return [name for name in wanted.split(",") if not (only_http2 and name == "gateway")]


@pytest.fixture
def each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set the default engine of clients in the test, unless it runs on a fake; returns its name."""
    if request.config.getoption("on_fake") == "engine":
        return "fake"
    defaults = Client.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "engine", request.param)
    return str(request.param)


@pytest.fixture
def each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the default namespace of clients in the test: none, or one with bytes that are no text."""
    defaults = Client.__init__.__kwdefaults__
    assert defaults is not None
    if request.param == "namespace":
        monkeypatch.setitem(defaults, "namespace", b"in\xff/")


@pytest.fixture(params=["plaintext", "tls"])
def each_tls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ServerTLS | None, ssl.SSLContext | None]:
    """Run the test without and with TLS: the options of the server and of the client."""
    if request.param == "plaintext":
        return None, None
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1", "localhost")
    files = [tmp_path / name for name in ("server.pem", "server.key", "ca.pem")]
    own.cert_chain_pems[0].write_to_path(files[0])
    own.private_key_pem.write_to_path(files[1])
    authority.cert_pem.write_to_path(files[2])
    return ServerTLS(files[0], files[1]), ssl.create_default_context(cafile=files[2])
