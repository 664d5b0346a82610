"""GuardedClient: a client that refuses what concerns the whole cluster, since other tests use it too."""

from collections.abc import Mapping
from typing import Final, NoReturn, cast

import pytest

from etcd_aio import UNSET, Client, CompactResult, RetryMode, Timeout
from etcd_aio.admin import Auth, Cluster, Maintenance
from pytest_etcd_aio.pool import Target
from pytest_etcd_aio.wanted import private_only

HARMLESS: Final[Mapping[str, frozenset[str]]] = {
    "auth": frozenset({"authenticate", "role_get", "role_list", "status", "user_get", "user_list"}),
    "cluster": frozenset({"members"}),
    "maintenance": frozenset({"alarms", "hash", "hash_kv", "metrics", "save_snapshot", "snapshot", "status"}),
}
"""The calls of each group that change nothing."""


class GuardedClient(Client):
    """The client of a test whose server other tests use too."""

    async def compact(
        self, revision: int, *, physical: bool = False, timeout: Timeout = UNSET, retry: RetryMode | None = None
    ) -> CompactResult:
        """Refuse."""
        __tracebackhide__ = True
        _refuse("compact")

    @property
    def auth(self) -> Auth:
        """The calls that change nothing."""
        return cast("Auth", _Guarded("auth", super().auth))

    @property
    def cluster(self) -> Cluster:
        """The calls that change nothing."""
        return cast("Cluster", _Guarded("cluster", super().cluster))

    @property
    def maintenance(self) -> Maintenance:
        """The calls that change nothing."""
        return cast("Maintenance", _Guarded("maintenance", super().maintenance))


def client_class(target: Target) -> type[Client]:
    """The class of clients for a server."""
    return Client if target.is_private else GuardedClient


class _Guarded:
    """A group of calls.

    Args:
        name: of the group.
        calls: the group.
    """

    def __init__(self, name: str, calls: object) -> None:
        self._name = name
        self._calls = calls

    def __getattr__(self, name: str) -> object:
        __tracebackhide__ = True
        found: object = getattr(self._calls, name)
        if name not in HARMLESS[self._name]:
            _refuse(f"{self._name}.{name}")
        return found


def _refuse(call: str) -> NoReturn:
    __tracebackhide__ = True
    raise pytest.UsageError(private_only(f"client.{call}()"))
