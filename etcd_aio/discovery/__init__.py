"""Discovery: finds the members by DNS or by the member list, and keeps the endpoints of a client current."""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.discovery.discovery import Discovery as Discovery
    from etcd_aio.discovery.member_urls import Advertised as Advertised
    from etcd_aio.discovery.member_urls import advertised_endpoints as advertised_endpoints
    from etcd_aio.discovery.name_resolver import NameResolver as NameResolver
    from etcd_aio.discovery.resolver import Resolution as Resolution
    from etcd_aio.discovery.resolver import Resolver as Resolver
    from etcd_aio.discovery.srv import SrvResolver as SrvResolver
    from etcd_aio.discovery.srv import require_dnspython as require_dnspython
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
