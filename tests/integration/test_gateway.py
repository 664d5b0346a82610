"""The gateway engine on real servers: behind proxies of HTTP/1, through cut connections, and beside other engines."""

import asyncio
import logging
import re
import urllib.request
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

import pytest

from etcd_aio import Client, EtcdError, Key, methods, op, pb
from etcd_aio.error_handler import StreamedReply
from etcd_aio.errors import (
    InvalidTokenError,
    LeaseNotFoundError,
    NoAvailableEndpointsError,
    NotSupportedByServerError,
)
from etcd_aio.observing import ConnectivityState
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy
from tests.support.auth import QUICK_LOGINS, ROOT, enable_auth
from tests.support.http1_proxies import PROXIES, ProxyName, Relay, http1_proxy
from tests.support.servers import QUICK_ELECTIONS
from tests.support.stream_server import stream_server
from tests.support.until import PATIENCE
from tests.support.versions import is_at_least, need, need_beside, skip_on
from tests.support.watch_history import Follower, Writes, caught_up, following, read_history

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


def need_streams() -> None:
    """Skip the test on servers whose gateway crashes when it gets a WebSocket."""
    if not is_at_least("3.5"):
        pytest.skip("its gateway has no streams")


async def use(client: Client, prefix: str) -> None:
    """A little of everything that has a way of its own over HTTP/1."""
    put = await client.put(prefix + "a", b"\x00\xff")
    assert (await client.get(prefix + "a")).value == b"\x00\xff"  # type: ignore[union-attr]
    won = await client.txn().when(Key(prefix + "a").version == 1).then(op.put(prefix + "b", "2")).commit()
    assert won.succeeded
    async with client.watch(prefix=prefix, start_revision=put.revision) as watcher:
        await client.put(prefix + "c", "3")
        seen = []
        async for event in watcher:
            seen.append(event.key.decode().removeprefix(prefix))
            if len(seen) == 3:
                break
    assert seen == ["a", "b", "c"]
    async with client.lease(ttl=5) as lease:
        assert (await client.leases.keep_alive_once(lease)).ttl == 5
    with pytest.raises(LeaseNotFoundError):
        await client.put(prefix + "missing", b"", lease=12345)
    big = b"x" * 1_000_000
    await client.put(prefix + "big", big)
    assert (await client.get(prefix + "big")).value == big  # type: ignore[union-attr]
    assert [kv.key async for kv in client.scan(prefix=prefix, page_size=2)]
    assert sum([len(chunk) async for chunk in client.maintenance.snapshot()])


@pytest.mark.parametrize("proxy", PROXIES)
async def test_everything_passes_a_proxy_of_http1(shared_server: EtcdServer, prefix: str, proxy: ProxyName) -> None:
    need_streams()
    async with (
        http1_proxy(proxy, shared_server.endpoint) as endpoint,
        Client(endpoint, engine="gateway", timeout=20) as client,
    ):
        await use(client, prefix)
        assert [one.engine for one in client.statistics()] == ["gateway"]


@pytest.mark.parametrize("proxy", PROXIES)
async def test_auto_takes_the_gateway_where_http2_does_not_pass_and_says_so_once(
    shared_server: EtcdServer, prefix: str, proxy: ProxyName, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        http1_proxy(proxy, shared_server.endpoint) as endpoint,
        Client([endpoint, shared_server.endpoint], engine="auto", timeout=20) as client,
    ):
        with caplog.at_level(logging.WARNING, "etcd_aio.transport"):
            await client.wait_ready()
            for number in range(20):
                await client.put(f"{prefix}{number}", "v")
            async with asyncio.timeout(PATIENCE):
                while len([one for one in client.statistics() if one.engine]) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            engines = {one.endpoint: one.engine for one in client.statistics()}
        assert engines == {endpoint: "gateway", shared_server.endpoint: "native"}
        told = [one.getMessage() for one in caplog.records if "HTTP/2 does not work" in one.getMessage()]
        assert len(told) == 1
        assert told[0] == (
            f"endpoint {endpoint.removeprefix('http://')}: HTTP/2 does not work "
            "(the peer answered in HTTP/1, not HTTP/2); etcd's JSON gateway is used, which is slower"
        )


async def test_auto_goes_back_to_http2_when_it_passes_again(shared_server: EtcdServer, prefix: str) -> None:
    relay = Relay(int(shared_server.endpoint.rpartition(":")[2]))
    port = 0
    async with AsyncExitStack() as stack:
        async with stream_server(relay.serve) as port:
            client = await stack.enter_async_context(Client(f"http://127.0.0.1:{port}", engine="auto", timeout=20))
            await client.put(prefix + "a", "1")
            assert client.statistics()[0].engine == "gateway"
        async with asyncio.timeout(PATIENCE):
            while client.statistics()[0].state is not ConnectivityState.TRANSIENT_FAILURE:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        relay.passes_http2 = True
        async with stream_server(relay.serve, port=port):
            assert await client.get(prefix + "a") is not None
            assert client.statistics()[0].engine == "native"
            await client.aclose()


