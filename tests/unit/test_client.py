"""client.py: the client without servers: options, errors and reprs."""

import asyncio
import copy
import gc
import logging
import pickle
import ssl
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from etcd_aio import Client, ClientClosedError, ConfigError, __version__, transport
from etcd_aio.discovery.srv_records import SrvAnswer
from etcd_aio.error_handler.credentials import Password
from etcd_aio.errors import ClientUsageError, StatusCode, UserEmptyError
from etcd_aio.fake import FakeEtcd
from etcd_aio.transport import Engine, EngineName, TransportOptions
from tests.support.calls import answered
from tests.support.fake_engine import Accept, FakeEngine, Hang, Refuse
from tests.support.until import until
from tests.support.virtual_time import tasks, timers, turns

pytestmark = pytest.mark.anyio


async def test_the_endpoints_are_shown_in_one_spelling_and_in_order() -> None:
    client = Client("m1, http://m2:1,[::1]")
    assert client.endpoints == ("m1:2379", "http://m2:1", "[::1]:2379")
    assert Client(["http://a", "http://b"]).endpoints == ("http://a:2379", "http://b:2379")
    assert Client().endpoints == ("127.0.0.1:2379",)


def test_statistics_and_streams_need_no_running_loop() -> None:
    fake = FakeEtcd()
    client = fake.client()
    with asyncio.Runner() as runner:
        watcher = client.watch("a")
        runner.run(watcher.__aenter__())
        (stream,) = client.streams()
        assert stream.is_open
        assert stream.since >= 0
        assert [endpoint.streams for endpoint in client.statistics()] == [1]
        runner.run(client.aclose())
        assert client.streams() == ()
    fake.close()


async def test_an_unused_client_has_no_state_and_says_so() -> None:
    client = Client(["http://a", "http://b"])
    assert client.statistics() == ()
    assert client.streams() == ()
    assert repr(client) == "<Client http://a:2379 IDLE, http://b:2379 IDLE>"
    await client.aclose()
    await client.aclose()
    assert repr(client) == "<Client closed>"


async def test_endpoints_can_be_replaced_before_the_first_use() -> None:
    client = Client("http://a")
    client.set_endpoints(["http://b", "http://c"])
    assert client.endpoints == ("http://b:2379", "http://c:2379")
    with pytest.raises(ConfigError):
        client.set_endpoints([])
    with pytest.raises(ConfigError):
        client.set_endpoints("http://d, ftp://e")
    assert client.endpoints == ("http://b:2379", "http://c:2379"), "a wrong list changes nothing"
    await client.aclose()
    with pytest.raises(ClientClosedError):
        client.set_endpoints("http://a")


@pytest.mark.parametrize(
    "options",
    [
        {"endpoints": []},
        {"endpoints": ""},
        {"endpoints": "http://name:secret@m1"},
        {"timeout": 0},
        {"timeout": 1e10},
        {"timeout": float("nan")},
        {"auth": ("root", "c4n4ry")},
        {"token": "c4n4ry"},
        {"endpoints": "https://m1", "auth": ("root", "c4n4ry"), "token": "c4n4ry"},
        {"endpoints": "https://m1", "auth": ("root", "")},
        {"endpoints": "https://m1", "token": ""},
        {"connect_timeout": -1},
        {"policy": "first"},
        {"engine": "curl"},
        {"retry": "sometimes"},
        {"keepalive_time": 4.9},
        {"max_send_bytes": 0},
        {"tls": True},
        {"fail_fast": 1},
        {"auto_sync": 0},
        {"auto_sync": "30"},
        {"discovery_srv": "a b"},
        {"discovery_srv": "example.com", "endpoints": "m1"},
        {"discovery_srv_name": "dev"},
    ],
    ids=str,
)
def test_an_option_that_cannot_work_is_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        Client(**options)  # type: ignore[arg-type]  # wrong on purpose
    assert "secret" not in str(caught.value)


async def test_a_client_can_be_made_outside_of_a_loop() -> None:
    client = await asyncio.to_thread(Client, "http://a")
    assert client.endpoints == ("http://a:2379",)


