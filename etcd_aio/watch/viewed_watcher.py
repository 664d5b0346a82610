"""ViewedWatcher: a watch of a view of the store, such as a namespace, which shows the keys of that view."""

from dataclasses import replace
from typing import NoReturn, Self

from etcd_aio.base.call_options import Timeout
from etcd_aio.base.reprs import when_constructed
from etcd_aio.errors import EtcdError
from etcd_aio.types import WatchBatch, WatchView
from etcd_aio.watch.service import WatchService
from etcd_aio.watch.state import WatchOptions
from etcd_aio.watch.watcher import Watcher, WatchStatistics, two_tasks_error


class ViewedWatcher(Watcher):
    """A watch of a view of the store, such as a namespace.

    Args:
        views: show its batches, in this order.
    """

    __slots__ = ("_hidden", "_views")

    def __init__(
        self,
        service: WatchService,
        options: WatchOptions,
        start_revision: int,
        timeout: Timeout,
        views: tuple[WatchView, ...],
    ) -> None:
        super().__init__(service, options, start_revision, timeout)
        self._views = views
        self._hidden: WatchBatch | None = None  # taken, and not shown yet

    @when_constructed
    def __repr__(self) -> str:
        return f"<Watcher {self._views[-1].keys} {self._state.phase.value} after revision {self.revision}>"

    async def __aenter__(self) -> Self:
        try:
            return await super().__aenter__()
        except EtcdError as error:
            self._explain(error)
            raise

    def _close(self) -> None:
        super()._close()
        self._hidden = None

    async def _next_batch(self) -> WatchBatch:
        if self._is_taking:
            raise two_tasks_error()
        if self._hidden is None:
            self._hidden = await super()._next_batch()
        self._is_taking = True
        try:
            batch = self._hidden
            for view in self._views:
                batch = await view.batch(batch)
        finally:
            self._is_taking = False
        if self._is_closed:
            raise StopAsyncIteration
        self._hidden = None
        return batch

    @property
    def revision(self) -> int:
        """The last revision that was delivered completely; see `Watcher.revision`."""
        return super().revision if self._hidden is None or self._is_closed else self._before

    def statistics(self) -> WatchStatistics:
        """A snapshot of the counters."""
        found = super().statistics()
        if self._hidden is None:
            return found
        return replace(found, pending_events=found.pending_events + len(self._hidden.events))

    def _raise_end(self) -> NoReturn:
        if self._state.error is not None:
            self._explain(self._state.error)
        super()._raise_end()

    def _explain(self, error: EtcdError) -> None:
        for view in self._views:
            view.explain(error)
