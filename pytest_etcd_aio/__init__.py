"""The pytest plugin of etcd_aio: etcd servers, fakes and clients as fixtures.

It comes with etcd_aio and needs no registration. Its fixtures (`pytest --fixtures` describes them):

    etcd_client      a client of a real server, in a namespace that is emptied after the test
    etcd_server      that server: kill it, freeze it, restart it
    etcd_cluster     three members
    etcd_endpoints   where they are, for other clients
    etcd_namespace   the prefix of the test's keys
    etcd_proxy       a proxy before the server, which breaks connections
    fake_etcd        an etcd in memory; `fake_client` is a client of it
    etcd_any         a client of the fake, and then one of a real server: the test runs twice

The marker `etcd` says which server a test needs, and `factories` makes fixtures of further servers and clients. Nothing
of `etcd_aio` is imported in a run in which no test uses these fixtures.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_etcd_aio.cluster import Cluster as Cluster
    from pytest_etcd_aio.given import GivenServer as GivenServer
    from pytest_etcd_aio.proxy import Proxy as Proxy
    from pytest_etcd_aio.server import Server as Server

# pytest loads these with the plugin.
pytest_plugins = ("pytest_etcd_aio.hooks", "pytest_etcd_aio.fixtures")

_TYPES = {"Cluster": "cluster", "GivenServer": "given", "Proxy": "proxy", "Server": "server"}


def __getattr__(name: str) -> object:
    """Import the type of a fixture when a test names it."""
    if name not in _TYPES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_TYPES[name]}"), name)