async def test_credentials_never_go_in_the_clear_unless_that_is_allowed() -> None:
    client = Client("https://m1", auth=("root", "pw-c4n4ry"))
    for wrong in ("m1", "http://m1", "https://m1,http://m2"):
        with pytest.raises(ConfigError, match="in plain text"):
            client.set_endpoints(wrong)
    assert client.endpoints == ("https://m1:2379",)
    client.set_endpoints("https://m2,unix:/run/etcd")
    assert "c4n4ry" not in repr(client)
    open_one = Client("m1", token="c4n4ry", allow_insecure_auth=True)
    open_one.set_endpoints("http://m2")
    for one in (client, open_one):
        with pytest.raises(TypeError):
            pickle.dumps(one)
        await one.aclose()


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_client_cannot_be_copied_and_says_so(way: Callable[[Client], object]) -> None:
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        way(Client("m1"))


def test_without_an_asyncio_loop_the_error_says_what_is_needed() -> None:
    client = Client("m1")
    for use in (client.connect(), client.get("k"), client.ping()):
        with pytest.raises(ClientUsageError, match="runs on asyncio only"):
            use.send(None)  # as a loop of another kind would


def test_a_client_that_was_never_closed_is_named_once_its_loop_has_ended() -> None:
    async def use() -> None:
        await Client("https://127.0.0.1:1", auth=("root", "pw-c4n4ry")).connect()

    def run() -> None:
        asyncio.run(use())
        gc.collect()

    with pytest.warns(ResourceWarning, match=r"^unclosed <Client https://127\.0\.0\.1:1>: use `async with`"):
        run()


def test_a_client_that_was_closed_or_never_used_is_not() -> None:
    async def use() -> None:
        async with Client("127.0.0.1:1"):
            pass

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(use())
        Client("m1")
        with pytest.raises(ConfigError):
            Client("m1", timeout=0)
        gc.collect()


async def test_a_closed_client_knows_no_secret_any_more() -> None:
    client = Client("https://m1", auth=("root", "pw-c4n4ry"))
    credentials = client._invoker._credentials
    assert isinstance(credentials, Password)
    await client.aclose()
    assert credentials.password == ""


# From texts.


class Recorded(Client):
    """Keeps the options with which it is made."""

    def __init__(self, endpoints: str | Iterable[str] | None = None, **options: Any) -> None:
        self.options = options
        super().__init__(endpoints, **options)


async def test_a_url_becomes_a_client_and_what_is_given_wins() -> None:
    client = Recorded.from_url("etcd://m1,m2:1/?timeout=3s&retry=never&max_send_bytes=77", timeout=9.0)
    assert client.endpoints == ("http://m1:2379", "http://m2:1")
    assert client.options == {"timeout": 9.0, "retry": "never", "max_send_bytes": 77, "discovery_srv": ""}
    await client.aclose()


async def test_a_url_of_a_unix_socket_and_of_tls() -> None:
    assert Client.from_url("etcd+unix:///run/etcd.sock").endpoints == ("unix:///run/etcd.sock",)
    assert Client.from_url("etcds://m1").endpoints == ("https://m1:2379",)


@pytest.mark.parametrize("query", ["timeout=0s", "engine=curl", "keepalive_time=1s", "auto_sync=0"])
def test_what_a_url_says_is_checked_like_everything_else(query: str) -> None:
    with pytest.raises(ConfigError):
        Client.from_url(f"etcd://m1/?{query}")


async def test_etcdctls_variables_become_a_client() -> None:
    variables = {"ETCDCTL_ENDPOINTS": "m1:1,http://m2", "ETCDCTL_COMMAND_TIMEOUT": "1m", "ETCDCTL_DIAL_TIMEOUT": "3s"}
    client = Recorded.from_env(variables, connect_timeout=1.0)
    assert client.endpoints == ("m1:1", "http://m2:2379")
    assert client.options == {"timeout": 60.0, "connect_timeout": 1.0, "discovery_srv": ""}
    assert Client.from_env({}).endpoints == ("127.0.0.1:2379",)


