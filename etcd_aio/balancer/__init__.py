"""Balancer: endpoints, their sub-connections, and the pickers that spread attempts over them.

Knows: which endpoints there are, whether they are connected and healthy, and which one takes the next attempt. Never
knows: the calls of users, retries.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.balancer.balancer import Balancer as Balancer
    from etcd_aio.balancer.balancer import SingleEndpointView as SingleEndpointView
    from etcd_aio.balancer.cluster_id import ClusterIdentity as ClusterIdentity
    from etcd_aio.balancer.connection_record import SubConnectionStream as SubConnectionStream
    from etcd_aio.balancer.endpoint import DnsName as DnsName
    from etcd_aio.balancer.endpoint import Endpoint as Endpoint
    from etcd_aio.balancer.endpoint import ProxyFor as ProxyFor
    from etcd_aio.balancer.endpoint import Security as Security
    from etcd_aio.balancer.endpoint import Source as Source
    from etcd_aio.balancer.endpoint import parse_endpoint as parse_endpoint
    from etcd_aio.balancer.endpoint import parse_endpoints as parse_endpoints
    from etcd_aio.balancer.endpoint import parse_sources as parse_sources
    from etcd_aio.balancer.health_verdicts import refused_health as refused_health
    from etcd_aio.balancer.picker import POLICIES as POLICIES
    from etcd_aio.balancer.picker import Candidate as Candidate
    from etcd_aio.balancer.picker import Choice as Choice
    from etcd_aio.balancer.picker import PolicyName as PolicyName
    from etcd_aio.balancer.store_doubts import StoreDoubts as StoreDoubts
    from etcd_aio.balancer.sub_connection import SubConnection as SubConnection
    from etcd_aio.transport import Collector as Collector
    from etcd_aio.transport import Connection as Connection
    from etcd_aio.transport import Metadata as Metadata
    from etcd_aio.transport import Stream as Stream
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
