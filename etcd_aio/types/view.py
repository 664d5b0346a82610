"""WatchView: how a store that wraps another one shows the watches of that."""

from typing import Protocol

from etcd_aio.errors import EtcdError
from etcd_aio.types.keys import KeyRange
from etcd_aio.types.watch import WatchBatch


class WatchView(Protocol):
    """Shows the batches of one watch with other keys. Batches are never changed in place: it returns new ones."""

    @property
    def keys(self) -> KeyRange:
        """The range, as the user named it."""
        ...

    async def batch(self, batch: WatchBatch) -> WatchBatch:
        """Show a batch. It may let other tasks run in between; a batch whose showing is cancelled is shown again."""
        ...

    def explain(self, error: EtcdError) -> None:
        """Let an error name the keys as the user did. It may be called again with the same error."""
        ...
