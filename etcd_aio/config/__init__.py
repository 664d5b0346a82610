"""The configuration of a client: options, connection URLs, environment variables, TLS."""

from etcd_aio.config.certificates import CertificateFiles
from etcd_aio.config.client_config import ClientConfig, endpoints_from
from etcd_aio.config.durations import parse_duration
from etcd_aio.config.environ import PREFIX, read_environment
from etcd_aio.config.text import OPTIONS, ClientOptions, Settings, TLSFiles, client_options, read_option
from etcd_aio.config.tls import TLS, is_pem
from etcd_aio.config.url import parse_url

__all__ = [
    "OPTIONS",
    "PREFIX",
    "TLS",
    "CertificateFiles",
    "ClientConfig",
    "ClientOptions",
    "Settings",
    "TLSFiles",
    "client_options",
    "endpoints_from",
    "is_pem",
    "parse_duration",
    "parse_url",
    "read_environment",
    "read_option",
]