def test_with_tls_of_the_caller_the_variables_about_tls_do_not_count() -> None:
    variables = {"ETCDCTL_INSECURE_SKIP_TLS_VERIFY": "true", "ETCDCTL_CERT": "a certificate without its key"}
    client = Client.from_env(variables, tls=ssl.create_default_context())
    assert client.endpoints == ("127.0.0.1:2379",)
    with pytest.raises(ConfigError, match="INSECURE_SKIP_TLS_VERIFY"):
        Client.from_env(variables)


def test_the_variables_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCDCTL_ENDPOINTS", "m7:7")
    assert Client.from_env().endpoints == ("m7:7",)
    assert Client().endpoints == ("127.0.0.1:2379",), "the variables are read on request only"


# From DNS.


async def test_a_client_of_srv_records_has_no_endpoints_before_its_first_use() -> None:
    pytest.importorskip("dns", reason="dnspython is an extra")
    client = Client(discovery_srv="Example.com.", discovery_srv_name="dev")
    assert client.endpoints == ()
    assert repr(client) == "<Client without endpoints yet>"
    await client.aclose()
    assert Client.from_url("etcd+srv://example.com").endpoints == ()
    assert Client.from_env({"ETCDCTL_DISCOVERY_SRV": "example.com"}).endpoints == ()


async def test_credentials_and_certificates_from_texts() -> None:
    client = Recorded.from_url("etcds://r%40t:c4n4ry%3A@m1/?server_name=etcd")
    assert client.options["auth"] == ("r@t", "c4n4ry:")
    assert repr(client.options["tls"]) == "TLS(server_name='etcd')"
    assert "c4n4ry" not in repr(client)
    await client.aclose()
    variables = {"ETCDCTL_USER": "root:c4n4ry", "ETCDCTL_ENDPOINTS": "m1", "ETCDCTL_INSECURE_TRANSPORT": "false"}
    assert Recorded.from_env(variables).options["auth"] == ("root", "c4n4ry")


@pytest.mark.parametrize("rest", ["", "?allow_insecure_auth=false"])
def test_credentials_in_a_text_do_not_go_in_the_clear_either(rest: str) -> None:
    with pytest.raises(ConfigError, match="in plain text") as caught:
        Client.from_url(f"etcd://root:c4n4ry@m1{rest}")
    assert "c4n4ry" not in str(caught.value)
    assert "etcds://" in str(caught.value), "what to write in a URL"
    assert Client.from_url("etcd://root:c4n4ry@m1?allow_insecure_auth=true").endpoints == ("http://m1:2379",)
    with pytest.raises(ConfigError, match="in plain text"):
        Client.from_env({"ETCDCTL_USER": "root:c4n4ry"})


def test_the_layers_get_the_options_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, TransportOptions]] = []

    def create_engine(name: EngineName, options: TransportOptions) -> Engine:
        made.append((name, options))
        return transport.create_engine(name, options)

    monkeypatch.setattr("etcd_aio.client.create_engine", create_engine)
    client = Client(
        "m1",
        engine="native",
        connect_timeout=1.0,
        keepalive_time=6.0,
        keepalive_timeout=4.0,
        max_receive_bytes=77,
        max_send_bytes=78,
    )
    ((name, options),) = made
    assert name == "native"
    assert (options.connect_timeout, options.keepalive_time, options.keepalive_timeout) == (1.0, 6.0, 4.0)
    assert (options.max_receive_bytes, options.user_agent) == (77, f"etcd_aio/{__version__}")
    assert client._invoker.max_send_bytes == 78


async def test_an_engine_may_be_made_by_a_function_of_the_users() -> None:
    made: list[tuple[FakeEngine, TransportOptions]] = []

    def factory(options: TransportOptions) -> Engine:
        made.append((FakeEngine(), options))
        return made[-1][0]

    client = Client("m1", engine=factory, connect_timeout=1.0)
    ((engine, options),) = made
    assert options.connect_timeout == 1.0
    engine["m1:2379"].documents["/version"] = b'{"etcdserver": "3.7.3", "etcdcluster": "3.7.0"}'
    engine["m1:2379"].otherwise = answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied")
    async with client:
        assert await client.ping() >= 0
        assert engine["m1:2379"].dials
        (versions,) = await client.versions()
    assert (versions.server, versions.cluster) == ("3.7.3", "3.7.0")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """The engine of every client that is made."""
    made = FakeEngine()
    monkeypatch.setattr("etcd_aio.client.create_engine", lambda *arguments: made)
    return made


