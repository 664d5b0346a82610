"""Starts what a test wants: a server or a cluster, with certificates and users."""

import sys
from typing import Final, TypeVar

from anyio.from_thread import BlockingPortal

from etcd_aio.testing import EtcdCluster, EtcdServer, ServerOptions
from pytest_etcd_aio.access import Access
from pytest_etcd_aio.cleaning import enable_auth
from pytest_etcd_aio.cluster import Cluster
from pytest_etcd_aio.server import Server
from pytest_etcd_aio.wanted import Wanted

_HAS_PEER_PROXIES: Final = sys.platform == "linux"


def started_server(portal: BlockingPortal, wanted: Wanted, access: Access, options: ServerOptions) -> Server:
    """Start a server.

    Raises:
        EtcdStartError: it ended, or was not ready in time.
    """
    server = EtcdServer(**options)
    portal.call(server.start)
    return _with_auth(Server(portal, server, access, is_private=wanted.private))


def started_cluster(portal: BlockingPortal, wanted: Wanted, access: Access, options: ServerOptions) -> Cluster:
    """Start a cluster.

    Raises:
        EtcdStartError: a member ended, or was not ready in time.
    """
    cluster = EtcdCluster(wanted.size, peer_proxies=_HAS_PEER_PROXIES, **options)
    portal.call(cluster.start)
    reached = Access(cluster.endpoints, access.tls, access.auth)
    return _with_auth(Cluster(portal, cluster, reached, is_private=wanted.private))


_S = TypeVar("_S", Server, Cluster)


def _with_auth(started: _S) -> _S:
    if started.access.auth is not None:
        try:
            started.run(enable_auth, started.access)
        except BaseException:  # nothing may stay behind
            started.close()
            raise
    return started
