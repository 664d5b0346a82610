"""The configuration of a client: options, connection URLs, environment variables, TLS."""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.config.certificates import CertificateFiles as CertificateFiles
    from etcd_aio.config.endpoints import sources_from as sources_from
    from etcd_aio.config.endpoints import srv_resolver_from as srv_resolver_from
    from etcd_aio.config.endpoints import with_resolvers as with_resolvers
    from etcd_aio.config.environ import read_environment as read_environment
    from etcd_aio.config.guard import guard_options as guard_options
    from etcd_aio.config.options import TEXT_OPTIONS as TEXT_OPTIONS
    from etcd_aio.config.options import ClientOptions as ClientOptions
    from etcd_aio.config.options import check_options as check_options
    from etcd_aio.config.options import read_option as read_option
    from etcd_aio.config.proxies import proxies_from as proxies_from
    from etcd_aio.config.security import EndpointSecurity as EndpointSecurity
    from etcd_aio.config.settings import Settings as Settings
    from etcd_aio.config.settings import TLSFiles as TLSFiles
    from etcd_aio.config.settings import client_options as client_options
    from etcd_aio.config.text import PREFIX as PREFIX
    from etcd_aio.config.text import PROXY as PROXY
    from etcd_aio.config.text import RECONNECT_VARIABLE as RECONNECT_VARIABLE
    from etcd_aio.config.text import read_flag as read_flag
    from etcd_aio.config.tls import TLS as TLS
    from etcd_aio.config.tls import is_pem as is_pem
    from etcd_aio.config.url import parse_url as parse_url
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
