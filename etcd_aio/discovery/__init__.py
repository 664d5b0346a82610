"""Discovery: finds the members by DNS or by the member list, and keeps the endpoints of a client current."""

from etcd_aio.discovery.discovery import Discovery
from etcd_aio.discovery.member_urls import Advertised, advertised_endpoints
from etcd_aio.discovery.resolver import Resolution, Resolver, StaticResolver
from etcd_aio.discovery.srv import SrvResolver, require_dnspython

__all__ = [
    "Advertised",
    "Discovery",
    "Resolution",
    "Resolver",
    "SrvResolver",
    "StaticResolver",
    "advertised_endpoints",
    "require_dnspython",
]
