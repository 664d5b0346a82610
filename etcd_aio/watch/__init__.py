"""Watches: every change of keys once and in order, over any number of streams.

`watcher.py` is the consumer's side. `state.py` is the state machine of one watch, `resuming_stream.py` that of all
watches on a stream, `open_stream.py` that of one open stream: these are pure. `service.py` runs the stream and
background tasks; `deletion.py` waits until a key is gone.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.watch.deletion import wait_deleted as wait_deleted
    from etcd_aio.watch.limits import DEFAULT_MAX_PENDING as DEFAULT_MAX_PENDING
    from etcd_aio.watch.service import WatchService as WatchService
    from etcd_aio.watch.state import WatchOptions as WatchOptions
    from etcd_aio.watch.viewed_watcher import ViewedWatcher as ViewedWatcher
    from etcd_aio.watch.watcher import Watcher as Watcher
    from etcd_aio.watch.watcher import WatchStatistics as WatchStatistics
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
