"""Factories: fixtures of further servers and clients, for a conftest.py.

from pytest_etcd_aio import factories

etcd_old = factories.server("etcd_old", version="3.5")
old_client = factories.client("old_client", server="etcd_old", timeout=1.0)
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Unpack

import pytest

from pytest_etcd_aio.runner import loop_of
from pytest_etcd_aio.wanted import wanted_from

if TYPE_CHECKING:
    from etcd_aio import Client
    from etcd_aio.config import ClientOptions
    from pytest_etcd_aio.cluster import Cluster
    from pytest_etcd_aio.given import GivenServer
    from pytest_etcd_aio.pool import Pool, Target
    from pytest_etcd_aio.server import Server


def server(
    name: str,
    *,
    nodes: int = 1,
    version: str | None = None,
    tls: bool = False,
    auth: bool = False,
    private: bool = False,
    options: Mapping[str, object] | None = None,
) -> object:
    """A fixture of a server of its own, or of a cluster. It starts once in a run.

    Args:
        name: of the fixture.
        nodes: how many members; more than one make a `Cluster`, one a `Server`.
        version: such as "3.5" or ">=3.6"; None for any.
        tls: with TLS.
        auth: with authentication.
        private: clients of it may make calls that concern the whole cluster; keep the tests apart yourself.
        options: flags of etcd, such as `{"max_txn_ops": 10}`.

    Returns:
        object: the fixture; assign it to a name in a conftest.py.

    Raises:
        ValueError: an argument is invalid.
    """
    arguments = {"version": version, "tls": tls, "auth": auth, "private": private, "options": options, "nodes": nodes}
    wanted = wanted_from(arguments, owner=f"factory {name}")

    @pytest.fixture(scope="session", name=name)
    def made_server(_etcd_pool: "Pool") -> "Server | GivenServer | Cluster":
        """A real etcd, made by pytest_etcd_aio.factories.server."""
        return _etcd_pool.cluster(wanted) if wanted.is_cluster else _etcd_pool.server(wanted)

    return made_server


def client(name: str, /, *, server: str = "etcd_server", **options: "Unpack[ClientOptions]") -> object:
    """A fixture of a client, for async tests, in a namespace that is emptied after the test.

    Args:
        name: of the fixture.
        server: the fixture of its server.
        options: those of `Client`.

    Returns:
        object: the fixture; assign it to a name in a conftest.py.
    """

    @pytest.fixture(name=name)
    def made_client(request: pytest.FixtureRequest, _etcd_pool: "Pool") -> "Iterator[Client]":
        """A client, made by pytest_etcd_aio.factories.client."""
        from pytest_etcd_aio.guard import client_class

        target: Target = request.getfixturevalue(server)
        with _etcd_pool.namespace(target) as prefix:
            own = options.copy()
            own.setdefault("namespace", prefix)
            with loop_of(request).opened(target.access.client(client_class(target), **own)) as made:
                yield made

    return made_client
