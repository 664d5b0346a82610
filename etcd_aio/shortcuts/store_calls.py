"""The calls of a store that wraps another one, such as a namespace."""

from typing import TYPE_CHECKING

from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.base.key_space import KeySpace, key_space_of
from etcd_aio.kv import KVCalls
from etcd_aio.lease import Lease, OnLost
from etcd_aio.shortcuts.client_like import Block, ClientLike
from etcd_aio.shortcuts.shortcuts import Shortcuts
from etcd_aio.types import EndpointVersions

if TYPE_CHECKING:
    from weakref import WeakSet


class StoreCalls(KVCalls, Shortcuts):
    """The calls and the shortcuts of a store that wraps another one. `do`, `scan`, `watch` and `leases` are its own.

    Closing the client ends the locks and blocks of all stores that wrap it.

    Args:
        store: the client, or a store that wraps it.
    """

    def __init__(self, store: ClientLike) -> None:
        self._store = store
        self._invoker = store._invoker

    @property
    def name(self) -> str:
        """The name of the client; empty if it has none."""
        return self._invoker.client

    @property
    def key_space(self) -> KeySpace | None:
        """Whose keys these are; see `Client.key_space`."""
        return key_space_of(self._store)

    def _blocks_to_close(self) -> "WeakSet[Block]":
        return self._store._blocks_to_close()

    def lease(
        self,
        ttl: int,
        *,
        id: int | None = None,
        adopt: bool = False,
        on_lost: OnLost = "cancel",
        timeout: Timeout = UNSET,
    ) -> Lease:
        """A lease for a block of code; see `Client.lease`. Leases have no names, so it is one of the whole cluster."""
        return self._store.lease(ttl, id=id, adopt=adopt, on_lost=on_lost, timeout=timeout)

    async def versions(self, timeout: Timeout = UNSET) -> tuple[EndpointVersions, ...]:
        """The release of etcd at each endpoint; see `Client.versions`."""
        return await self._store.versions(timeout)
