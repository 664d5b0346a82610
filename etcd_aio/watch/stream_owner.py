"""The surroundings of the watch stream, as the stream sees them: what it asks for and cannot do itself."""

from collections.abc import Callable
from typing import Protocol

from etcd_aio.errors import EtcdError, ServerError
from etcd_aio.watch.progress import ProgressRequests
from etcd_aio.watch.state import WatchState


class WatchStreamOwner(Protocol):
    """The methods by which a watch stream reaches its surroundings. None of them waits."""

    def wake(self) -> None:
        """Have the supervisor look at the stream in the next turn of the loop. Raises if the client cannot be used."""

    def call_soon(self, work: Callable[[], None]) -> None:
        """Call `work` in the next turn of the loop."""

    def renew_token(self, error: ServerError, watch: WatchState) -> bool:
        """A watch was refused, perhaps for the stream's token. True promises a call of `renewed` or `denied`."""
        ...

    def check_store(self, watch: WatchState) -> None:
        """A member is behind a revision that was seen before: find out the store's, then call `store_is_at`."""

    def check_progress(self, progress: ProgressRequests) -> None:
        """Find out whether the progress notifications of the open stream's member are reliable, and note it there."""

    def start_listing(self, watch: WatchState) -> None:
        """The history of a watch is compacted: list the keys, then call `listed` or `fail`."""

    def stop_listing(self, watch: WatchState) -> None:
        """A watch has ended while its keys were listed."""

    def explain(self, watch: WatchState, error: EtcdError) -> None:
        """Note on an error which watch it ends."""

    def outage_error(self) -> EtcdError:
        """The error of a watch that had no stream for longer than its `max_outage`."""
        ...