async def test_a_proxy_without_its_server_is_named(shared_server: EtcdServer) -> None:
    async with FaultProxy(shared_server.endpoint) as gone:
        endpoint = gone.endpoint
    async with http1_proxy("ours", endpoint) as proxy, Client(proxy, engine="gateway", timeout=3) as client:
        with pytest.raises(NoAvailableEndpointsError, match="HTTP status 502 instead of etcd's answer") as caught:
            await client.get("k")
        assert proxy in str(caught.value)


async def test_a_name_that_the_server_does_not_allow_is_explained() -> None:
    async with EtcdServer(flags=["--host-whitelist=127.0.0.1"]) as server:
        port = server.endpoint.rpartition(":")[2]
        async with Client(f"http://localhost:{port}", engine="gateway", timeout=3) as client:
            with pytest.raises(NoAvailableEndpointsError, match="--host-whitelist"):
                await client.get("k")


async def test_range_stream_is_replaced_by_pages_and_said_to_be_lacking(shared_server: EtcdServer, prefix: str) -> None:
    async with Client(shared_server.endpoint, engine="gateway") as client:
        await client.txn().then(*(op.put(f"{prefix}{number:02}", "v") for number in range(50))).commit()
        assert len([kv async for kv in client.scan(prefix=prefix, page_size=10)]) == 50
        with pytest.raises(
            NotSupportedByServerError, match=r"gateway does not serve KV/RangeStream: engine='native' does"
        ):
            await client._invoker.read(StreamedReply(methods.RANGE_STREAM), pb.RangeRequest(key=b"k"))


async def test_an_old_server_gets_calls_and_no_websocket_that_would_crash_it() -> None:
    need_beside("3.4")
    async with EtcdServer(version="3.4") as old, Client(old.endpoint, engine="gateway") as client:
        await client.put("k", "v")
        with pytest.raises(NotSupportedByServerError, match="engine='native'"):
            async with client.watch("k"):
                pass
        assert await client.get("k") is not None


async def use_for_seconds(client: Client) -> None:
    """Keep a watch and a lease while tokens of a second expire."""
    async with client.watch(prefix="k") as watcher, client.lease(ttl=6) as lease:
        for number in range(3):
            await client.put(f"k{number}", "v", lease=lease)
            await asyncio.sleep(1.2)
            assert (await anext(aiter(watcher))).key == f"k{number}".encode()


async def test_tokens_that_are_no_longer_good_are_replaced_and_streams_go_on() -> None:
    need_streams()
    need("3.4.25", "3.5.8", why="older ones say 'permission denied' of a token that expired, which ends a watch")
    skip_on("3.8.0-alpha.0", why="its gateway takes no tokens on WebSockets (etcd-io/etcd#21929)")
    async with EtcdServer(flags=[QUICK_LOGINS, "--auth-token-ttl=1"]) as server:
        await enable_auth(server)
        async with Client(server.endpoint, engine="gateway", auth=ROOT, allow_insecure_auth=True, timeout=20) as client:
            await use_for_seconds(client)
        async with Client(server.endpoint, engine="gateway", token="bad.1-c4n4ry", allow_insecure_auth=True) as client:
            with pytest.raises(InvalidTokenError):
                await client.get("k")
            with pytest.raises(InvalidTokenError):
                await client.watch("k").__aenter__()


# --- cut connections ---


@pytest.mark.parametrize("cuts", [4, pytest.param(50, marks=pytest.mark.nightly)])
async def test_a_watch_loses_nothing_through_cut_connections(shared_server: EtcdServer, prefix: str, cuts: int) -> None:
    need_streams()
    async with (
        FaultProxy(shared_server.endpoint) as proxy,
        Client(shared_server.endpoint) as writer,
        Client(proxy.endpoint, engine="gateway") as client,
    ):
        begin = (await writer.range(prefix, count_only=True)).revision  # other tests may have compacted what was before
        async with following(client, prefix) as followers:
            writes = Writes(writer, prefix, rate=200, seed=7)
            async with writes.going_on(), asyncio.timeout(PATIENCE * 4):
                number = 0
                while (before := reconnects(followers)) < cuts:
                    await asyncio.sleep(0.1)
                    (proxy.reset if number % 2 else proxy.cut)()
                    number += 1
                    # What is cut while the stream is being opened does not count, so most cuts wait for that.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(5.0 if number % 3 else 0.0):
                            while reconnects(followers) == before:  # noqa: ASYNC110 - streams have no event for it
                                await asyncio.sleep(0.02)
            end = await writes.finish()
            history = await read_history(shared_server.endpoint, prefix, end, begin=begin)
            await caught_up(followers, history)
        writes.check(history)
        for follower in followers:
            follower.check(history)
        assert reconnects(followers) >= cuts


