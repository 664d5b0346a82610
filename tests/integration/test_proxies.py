"""Clients behind a proxy: every kind of call through tinyproxy, Dante and microsocks, and proxies in trouble."""

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from etcd_aio import Client, Key, op, sync
from etcd_aio.errors import NoAvailableEndpointsError, ProxyAuthenticationError, ProxyError, TransportError
from etcd_aio.testing import EtcdServer, ServerTLS
from etcd_aio.transport.proxy.tunnel import Tunnel
from tests.support import command_line
from tests.support.auth import QUICK_LOGINS, ROOT, enable_auth
from tests.support.forward_proxies import ENCODED, PROGRAMS, SECRET, ForwardProxy, forward_proxy
from tests.support.small_proxy import relayed, small_proxy
from tests.support.stream_server import stream_server
from tests.support.until import PATIENCE
from tests.support.versions import is_at_least
from tests.support.watch_history import Follower, Writes, caught_up, following, read_history

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

# The program, whether it wants a password, and the credentials and the scheme of the URL.
WAYS = (
    ("tinyproxy", False, "", ""),
    ("tinyproxy", True, ENCODED, ""),
    ("danted", False, "", "socks5h"),
    ("microsocks", False, "", ""),
    ("microsocks", True, ENCODED, ""),
    ("microsocks", True, ENCODED, "socks5h"),
)


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{'password' if way[1] else 'open'}{way[3] and '-' + way[3]}")
async def way(request: pytest.FixtureRequest) -> AsyncIterator[tuple[ForwardProxy, str]]:
    """A proxy that runs, and its URL."""
    program, has_password, credentials, scheme = request.param
    async with forward_proxy(program, has_password=has_password) as proxy:
        yield proxy, proxy.url(credentials, scheme=scheme)


async def use(client: Client, prefix: str) -> None:
    """Every kind of call: unary, streams of replies, of both sides, and snapshots."""
    put = await client.put(prefix + "a", b"\x00\xff")
    assert (await client.get(prefix + "a")).value == b"\x00\xff"  # type: ignore[union-attr]
    won = await client.txn().when(Key(prefix + "a").version == 1).then(op.put(prefix + "b", "2")).commit()
    assert won.succeeded
    async with asyncio.timeout(PATIENCE), client.watch(prefix=prefix, start_revision=put.revision) as watcher:
        await client.put(prefix + "c", "3")
        seen = [(await anext(watcher)).key.decode().removeprefix(prefix) for _ in range(3)]
    assert seen == ["a", "b", "c"]
    async with client.lease(ttl=5) as lease:
        assert (await client.leases.keep_alive_once(lease)).ttl == 5
        assert lease.is_held
    big = b"x" * 1_000_000
    await client.put(prefix + "big", big)
    assert (await client.get(prefix + "big")).value == big  # type: ignore[union-attr]
    assert len([kv.key async for kv in client.scan(prefix=prefix, page_size=2)]) == 4
    assert (await client.maintenance.status(client.endpoints[0])).version
    assert (await client.cluster.members()).members
    assert sum([len(chunk) async for chunk in client.maintenance.snapshot()])


async def until_it_fails(client: Client) -> None:
    """Call until the end of the connections is known."""
    async with asyncio.timeout(PATIENCE):
        with suppress(TransportError):
            while await client.get("a", timeout=1) is None:
                pass


@pytest.mark.both_engines
@pytest.mark.usefixtures("each_engine")
async def test_every_kind_of_call(shared_server: EtcdServer, prefix: str, way: tuple[ForwardProxy, str]) -> None:
    proxy, url = way
    async with Client(shared_server.endpoint, proxy=url, timeout=20, fail_fast=True) as client:
        await use(client, prefix)
        gc.collect()  # a test before this one may have left some in the frames of an error
        assert not [one for one in gc.get_objects() if isinstance(one, Tunnel)]  # nothing of the dial is left
        await proxy.kill()
        await until_it_fails(client)  # so it was the way of all that
        with pytest.raises(NoAvailableEndpointsError) as caught:
            await client.get(prefix + "a")
    (error,) = caught.value.errors.values()
    assert isinstance(error, ProxyError)
    assert f"127.0.0.1:{proxy.port} cannot be reached" in str(error)
    assert SECRET not in f"{caught.value!r} {caught.value} {error!r} {caught.value.attempts}"


@pytest.mark.both_engines
@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("each_tls", ["tls"], indirect=True)
async def test_every_kind_of_call_with_tls_and_a_token(
    each_tls: tuple[ServerTLS | None, ssl.SSLContext | None], prefix: str, way: tuple[ForwardProxy, str]
) -> None:
    server_tls, tls = each_tls
    async with EtcdServer(tls=server_tls, flags=(QUICK_LOGINS,)) as server:
        await enable_auth(server)
        async with Client(server.endpoint, tls=tls, auth=ROOT, proxy=way[1], timeout=20) as client:
            await use(client, prefix)
            assert (await client.auth.user_list()).users == ("root",)


