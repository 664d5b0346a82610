"""Calls while members die: the promises of all layers together, on a real three-member cluster."""

import asyncio
import ssl
import time

import pytest

from etcd_aio import Client, ConnectionLostError, EtcdError, NoAvailableEndpointsError
from etcd_aio.errors import LeaderChangedError, NoLeaderError, ServerError
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy, ServerTLS
from tests.support.load import load
from tests.support.scripted import Wire, scripted
from tests.support.until import until
from tests.support.versions import need

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine")]


async def all_ready(client: Client, count: int) -> None:
    """Wait until so many endpoints are connected; there is no event for it, since no user needs one."""
    while sum(one.state.name == "READY" for one in client.statistics()) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def ready(client: Client, endpoint: str) -> bool:
    return any(one.endpoint == endpoint and one.state.name == "READY" for one in client.statistics())


async def _cpu_share(seconds: float) -> float:
    """The share of one core that this process uses meanwhile."""
    before, began = time.process_time(), time.monotonic()
    await asyncio.sleep(seconds)
    return (time.process_time() - before) / (time.monotonic() - began)


async def test_calls_spread_evenly_over_the_members() -> None:
    # Elections as slow as by default, so that a busy machine causes none: no call may fail.
    async with EtcdCluster(size=3) as cluster, Client(cluster.endpoints) as client:
        await client.put("k", "v")
        await all_ready(client, 3)

        async def read(worker: int) -> int:
            return (await client.range("k")).header.member_id

        async def write(worker: int) -> int:
            return (await client.put(f"k{worker}", "v")).header.member_id

        # One kind after the other: both share one turn, so only all calls together are spread exactly.
        # Enough that those without an answer in the end, perhaps all of one member, do not count.
        async with load(read, workers=8) as reads:
            await until(lambda: reads.calls >= 900)
        async with load(write, workers=4) as writes:
            await until(lambda: writes.calls >= 450)
    for account in (reads, writes):
        assert not account.errors
        assert len(account.answers) == 3
        for answered in account.answers.values():
            assert answered == pytest.approx(account.calls / 3, rel=0.1)