def reconnects(followers: Sequence[Follower]) -> int:
    """How often the stream of the watches was opened again."""
    return max(follower.watcher.statistics().reconnects for follower in followers)


@pytest.mark.parametrize("cuts", [10, pytest.param(50, marks=pytest.mark.nightly)])
async def test_a_mutation_is_never_applied_twice_through_cut_connections(
    shared_server: EtcdServer, prefix: str, cuts: int
) -> None:
    done: set[str] = set()
    doubtful: set[str] = set()
    is_over = False

    async def write(worker: int) -> None:
        number = 0
        while not is_over:
            key = f"{prefix}{worker}/{number}"
            number += 1
            try:
                await client.put(key, "v")
            except EtcdError as error:
                (doubtful if error.maybe_applied else refused).add(key)
            else:
                done.add(key)

    refused: set[str] = set()
    async with FaultProxy(shared_server.endpoint) as proxy, Client(proxy.endpoint, engine="gateway") as client:
        writing = [asyncio.create_task(write(worker)) for worker in range(8)]
        for number in range(cuts):
            await asyncio.sleep(0.05)
            (proxy.reset if number % 2 else proxy.cut)()
        is_over = True
        await asyncio.gather(*writing)
    async with Client(shared_server.endpoint) as reader:
        stored = {kv.key.decode(): kv.version async for kv in reader.scan(prefix=prefix)}
    assert set(stored.values()) == {1}, "no put was applied twice"
    assert done <= stored.keys() <= done | doubtful
    assert done
    assert doubtful, "some were cut between request and answer"
    assert not refused & stored.keys()


@pytest.mark.nightly
@pytest.mark.slow
async def test_rolling_restarts_lose_nothing() -> None:
    need_streams()
    async with EtcdCluster(size=3, **QUICK_ELECTIONS) as cluster, Client(cluster.endpoints, engine="gateway") as client:
        await cluster.wait_healthy()
        async with following(client, "k/") as followers:
            writes = Writes(client, "k/", rate=100, seed=3)
            async with writes.going_on():
                for number, member in enumerate(cluster.members):
                    await (member.terminate() if number % 2 else member.kill())
                    await asyncio.sleep(0.5)
                    await member.restart()
                    await cluster.wait_healthy()
            end = await writes.finish()
            history = await read_history(cluster.members[0].endpoint, "k/", end)
            await caught_up(followers, history)
        writes.check(history)
        for follower in followers:
            follower.check(history)
        assert writes.acknowledged


# --- nothing is left ---


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.nightly)])
async def test_aborted_watches_leave_no_connection_at_the_server(count: int) -> None:
    need_streams()
    async with EtcdServer() as server, Client(server.endpoint, engine="gateway") as client:
        await client.put("k", "v")
        before = await open_files(server)
        for _ in range(count):
            async with client.watch("k"):
                pass
        async with asyncio.timeout(PATIENCE):
            while await open_files(server) > before + 10:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert await client.get("k") is not None


async def open_files(server: EtcdServer) -> int:
    def read() -> str:
        with urllib.request.urlopen(f"{server.endpoint}/metrics", timeout=10) as reply:
            return str(reply.read().decode())

    found = re.search(r"^process_open_fds (\S+)$", await asyncio.to_thread(read), re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


@pytest.mark.parametrize("leads", [True, False])
async def test_a_watch_alone_leaves_a_member_that_is_cut_off(*, leads: bool) -> None:
    """No call shows that the member does not serve, and the server ends no stream that came by a WebSocket."""
    need_streams()
    async with EtcdCluster(size=3, peer_proxies=True, **QUICK_ELECTIONS) as cluster:
        leader = await cluster.leader()
        victim = leader if leads else next(one for one in cluster.members if one is not leader)
        others = [one.endpoint for one in cluster.members if one is not victim]
        async with Client([victim.endpoint], engine="gateway", keepalive_time=5.0) as client, Client(others) as writer:
            async with client.watch("k") as watcher, asyncio.timeout(PATIENCE):
                client.set_endpoints([victim.endpoint, *others])
                cluster.isolate(victim)
                while True:
                    with suppress(EtcdError):
                        put = await writer.put("k", "after")
                        break
                assert (await anext(watcher)).revision == put.revision
            cluster.reconnect(victim)
