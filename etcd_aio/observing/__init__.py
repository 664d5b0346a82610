"""Observing: what a client reports about its calls, attempts, streams, watches, leases, members and logins.

The public part is `Observer`, `CallObserver`, `ObservedClient`, the records, `add_default` and `remove_default`.
"""

from typing import TYPE_CHECKING

from etcd_aio.exports import late_names

if TYPE_CHECKING:
    from etcd_aio.observing.defaults import add_default as add_default
    from etcd_aio.observing.defaults import remove_default as remove_default
    from etcd_aio.observing.defaults import with_defaults as with_defaults
    from etcd_aio.observing.group import ObservedCall as ObservedCall
    from etcd_aio.observing.group import ObserverGroup as ObserverGroup
    from etcd_aio.observing.observer import CallObserver as CallObserver
    from etcd_aio.observing.observer import ObservedClient as ObservedClient
    from etcd_aio.observing.observer import Observer as Observer
    from etcd_aio.observing.records import AttemptEnded as AttemptEnded
    from etcd_aio.observing.records import CallOutcome as CallOutcome
    from etcd_aio.observing.records import CallStarted as CallStarted
    from etcd_aio.observing.records import EndpointChange as EndpointChange
    from etcd_aio.observing.records import LeaseChange as LeaseChange
    from etcd_aio.observing.records import LeaseEvent as LeaseEvent
    from etcd_aio.observing.records import LoginEnded as LoginEnded
    from etcd_aio.observing.records import StreamChange as StreamChange
    from etcd_aio.observing.records import StreamEvent as StreamEvent
    from etcd_aio.observing.records import WatchAdvance as WatchAdvance
    from etcd_aio.types import ConnectivityState as ConnectivityState
    from etcd_aio.types import EndpointStatistics as EndpointStatistics
    from etcd_aio.types import StreamStatistics as StreamStatistics
else:
    __getattr__, __dir__, __all__ = late_names(__name__)
