"""A member that applies everything late, while it follows the leader: what the leader sends it is delayed."""

import asyncio

from etcd_aio.testing import EtcdCluster, EtcdServer
from etcd_aio.testing.partition import _is_owned_by
from etcd_aio.testing.proxy_connection import Faults


async def delay_from_leader(cluster: EtcdCluster, follower: EtcdServer, seconds: float) -> int:
    """Delay what the leader of a cluster with `peer_proxies` sends to a follower.

    A member receives on connections that it has made itself, so these are found by their owner.

    Returns:
        How many connections are delayed.
    """
    leader = await cluster.leader()
    assert leader is not follower
    proxy = cluster._peer_network()._proxies[leader.name]
    found = 0
    for connection in tuple(proxy._connections.values()):
        client, server = connection._client.getpeername()[1], connection._client.getsockname()[1]
        if await asyncio.to_thread(_is_owned_by, [follower.pid], client, server):
            connection._directions["to_client"].faults = Faults(delay=seconds)
            found += 1
    return found
