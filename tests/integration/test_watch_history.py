"""Twenty watches of every kind while members die in turn: each tells exactly the history, whole revisions, once."""

import asyncio
import ssl

import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdCluster, ServerTLS
from tests.support.servers import QUICK_ELECTIONS, progress_interval
from tests.support.watch_history import Writes, caught_up, following, read_history

pytestmark = [pytest.mark.anyio, pytest.mark.cluster, pytest.mark.slow, pytest.mark.usefixtures("each_engine")]

TLSPair = tuple[ServerTLS | None, ssl.SSLContext | None]


async def test_every_watch_tells_exactly_the_history(each_tls: TLSPair, run_seed: int) -> None:
    server_tls, client_tls = each_tls
    async with (
        EtcdCluster(size=3, tls=server_tls, flags=[progress_interval(200)], **QUICK_ELECTIONS) as cluster,
        Client(cluster.endpoints, tls=client_tls) as writer,
        Client(cluster.endpoints, tls=client_tls) as client,
    ):
        writes = Writes(writer, "k/", rate=200, seed=run_seed)
        async with writes.going_on():
            await asyncio.sleep(0.5)
        async with following(client, "k/") as followers:
            async with writes.going_on():
                for number, member in enumerate(cluster.members):
                    await (member.terminate() if number % 2 else member.kill())
                    await asyncio.sleep(0.7)
                    await member.restart()
                    await cluster.wait_healthy()
            end = await writes.finish()
            history = await read_history(cluster.members[0].endpoint, "k/", end, tls=client_tls)
            await caught_up(followers, history)
        writes.check(history)
        for follower in followers:
            follower.check(history)
        assert max(follower.watcher.statistics().reconnects for follower in followers) > 0
        assert writes.acknowledged
