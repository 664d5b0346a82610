"""Which endpoints of a client are dialled through which proxy: its option `proxy`."""

from collections.abc import Mapping
from dataclasses import replace

from etcd_aio.balancer import ProxyFor
from etcd_aio.config.certificates import CertificateFiles
from etcd_aio.config.options import ENVIRONMENT
from etcd_aio.config.proxy_url import parse_proxy
from etcd_aio.config.tls import TLS
from etcd_aio.transport import Proxy


def proxies_from(option: str, environ: Mapping[str, str], client: str = "") -> ProxyFor:
    """A function that chooses the proxy of an endpoint.

    Args:
        option: the URL of a proxy, or `environment`.
        environ: the variables, for the latter.
        client: name of the client; empty if it has none.

    Raises:
        ConfigError: a URL is malformed; the message does not repeat it.
    """
    files = CertificateFiles(TLS(), client, ("http/1.1",))  # the system's authorities, read when they are needed

    def with_tls(proxy: Proxy) -> Proxy:
        return replace(proxy, tls=files) if proxy.scheme == "https" else proxy

    if option == ENVIRONMENT:
        from etcd_aio.config.proxy_environment import proxies_of_environment

        choose = proxies_of_environment(environ)

        def chosen(host: str, port: int, has_tls: bool) -> Proxy | None:
            proxy = choose(host, port, has_tls)
            return None if proxy is None else with_tls(proxy)

        return chosen
    only = with_tls(parse_proxy(option))
    return lambda host, port, has_tls: only