@pytest.mark.both_engines
async def test_a_killed_follower_costs_no_read_and_only_writes_in_flight(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client:
        await client.put("k", "v")

        async def read(worker: int) -> int:
            return (await client.range("k")).header.member_id

        async def write(worker: int) -> int:
            return (await client.put(f"k{worker}", "v")).header.member_id

        async with load(read, workers=8) as reads, load(write, workers=4) as writes:
            for _ in range(3):
                await asyncio.sleep(0.7)
                follower = (await cluster.followers())[0]
                killed_at = asyncio.get_running_loop().time()
                await follower.kill()
                while ready(client, follower.endpoint):  # noqa: ASYNC110 - there is no event for it
                    await asyncio.sleep(0)
                noticed_at = asyncio.get_running_loop().time()
                await asyncio.sleep(0.7)
                for began, _, error in writes.errors:
                    assert error.maybe_applied, "a write that surely was not applied must have been repeated"
                    assert isinstance(error, ConnectionLostError | ServerError)
                    if isinstance(error, ConnectionLostError):
                        assert began <= noticed_at, "a write that began after the loss was noticed goes elsewhere"
                await follower.restart()
                await cluster.wait_healthy()
                writes.errors[:] = [one for one in writes.errors if one[0] > killed_at]
        assert not reads.errors, reads.errors[0][2]
        assert reads.calls > 100
        assert len(reads.answers) == 3, "the member that came back serves again"


EachTLS = tuple[ServerTLS | None, ssl.SSLContext | None]


@pytest.mark.http2_only
@pytest.mark.parametrize("size", [1, 3])
async def test_a_member_that_ends_gracefully_costs_no_call(each_tls: EachTLS, size: int) -> None:
    """Neither reads nor writes: what a member will not do it says by GOAWAY, and what it began it finishes.

    Followers only: writes that raft drops when the leadership moves fail with etcd's own answer, on any client.
    """
    server_tls, client_tls = each_tls
    need("3.5.30", why="under load older ones end connections without a GOAWAY")
    async with (
        EtcdCluster(size=size, tls=server_tls) as cluster,  # slow elections: a busy machine must cause none
        Client(cluster.endpoints, tls=client_tls, timeout=15) as client,
    ):
        await cluster.wait_healthy()
        await client.put("k", "v")

        async def read(worker: int) -> int:
            return (await client.range("k")).header.member_id

        async def write(worker: int) -> int:
            return (await client.put(f"k{worker}", "v")).header.member_id

        async with load(read, workers=8) as reads, load(write, workers=4) as writes:
            for _ in range(3):
                await asyncio.sleep(0.2)
                member = (await cluster.followers())[0] if size > 1 else cluster.members[0]
                await member.terminate()
                await member.restart()
                await cluster.wait_healthy()
        assert not reads.errors, reads.errors[0][2]
        assert not writes.errors, writes.errors[0][2]
        assert min(reads.calls, writes.calls) > 50
        await all_ready(client, size)


async def test_a_killed_leader_costs_no_read(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client:
        await client.put("k", "v")

        async def read(worker: int) -> int:
            return (await client.range("k")).header.member_id

        async def write(worker: int) -> int:
            return (await client.put(f"k{worker}", "v")).header.member_id

        async with load(read, workers=8) as reads, load(write, workers=4) as writes:
            await asyncio.sleep(0.5)
            await (await cluster.leader()).kill()
            await cluster.leader()
            await asyncio.sleep(1.5)
        assert not reads.errors, reads.errors[0][2]
        for _, _, error in writes.errors:
            assert error.maybe_applied
        # Calls after the election are answered.
        await client.put("after", "v")


async def test_a_frozen_follower_costs_no_read(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client:
        await client.put("k", "v")

        async def read(worker: int) -> int:
            return (await client.range("k")).header.member_id

        async with load(read, workers=8) as reads:
            await asyncio.sleep(0.5)
            follower = (await cluster.followers())[0]
            follower.pause()
            await asyncio.sleep(4)
            during = reads.calls
            follower.resume()
            await asyncio.sleep(2)
        assert not reads.errors, reads.errors[0][2]
        assert during > 100, "the healthy members went on serving"
        assert len(reads.answers) == 3


@pytest.mark.both_engines
@pytest.mark.parametrize("how", ["fin", "rst", "refuse"])
async def test_a_write_is_never_sent_twice(shared_server: EtcdServer, prefix: str, how: str) -> None:
    """Connections die all the time while puts run; the key's version is the number of times it was applied."""
    async with FaultProxy(shared_server.endpoint) as one, FaultProxy(shared_server.endpoint) as other:
        done = asyncio.Event()

        async def break_connections() -> None:
            turn = 0
            while not done.is_set():
                await asyncio.sleep(0.01 + 0.003 * (turn % 5))
                proxy = (one, other)[turn % 2]
                turn += 1
                if how == "fin":
                    proxy.cut()
                elif how == "rst":
                    proxy.reset()
                else:
                    proxy.refuse()
                    proxy.reset()
                    await asyncio.sleep(0.02)
                    proxy.accept()

        breaker = asyncio.create_task(break_connections())
        acknowledged = 0
        uncertain = 0
        definite: list[EtcdError] = []
        async with Client([one.endpoint, other.endpoint], timeout=10) as client:
            semaphore = asyncio.Semaphore(8)

            async def put(number: int) -> None:
                nonlocal acknowledged, uncertain
                async with semaphore:
                    try:
                        await client.put(f"{prefix}{number % 4}", str(number))
                        acknowledged += 1
                    except EtcdError as error:
                        definite.extend([] if error.maybe_applied else [error])
                        uncertain += 1

            puts = 0
            while puts == 0 or (not uncertain and puts < 10_000):  # until the faults meet one
                await asyncio.gather(*(put(puts + number) for number in range(160)))
                puts += 160
        done.set()
        await breaker
    assert not definite, "surely not applied, so it must have been repeated"
    async with Client(shared_server.endpoint) as client:
        found = await client.range(prefix=prefix)
    versions = sum(kv.version for kv in found)
    assert acknowledged + uncertain == puts
    assert acknowledged <= versions <= puts
    assert uncertain > 0, "the faults missed every put: the test proves nothing"


async def test_the_same_breakage_is_invisible_to_reads(shared_server: EtcdServer, prefix: str) -> None:
    async with (
        FaultProxy(shared_server.endpoint) as one,
        FaultProxy(shared_server.endpoint) as other,
        Client([one.endpoint, other.endpoint]) as client,
    ):
        await client.put(prefix, "v", retry="always")

        async def read(worker: int) -> int:
            return (await client.range(prefix)).header.member_id

        async with load(read, workers=8) as reads:
            for turn in range(60):
                await asyncio.sleep(0.03)
                (one, other)[turn % 2].reset()
        assert not reads.errors, reads.errors[0][2]


class TestNothingAnswers:
    """The first call fails within its timeout, and its error names every endpoint with its real cause."""

    @pytest.mark.both_engines
    async def test_refused(self) -> None:
        async with FaultProxy("http://127.0.0.1:1") as proxy:
            proxy.refuse()
            async with Client(proxy.endpoint, timeout=1.5) as client:
                with pytest.raises(NoAvailableEndpointsError) as caught:
                    await client.put("k", "v")
        (error,) = caught.value.errors.values()
        assert isinstance(error, ConnectionRefusedError)
        assert not caught.value.maybe_applied
        assert proxy.endpoint in str(caught.value)

    @pytest.mark.both_engines
    async def test_black_hole(self) -> None:
        async with FaultProxy("http://127.0.0.1:1") as proxy:
            proxy.black_hole()
            async with Client(proxy.endpoint, timeout=1, connect_timeout=0.3) as client:
                with pytest.raises(NoAvailableEndpointsError, match="no answer within"):
                    await client.get("k")

    @pytest.mark.http2_only
    async def test_wrong_protocol(self) -> None:
        async def speak_http1(wire: Wire) -> None:
            wire.raw(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        async with scripted(speak_http1, speaks=False) as port, Client(f"127.0.0.1:{port}", timeout=1.5) as client:
            with pytest.raises(NoAvailableEndpointsError, match="HTTP/1"):
                await client.get("k")

    @pytest.mark.both_engines
    async def test_tls_to_a_plaintext_member(self, shared_server: EtcdServer) -> None:
        endpoint = shared_server.endpoint.replace("http://", "https://")
        async with Client(endpoint, timeout=3) as client:
            with pytest.raises(NoAvailableEndpointsError, match=r"SSLError|TLS"):
                await client.get("k")

    async def test_one_of_them_is_enough(self, shared_server: EtcdServer) -> None:
        async with FaultProxy("http://127.0.0.1:1") as dead, FaultProxy("http://127.0.0.1:1") as silent:
            dead.refuse()
            silent.black_hole()
            async with Client([dead.endpoint, silent.endpoint, shared_server.endpoint], timeout=30) as client:
                for _ in range(9):
                    await client.get("k")

    async def test_idle_retrying_costs_next_to_nothing(self) -> None:
        async with FaultProxy("http://127.0.0.1:1") as one, FaultProxy("http://127.0.0.1:1") as other:
            one.refuse()
            other.refuse()
            async with Client([one.endpoint, other.endpoint], timeout=0.2) as client:
                with pytest.raises(NoAvailableEndpointsError):
                    await client.get("k")
                await asyncio.sleep(2)  # past the quick first dials
                spent = [await _cpu_share(3) for _ in range(3)]
        assert min(spent) < 0.01  # what else this process does, as collecting garbage, may fall into one window


async def test_a_member_without_a_leader_refuses_at_once_and_even_writes_move_on(cluster: EtcdCluster) -> None:
    """Two of three are gone: a definite refusal, for every kind of call, and never an uncertain one."""
    leader = await cluster.leader()
    others = [member for member in cluster.members if member is not leader]
    for member in others:
        await member.kill()
    await asyncio.sleep(3)  # the survivor notices that it has no quorum
    async with Client(cluster.endpoints, timeout=1.5) as client:
        with pytest.raises(EtcdError) as caught:
            await client.put("k", "v")
        assert not caught.value.maybe_applied
        assert isinstance(caught.value, NoLeaderError | LeaderChangedError)
        assert await client.get("k", serializable=True) is None
        await asyncio.gather(*(member.restart() for member in others))
        await cluster.wait_healthy()
        await client.put("k", "v", timeout=10)


async def test_an_endpoint_of_another_cluster_is_refused(shared_server: EtcdServer, prefix: str) -> None:
    async with EtcdServer() as stranger, Client(shared_server.endpoint) as client:
        await client.put(prefix, "mine")
        client.set_endpoints([shared_server.endpoint, stranger.endpoint])
        await all_ready(client, 2)
        for _ in range(20):
            kv = await client.get(prefix)
            assert kv is not None
            assert kv.text() == "mine"
        (refused,) = (one for one in client.statistics() if one.endpoint == stranger.endpoint)
        assert "cluster" in str(refused.last_error)


async def test_set_endpoints_keeps_what_stays_and_drains_what_goes(cluster: EtcdCluster) -> None:
    first, second, third = cluster.endpoints
    async with Client([first, second]) as client:
        for _ in range(10):
            await client.put("k", "v")
        connects = {one.endpoint: one.connects for one in client.statistics()}
        running = [asyncio.create_task(client.put(f"k{number}", "v")) for number in range(20)]
        await asyncio.sleep(0)
        client.set_endpoints([second, third])
        await asyncio.gather(*running)  # calls on the removed one were finished
        answered = {(await client.put("k", "v")).header.member_id for _ in range(30)}
        after = {one.endpoint: one.connects for one in client.statistics()}
        assert set(after) == {second, third} == set(client.endpoints)
        assert after[second] == connects[second] == 1
        assert len(answered) == 2
