"""A supervised stream while members die, freeze, end and are cut off: the stream moves, and loses nothing."""

import asyncio
import itertools
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from math import inf
from typing import TypeAlias

import pytest
from grpclib.server import Server as GrpcServer

from etcd_aio import Client, EtcdError, pb
from etcd_aio.errors import ClientClosedError
from etcd_aio.methods import WATCH
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy, ServerTLS
from etcd_aio.testing.ports import free_ports
from etcd_aio.types import WatchReply
from tests.support.no_collections import no_collections
from tests.support.servers import QUICK_ELECTIONS
from tests.support.until import PATIENCE
from tests.support.virtual_time import turns

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.usefixtures("each_engine")]


SILENCE = 1.0  # seconds after which the follower below gives an answer up


class Follower:
    """A tiny conversation: follows one key, from the revision behind the last one it saw."""

    def __init__(self, key: bytes) -> None:
        self.is_needed = True
        self.due = inf
        self.revisions: list[int] = []
        self.opened: list[str] = []
        self.losses: list[EtcdError] = []
        self.ends: list[EtcdError] = []
        self.created = asyncio.Event()
        self._key = key
        self._next = 0
        self._waiting: list[pb.WatchRequest] = []

    def requests(self, now: float) -> Iterable[pb.WatchRequest]:
        said, self._waiting = self._waiting, []
        return said

    def on_open(self, endpoint: str, now: float) -> None:
        self.opened.append(endpoint)
        create = pb.WatchCreateRequest(key=self._key, start_revision=self._next)
        self._waiting = [pb.WatchRequest(create_request=create)]
        self.due = now + SILENCE

    def on_reply(self, reply: WatchReply, now: float) -> None:
        if reply.created:
            assert reply.header is not None
            self._next = self._next or reply.header.revision + 1
            self.due = inf
            self.created.set()
        for event in reply.events:
            assert event.kv is not None
            self.revisions.append(event.kv.mod_revision)
            self._next = event.kv.mod_revision + 1

    def on_time(self, now: float) -> str | None:
        self.due = inf
        return f"no answer within {SILENCE:g} s"

    def on_lost(self, error: EtcdError, now: float) -> bool:
        self.losses.append(error)
        self.created.clear()
        self.due = inf
        return False

    def on_refused(self, error: EtcdError, now: float) -> bool:
        return False

    def on_end(self, error: EtcdError) -> None:
        self.ends.append(error)
        self.is_needed = False