@pytest.mark.virtual_time
@pytest.mark.parametrize("options", [{"endpoints": "m1", "auto_sync": 60.0}, {"discovery_srv": "example.com"}])
async def test_closing_ends_every_task_of_the_client(
    options: dict[str, Any], engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never_answered(name: str, timeout: float) -> SrvAnswer:
        never: asyncio.Future[SrvAnswer] = asyncio.get_running_loop().create_future()
        return await never

    monkeypatch.setattr("etcd_aio.discovery.srv.dns_lookup", never_answered)
    client = Client(**options)
    await client.connect()
    await turns()
    assert tasks()
    await client.aclose()
    assert not tasks()
    assert not timers()


@pytest.mark.virtual_time
async def test_waiting_for_a_connection_is_patient_even_if_calls_fail_fast(engine: FakeEngine) -> None:
    engine["m1:2379"].dial = Refuse()
    client = Client("m1", fail_fast=True)
    loop = asyncio.get_running_loop()
    began = loop.time()
    loop.call_later(30, setattr, engine["m1:2379"], "dial", Accept())
    await client.wait_ready(timeout=60)
    assert loop.time() - began >= 30
    await client.aclose()


@pytest.mark.virtual_time
async def test_a_cancelled_connect_that_checks_versions_leaves_no_client_to_close(engine: FakeEngine) -> None:
    engine["m1:2379"].dial = Hang()
    client = Client("m1", reject_old_cluster=True)
    connecting = asyncio.create_task(client.connect())
    await turns()
    connecting.cancel()
    await asyncio.wait([connecting])
    assert connecting.cancelled()
    assert repr(client) == "<Client closed>"
    assert not tasks()


@pytest.mark.virtual_time
async def test_a_member_that_denies_a_ping_serves_requests(engine: FakeEngine) -> None:
    member = engine["m1:2379"]
    member.answers.append(answered(StatusCode.PERMISSION_DENIED, "etcdserver: permission denied"))
    member.otherwise = answered(StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty")
    async with Client("m1") as client:
        assert await client.ping() >= 0
        with pytest.raises(UserEmptyError):
            await client.ping()


def test_a_client_whose_arguments_are_refused_can_be_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        Client("m1:2379", timeout=-1)
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert "<Client not constructed>" in shown


def test_python_names_the_call_in_what_it_says_of_it() -> None:
    with pytest.raises(TypeError, match=r"^\w+\.delete\(\) got an unexpected"):
        Client("m1:2379").delete("k", recursive=True)  # type: ignore[call-arg, unused-coroutine]


async def test_log_records_of_endpoints_and_streams_have_fields(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEtcd(members=3) as fake, fake.client() as client, client.watch("a") as watcher:
        (stream,) = client.streams()
        caplog.set_level(logging.DEBUG, "etcd_aio")
        next(member for member in fake.members if member.endpoint == stream.endpoint).stop()
        await until(lambda: any("resumed" in record.message for record in caplog.records))
        await client.put("a", "1")
        await anext(watcher)
    lost, *_, resumed = [vars(record) for record in caplog.records if record.name == "etcd_aio.streams"]
    assert (lost["method"], lost["endpoint"], lost["code"]) == ("Watch/Watch", stream.endpoint, "UNAVAILABLE")
    assert resumed["method"] == "Watch/Watch"
    assert resumed["endpoint"] not in {"", stream.endpoint}
    endpoints = [vars(record) for record in caplog.records if record.name == "etcd_aio.balancer"]
    assert endpoints
    assert all(f"endpoint {fields['endpoint']}: " in fields["message"] for fields in endpoints)
