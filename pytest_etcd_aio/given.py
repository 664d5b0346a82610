"""GivenServer: a running server, which `--etcd-endpoints` names and the plugin does not start."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import pytest
from anyio.from_thread import BlockingPortal

from etcd_aio import Client
from pytest_etcd_aio.access import Access

_T = TypeVar("_T")

_PATIENCE: Final = 3.0  # seconds; an endpoint that is not there is reported within 5


class GivenServer:
    """The server that `--etcd-endpoints` names. The plugin does not start, stop or break it."""

    is_private: Final = False

    def __init__(self, portal: BlockingPortal, access: Access, version: str) -> None:
        self._portal = portal
        self.access = access
        self.version = version

    def __repr__(self) -> str:
        return f"<GivenServer {', '.join(self.endpoints)}>"

    @property
    def endpoint(self) -> str:
        """The first endpoint."""
        return self.access.endpoints[0]

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints."""
        return self.access.endpoints

    def run(self, function: Callable[..., Coroutine[Any, Any, _T]], *arguments: object) -> _T:
        """Run a coroutine function in a loop of the plugin."""
        result: _T = self._portal.call(function, *arguments)
        return result

    def __getattr__(self, name: str) -> object:
        if name in {"kill", "stop", "restart", "pause", "resume", "log_tail", "data_dir"}:
            raise pytest.UsageError(f"etcd_server.{name}: the plugin does not control the server of --etcd-endpoints")
        raise AttributeError(name)


async def ask_version(access: Access) -> str:
    """The version of a server, which has to be usable.

    Raises:
        EtcdError: it is not.
    """
    async with access.client(Client, timeout=_PATIENCE, fail_fast=True) as client:
        await client.ping()
        versions = await client.versions()
    return next((each.server for each in versions if each.server), "unknown version")


def connect(portal: BlockingPortal, access: Access) -> GivenServer:
    """Look whether the server is there.

    Raises:
        EtcdError: it cannot be reached.
    """
    return GivenServer(portal, access, portal.call(ask_version, access))
