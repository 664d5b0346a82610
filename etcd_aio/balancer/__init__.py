"""Balancer (floor 4): endpoints, their sub-connections, and the pickers that spread attempts over them.

What belongs here: which endpoints there are, whether they are connected, and whose turn it is. What never does: RPCs,
their messages, and the decision to try again.
"""

from etcd_aio.balancer.advertised import Advertised, advertised_endpoints
from etcd_aio.balancer.balancer import Balancer
from etcd_aio.balancer.connectivity import ConnectivityState
from etcd_aio.balancer.endpoint import Endpoint, Security, parse_endpoint, parse_endpoints
from etcd_aio.balancer.health import Health
from etcd_aio.balancer.health_watch import Probe
from etcd_aio.balancer.leader_watch import FindLeader
from etcd_aio.balancer.only import OnlyEndpoint
from etcd_aio.balancer.picker import Candidate, Choice
from etcd_aio.balancer.policy import POLICIES, PolicyName
from etcd_aio.balancer.resolver import Resolution, Resolver, StaticResolver
from etcd_aio.balancer.srv import SrvResolver, require_dnspython
from etcd_aio.balancer.statistics import EndpointStatistics
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.transport import Connection, Metadata, Stream

__all__ = [
    "POLICIES",
    "Advertised",
    "Balancer",
    "Candidate",
    "Choice",
    "Connection",
    "ConnectivityState",
    "Endpoint",
    "EndpointStatistics",
    "FindLeader",
    "Health",
    "Metadata",
    "OnlyEndpoint",
    "PolicyName",
    "Probe",
    "Resolution",
    "Resolver",
    "Security",
    "SrvResolver",
    "StaticResolver",
    "Stream",
    "SubConnection",
    "advertised_endpoints",
    "parse_endpoint",
    "parse_endpoints",
    "require_dnspython",
]