@pytest.mark.parametrize("program", PROGRAMS)
async def test_the_gateway_goes_through_a_proxy_with_all_its_sockets(
    shared_server: EtcdServer, prefix: str, program: str
) -> None:
    if not is_at_least("3.5"):
        pytest.skip("its gateway has no streams")
    async with (
        forward_proxy(program) as proxy,
        Client(shared_server.endpoint, proxy=proxy.url(), engine="gateway", timeout=20) as client,
    ):
        await use(client, prefix)
        await asyncio.gather(*(client.put(f"{prefix}{number}", "x") for number in range(100)))
        await proxy.kill()
        await until_it_fails(client)


@pytest.mark.parametrize(("program", "has_password", "credentials", "text"), [
    ("tinyproxy", True, "me:wrong-c4n4ry", "refused the name and password"),
    ("tinyproxy", True, "", "wants a name and password, and got none"),
    ("microsocks", True, "me:wrong-c4n4ry", "refused the name and password"),
    ("microsocks", True, "", "wants a name and password, and got none"),
])  # fmt: skip
async def test_wrong_credentials_are_told_as_such(
    shared_server: EtcdServer,
    program: str,
    has_password: bool,
    credentials: str,
    text: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    async with (
        forward_proxy(program, has_password=has_password) as proxy,
        Client(shared_server.endpoint, proxy=proxy.url(credentials), fail_fast=True) as client,
    ):
        with pytest.raises(NoAvailableEndpointsError, match=text) as caught:
            await client.get("a")
        (error,) = caught.value.errors.values()
        assert type(error) is ProxyAuthenticationError
        assert f"127.0.0.1:{proxy.port}" in str(error)
        shown = f"{caught.value!r} {caught.value} {client!r} {client.statistics()} {caplog.text}"
        assert "c4n4ry" not in shown


async def test_a_proxy_that_refuses_or_reaches_nothing(shared_server: EtcdServer) -> None:
    port = int(shared_server.endpoint.rpartition(":")[2])
    block = f"socks block {{ from: 0.0.0.0/0 to: 0.0.0.0/0 port = {port} }}"
    for program, more, endpoint, text in (
        ("tinyproxy", "ConnectPort 1", shared_server.endpoint, f"does not allow connections to 127.0.0.1:{port}"),
        ("tinyproxy", "", "http://127.0.0.1:1", "cannot connect to 127.0.0.1:1"),
        ("danted", block, shared_server.endpoint, f"cannot connect to 127.0.0.1:{port}: its rules do not allow it"),
        ("danted", "", "http://127.0.0.1:1", "cannot connect to 127.0.0.1:1: the connection was refused"),
        ("microsocks", "", "http://127.0.0.1:1", "cannot connect to 127.0.0.1:1: the connection was refused"),
    ):
        async with (
            forward_proxy(program, more=more) as proxy,
            Client(endpoint, proxy=proxy.url(), fail_fast=True, timeout=20) as client,
        ):
            with pytest.raises(NoAvailableEndpointsError) as caught:
                await client.get("a")
            (error,) = caught.value.errors.values()
            assert f"the proxy {proxy.url()} {text}" in str(error)


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
async def test_what_is_no_proxy(shared_server: EtcdServer, scheme: str) -> None:
    port = shared_server.endpoint.rpartition(":")[2]
    url = f"{scheme}://me:c4n4ry@127.0.0.1:{port}"
    async with Client(shared_server.endpoint, proxy=url, fail_fast=True, timeout=20) as client:
        with pytest.raises(NoAvailableEndpointsError, match=f"{scheme}://127.0.0.1:{port}") as caught:
            await client.get("a")
        (error,) = caught.value.errors.values()
        assert isinstance(error, ProxyError)
        assert "c4n4ry" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_watch_goes_on_when_the_proxy_is_killed_and_started(
    shared_server: EtcdServer, prefix: str, program: str
) -> None:
    async with (
        forward_proxy(program) as proxy,
        Client(shared_server.endpoint, timeout=PATIENCE) as direct,
        Client(shared_server.endpoint, proxy=proxy.url(), timeout=PATIENCE) as client,
    ):
        writes = Writes(direct, prefix, rate=200, seed=1)
        follower = Follower({"prefix": prefix})
        async with following(client, prefix, [follower]) as followers:
            async with writes.going_on():
                for _ in range(3):
                    await asyncio.sleep(0.7)
                    await proxy.kill()
                    await asyncio.sleep(0.3)
                    await proxy.start()
                    await client.get(prefix)
            history = await read_history(shared_server.endpoint, prefix, await writes.finish(), begin=follower.first)
            await caught_up(followers, history)
            follower.check(history)
        assert len(history) > 100
        assert client.statistics()[0].connects >= 4
        print(f"{program}: {len(history)} events over {client.statistics()[0].connects} connections")


@pytest.mark.slow
async def test_an_idle_tunnel_that_the_proxy_closes_costs_no_call(shared_server: EtcdServer, prefix: str) -> None:
    async with (
        forward_proxy("tinyproxy", idle=1) as proxy,
        Client(shared_server.endpoint, proxy=proxy.url(), retry="never") as client,
    ):
        await client.put(prefix, "0")
        for _ in range(3):
            await asyncio.sleep(2.5)
            await client.put(prefix, "1")
            await client.get(prefix)
        (one,) = client.statistics()
        assert one.connects >= 3  # it was closed each time
        assert one.failures == 0


@pytest.mark.slow
async def test_pings_keep_the_tunnel_of_a_quiet_watch(shared_server: EtcdServer, prefix: str) -> None:
    async with (
        forward_proxy("tinyproxy", idle=9) as proxy,
        Client(shared_server.endpoint, proxy=proxy.url(), keepalive_time=5) as client,
        client.watch(prefix) as watcher,
    ):
        await client.get(prefix)
        await asyncio.sleep(11)
        assert client.statistics()[0].connects == 1
        await client.put(prefix, "x")
        assert (await anext(watcher)).value == b"x"


async def test_names_are_those_of_the_proxy_and_the_environment_names_it(
    shared_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = int(shared_server.endpoint.rpartition(":")[2])
    async with small_proxy() as proxy:
        proxy.resolve = lambda host, port: ("127.0.0.1", port)
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("http_proxy", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        endpoint = f"http://etcd.invalid:{port}"
        async with Client(endpoint, proxy="environment") as client:
            await client.get("a")
        assert set(proxy.places) == {("etcd.invalid", port)}
        monkeypatch.setenv("NO_PROXY", "invalid")
        async with Client(endpoint, proxy="environment", fail_fast=True) as client:
            with pytest.raises(NoAvailableEndpointsError, match=r"etcd\.invalid"):
                await client.get("a")
        async with Client(endpoint, fail_fast=True) as client:
            with pytest.raises(NoAvailableEndpointsError):
                await client.get("a")
        assert len(proxy.places) == 1


async def test_a_unix_socket_is_dialled_directly(shared_server: EtcdServer, tmp_path: Path) -> None:
    port = int(shared_server.endpoint.rpartition(":")[2])

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await relayed((reader, writer), await asyncio.open_connection("127.0.0.1", port))

    path = tmp_path / "etcd.sock"
    async with stream_server(relay, path=path), Client(f"unix://{path}", proxy="http://127.0.0.1:1") as client:
        await client.get("a")


async def test_blocking_code(shared_server: EtcdServer, prefix: str) -> None:
    def use_blocking(url: str) -> bytes:
        with sync.Client(shared_server.endpoint, proxy=url) as client:
            client.put(prefix, "x")
            found = client.get(prefix)
            assert found is not None
            return found.value

    async with small_proxy() as proxy:
        assert await asyncio.to_thread(use_blocking, f"socks5h://me:c4n4ry@127.0.0.1:{proxy.port}") == b"x"
        assert proxy.places == [("127.0.0.1", int(shared_server.endpoint.rpartition(":")[2]))]
        assert proxy.credentials == ["me:c4n4ry"]


async def test_the_command_line(shared_server: EtcdServer) -> None:
    async with forward_proxy("microsocks", has_password=True) as proxy:
        right, wrong = proxy.url(ENCODED), proxy.url("me:wrong-c4n4ry")
        words = ("--endpoints", shared_server.endpoint, "get", "nothing")
        for ended in (
            await command_line.run("--proxy", right, *words),
            await command_line.run(*words, environ={"ETCD_PROXY": right}),
            await command_line.run("--proxy", right, *words, environ={"ETCD_PROXY": wrong}),
        ):
            assert (ended.code, ended.stdout, ended.stderr) == (0, b"", "")
        ended = await command_line.run("--proxy", wrong, *words)
        assert ended.code != 0
        assert "refused the name and password" in ended.stderr
        assert "c4n4ry" not in ended.stderr
        ended = await command_line.run("--proxy", "c4n4ry", *words)
        assert ended.code == 128
        assert "--proxy must begin with http://" in ended.stderr
        assert "c4n4ry" not in ended.stderr
