"""The testing kit: real etcd servers and network faults, for tests of services that use etcd.

It finds and builds etcd binaries, runs one server or a cluster, and has a proxy that breaks connections on demand. It
does not use the client, so it also serves the tests of the client itself, and of any other client.

    from etcd_aio.testing import EtcdCluster, FaultProxy

    async with EtcdCluster(size=3) as cluster:
        leader = await cluster.leader()
        async with FaultProxy(leader.endpoint) as proxy:
            ...                                  # a client connects to proxy.endpoint
            proxy.cut_after(100, "to_client")    # its next connection breaks inside an answer
        await leader.kill()
        await cluster.leader()                   # another member by now
        await leader.restart()

Needs a POSIX system; what only Linux can do says so. Servers are built by a command, `python -m
etcd_aio.testing.build`, or from a program by `etcd_aio.testing.build.build_servers`; on Debian older ones are also
unpacked from its packages, by `python -m etcd_aio.testing.debian` or `etcd_aio.testing.debian.unpack_server`.
"""

from etcd_aio.testing.binaries import EtcdBinary, available_etcds, find_etcd
from etcd_aio.testing.cluster import EtcdCluster
from etcd_aio.testing.errors import EtcdBuildError, EtcdNotFoundError, EtcdStartError
from etcd_aio.testing.health_probe import ProbeError, RaftStatus
from etcd_aio.testing.options import ServerOptions, ServerSettings, ServerTLS
from etcd_aio.testing.proxy import Directions, FaultProxy, FaultProxyStatistics
from etcd_aio.testing.proxy_connection import CutKind, Direction
from etcd_aio.testing.server import EtcdServer

__all__ = [
    "CutKind",
    "Direction",
    "Directions",
    "EtcdBinary",
    "EtcdBuildError",
    "EtcdCluster",
    "EtcdNotFoundError",
    "EtcdServer",
    "EtcdStartError",
    "FaultProxy",
    "FaultProxyStatistics",
    "ProbeError",
    "RaftStatus",
    "ServerOptions",
    "ServerSettings",
    "ServerTLS",
    "available_etcds",
    "find_etcd",
]
