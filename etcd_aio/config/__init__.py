"""The configuration of a client: options, connection URLs, environment variables, TLS."""

from etcd_aio.config.certificates import CertificateFiles as CertificateFiles
from etcd_aio.config.client_config import ClientConfig as ClientConfig
from etcd_aio.config.client_config import endpoints_from as endpoints_from
from etcd_aio.config.durations import parse_duration as parse_duration
from etcd_aio.config.environ import PREFIX as PREFIX
from etcd_aio.config.environ import read_environment as read_environment
from etcd_aio.config.text import OPTIONS as OPTIONS
from etcd_aio.config.text import ClientOptions as ClientOptions
from etcd_aio.config.text import Settings as Settings
from etcd_aio.config.text import TLSFiles as TLSFiles
from etcd_aio.config.text import client_options as client_options
from etcd_aio.config.text import read_option as read_option
from etcd_aio.config.tls import TLS as TLS
from etcd_aio.config.tls import is_pem as is_pem
from etcd_aio.config.url import parse_url as parse_url
