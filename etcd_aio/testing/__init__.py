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

Needs a POSIX system; functions that need Linux are marked. Servers are built by the command `python -m
etcd_aio.testing.build`, or by the function `etcd_aio.testing.build.build_servers`. On Debian, older ones are also
unpacked from packages, by `python -m etcd_aio.testing.debian` or `etcd_aio.testing.debian.unpack_server`.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.testing.binaries import EtcdBinary as EtcdBinary
    from etcd_aio.testing.binaries import available_etcds as available_etcds
    from etcd_aio.testing.binaries import find_etcd as find_etcd
    from etcd_aio.testing.cluster import EtcdCluster as EtcdCluster
    from etcd_aio.testing.errors import EtcdBuildError as EtcdBuildError
    from etcd_aio.testing.errors import EtcdNotFoundError as EtcdNotFoundError
    from etcd_aio.testing.errors import EtcdStartError as EtcdStartError
    from etcd_aio.testing.health_probe import ProbeError as ProbeError
    from etcd_aio.testing.health_probe import RaftStatus as RaftStatus
    from etcd_aio.testing.options import ServerOptions as ServerOptions
    from etcd_aio.testing.options import ServerSettings as ServerSettings
    from etcd_aio.testing.options import ServerTLS as ServerTLS
    from etcd_aio.testing.proxy import Directions as Directions
    from etcd_aio.testing.proxy import FaultProxy as FaultProxy
    from etcd_aio.testing.proxy import FaultProxyStatistics as FaultProxyStatistics
    from etcd_aio.testing.proxy_connection import CutKind as CutKind
    from etcd_aio.testing.proxy_connection import Direction as Direction
    from etcd_aio.testing.server import EtcdServer as EtcdServer
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