class Followed:
    """A client with a supervised watch, and what was written meanwhile."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.follower = Follower(b"k")
        self.supervisor = client._invoker.supervise(WATCH, self.follower, "follower")
        self.written: list[int] = []

    async def write(self) -> None:
        """Write until one write is certain."""
        while True:
            with suppress(EtcdError):
                self.written.append((await self.client.put("k", "v")).header.revision)
                return

    async def _keep_writing(self) -> None:
        while True:
            await self.write()
            await asyncio.sleep(0.005)

    @asynccontextmanager
    async def writing(self, tasks: int) -> AsyncIterator[None]:
        """Write all the time. However the body ends: without the client a task would write, and fail, for ever."""
        writers = [asyncio.create_task(self._keep_writing()) for _ in range(tasks)]
        try:
            yield
        finally:
            for writer in writers:
                writer.cancel()
            await asyncio.wait(writers)

    async def moved_from(self, endpoint: str) -> str:
        """Wait until the stream works elsewhere, and return where."""
        async with asyncio.timeout(PATIENCE):
            while self.supervisor.endpoint in ("", endpoint) or not self.follower.created.is_set():  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.005)
        return self.supervisor.endpoint

    async def caught_up(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not self.written or self.written[-1] not in self.follower.revisions[-100:]:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.005)

    async def opened(self, count: int) -> None:
        """Wait until a stream with this number was opened, and works."""
        async with asyncio.timeout(PATIENCE):
            while len(self.follower.opened) < count:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.005)
            await self.follower.created.wait()

    def check(self) -> None:
        """Check that the watch has every revision of its key, which no other client writes."""
        seen = self.follower.revisions
        assert all(later == earlier + 1 for earlier, later in itertools.pairwise(seen))
        assert set(self.written) <= set(seen)


@asynccontextmanager
async def following(endpoints: Iterable[str], tls: ssl.SSLContext | None = None) -> AsyncIterator[Followed]:
    async with Client(endpoints, tls=tls) as client:
        await client.wait_ready(PATIENCE)
        followed = Followed(client)
        followed.supervisor.wake()
        async with asyncio.timeout(PATIENCE):
            await followed.follower.created.wait()
        yield followed
    await turns()
    names = [task.get_name() for task in asyncio.all_tasks()]
    assert not [name for name in names if name.startswith("etcd_aio")], names


async def carrier(cluster: EtcdCluster, followed: Followed) -> EtcdServer:
    """The member that carries the stream."""
    endpoint = await followed.moved_from("")
    return next(member for member in cluster.members if member.endpoint == endpoint)


async def kill(cluster: EtcdCluster, member: EtcdServer) -> None:
    await member.kill()


async def terminate(cluster: EtcdCluster, member: EtcdServer) -> None:
    await member.terminate()


EachTLS = tuple[ServerTLS | None, ssl.SSLContext | None]
Harm: TypeAlias = Callable[[EtcdCluster, EtcdServer], Awaitable[None]]


@pytest.mark.both_engines
@pytest.mark.parametrize("harm", [kill, terminate], ids=lambda one: one.__name__)
async def test_the_stream_survives_a_member_that_ends(harm: Harm, each_tls: EachTLS) -> None:
    server_tls, client_tls = each_tls
    async with EtcdCluster(size=3, tls=server_tls, **QUICK_ELECTIONS) as cluster:
        await cluster.wait_healthy()
        async with following(cluster.endpoints, client_tls) as followed:
            async with followed.writing(1):
                for _ in range(3):
                    await asyncio.sleep(0.3)
                    member = await carrier(cluster, followed)
                    await harm(cluster, member)
                    await followed.moved_from(member.endpoint)
                    await followed.caught_up()
                    await member.restart()
                    await cluster.wait_healthy()
            await followed.caught_up()
            followed.check()
            assert not followed.follower.ends


async def test_the_stream_leaves_a_frozen_member_that_calls_find_silent(cluster: EtcdCluster) -> None:
    async with following(cluster.endpoints) as followed:
        async with followed.writing(4):
            await asyncio.sleep(0.3)
            member = await carrier(cluster, followed)
            member.pause()
            await followed.moved_from(member.endpoint)
        await followed.caught_up()
        followed.check()
        member.resume()


@pytest.mark.http2_only
async def test_a_member_that_does_not_answer_a_new_stream_is_left_for_another(cluster: EtcdCluster) -> None:
    """No call is under way, so only the conversation can tell."""
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(FaultProxy(member.endpoint)) for member in cluster.members]
        followed = await stack.enter_async_context(following([proxy.endpoint for proxy in proxies]))
        for _ in range(3):
            await followed.write()
        await followed.caught_up()
        by_endpoint = {proxy.endpoint: proxy for proxy in proxies}
        current = by_endpoint[followed.supervisor.endpoint]
        for proxy in proxies:
            if proxy is not current:
                proxy.black_hole()
        current.reset()
        async with asyncio.timeout(PATIENCE):
            while followed.supervisor.endpoint == current.endpoint:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0)
            while followed.supervisor.endpoint != current.endpoint:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.005)
            await followed.follower.created.wait()
        assert any("no answer within" in str(error) for error in followed.follower.losses)
        for proxy in proxies:
            proxy.heal()
        await followed.write()
        await followed.caught_up()
        followed.check()


async def test_the_stream_leaves_a_member_that_is_cut_off_from_its_peers() -> None:
    async with EtcdCluster(size=3, peer_proxies=True, **QUICK_ELECTIONS) as cluster:
        await cluster.wait_healthy()
        async with following(cluster.endpoints) as followed:
            async with followed.writing(4):
                await asyncio.sleep(0.3)
                member = await carrier(cluster, followed)
                cluster.isolate(member)
                await followed.moved_from(member.endpoint)
            await followed.caught_up()
            followed.check()
            cluster.reconnect(member)


async def test_an_endpoint_that_is_no_etcd_ends_neither_leases_nor_watches() -> None:
    """As a gateway that has no route for etcd's services: it answers UNIMPLEMENTED."""
    (port,) = free_ports(1)
    gateway = GrpcServer([])
    await gateway.start("127.0.0.1", port)
    try:
        async with (
            EtcdServer() as server,
            FaultProxy(server.endpoint) as proxy,
            Client(server.endpoint) as direct,
            Client(proxy.endpoint) as client,
            client.watch("k") as watcher,
            client.lease(60, on_lost="signal") as lease,
        ):
            client.set_endpoints([proxy.endpoint, f"http://127.0.0.1:{port}"])
            for number in range(5):
                proxy.reset()
                async with asyncio.timeout(PATIENCE):
                    await lease.keep_alive_once()
                    await direct.put("k", str(number))
                    assert (await anext(watcher)).value == str(number).encode()
            assert not lease.is_lost
            assert watcher.statistics().reconnects >= 5
            assert all(one.endpoint == proxy.endpoint for one in client.streams())
            client.set_endpoints([proxy.endpoint])
    finally:
        gateway.close()
        await gateway.wait_closed()


async def test_a_full_outage_ends_with_the_return_of_the_members(cluster: EtcdCluster) -> None:
    async with following(cluster.endpoints) as followed:
        await followed.write()
        for member in cluster.members:
            await member.kill()

        def is_refused(cause: object) -> bool:
            return "refused" in str(cause).lower() or "111" in str(cause)

        async with asyncio.timeout(PATIENCE):
            while followed.supervisor.is_open or not all(  # noqa: ASYNC110 - there is no event for it
                map(is_refused, followed.supervisor.outage_error().errors.values())
            ):
                await asyncio.sleep(0.01)
        assert set(followed.supervisor.outage_error().errors) == set(cluster.endpoints)
        with no_collections():
            used = time.process_time()
            await asyncio.sleep(2)
            assert time.process_time() - used < 0.5
        await cluster.restart()
        await cluster.wait_healthy()
        await followed.write()
        await followed.caught_up()
        followed.check()
        assert not followed.follower.ends


@pytest.mark.both_engines
async def test_a_client_closes_while_its_member_is_frozen(cluster: EtcdCluster) -> None:
    async with following(cluster.endpoints) as followed:
        member = await carrier(cluster, followed)
        member.pause()
        async with asyncio.timeout(PATIENCE):
            await followed.client.aclose()
        assert [type(error) for error in followed.follower.ends] == [ClientClosedError]
        member.resume()


async def test_a_stream_that_is_not_needed_ends_on_the_server_too(cluster: EtcdCluster) -> None:
    async with following(cluster.endpoints) as followed:
        followed.follower.is_needed = False
        followed.supervisor.wake()
        await turns(10)
        assert not followed.supervisor.is_open
        assert sum(one.streams for one in followed.client.statistics()) == 0
        followed.follower.is_needed = True
        followed.supervisor.wake()
        await followed.opened(2)
        await followed.write()
        await followed.caught_up()
