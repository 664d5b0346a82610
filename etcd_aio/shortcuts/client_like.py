"""What the shortcuts need of the client that has them, or of the store that wraps one."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from etcd_aio.base.call_options import UNSET, Timeout
from etcd_aio.store import Store
from etcd_aio.types import KeyLike, OnCompaction, OnCompactionLike, WatchFilterLike
from etcd_aio.watch import DEFAULT_MAX_PENDING, Watcher

if TYPE_CHECKING:
    from weakref import WeakSet

    from etcd_aio.error_handler import Invoker
    from etcd_aio.recipes import Turnstile


class Block(Protocol):
    """A block of a layer above, which ends when the client is closed."""

    async def aclose(self) -> None:
        """End it."""
        ...


class ClientLike(Store, Protocol):
    """What the shortcuts need of the client that has them, or of the store that wraps one."""

    _invoker: "Invoker"

    def _blocks_to_close(self) -> "WeakSet[Block]":
        """The blocks that closing the client ends."""
        ...

    def _turnstile(self) -> "Turnstile":
        """The turnstile of the transactions of this store."""
        ...

    def watch(
        self,
        key: KeyLike | None = None,
        *,
        range_end: KeyLike | None = None,
        prefix: KeyLike | None = None,
        from_key: KeyLike | None = None,
        all_keys: bool = False,
        start_revision: int = 0,
        prev_kv: bool = False,
        progress_notify: bool = False,
        filters: Iterable[WatchFilterLike] = (),
        fragment: bool | None = None,
        on_compaction: OnCompactionLike = OnCompaction.RAISE,
        max_pending: int = DEFAULT_MAX_PENDING,
        max_outage: float | None = None,
        stream: str = "",
        timeout: Timeout = UNSET,
    ) -> Watcher:
        """Follow the changes of keys; with the options that `Store.watch` leaves out."""
        ...
