"""Watches: every change once and in order, over any number of streams."""

from etcd_aio.watch.calls import WatchCalls
from etcd_aio.watch.service import WatchService
from etcd_aio.watch.watcher import Watcher, WatchStatistics

__all__ = [
    "WatchCalls",
    "WatchService",
    "WatchStatistics",
    "Watcher",
]
