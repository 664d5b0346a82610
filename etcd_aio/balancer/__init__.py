"""Balancer: endpoints, their sub-connections, and the pickers that spread attempts over them.

Knows: which endpoints there are, whether they are connected and healthy, and which one takes the next attempt. Never
knows: the calls of users, retries.
"""

from etcd_aio.balancer.balancer import Balancer, SingleEndpointView
from etcd_aio.balancer.cluster_id import ClusterIdentity
from etcd_aio.balancer.connectivity import ConnectivityState
from etcd_aio.balancer.endpoint import Endpoint, Security, parse_endpoint, parse_endpoints
from etcd_aio.balancer.health import Health
from etcd_aio.balancer.picker import POLICIES, Candidate, Choice, PolicyName
from etcd_aio.balancer.statistics import EndpointStatistics
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.transport import Connection, Metadata, Stream

__all__ = [
    "POLICIES",
    "Balancer",
    "Candidate",
    "Choice",
    "ClusterIdentity",
    "Connection",
    "ConnectivityState",
    "Endpoint",
    "EndpointStatistics",
    "Health",
    "Metadata",
    "PolicyName",
    "Security",
    "SingleEndpointView",
    "Stream",
    "SubConnection",
    "parse_endpoint",
    "parse_endpoints",
]
