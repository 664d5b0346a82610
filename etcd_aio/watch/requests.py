"""The messages that a client sends on a watch stream."""

from collections.abc import Mapping
from typing import Final

from etcd_aio import pb
from etcd_aio.types import WatchFilter
from etcd_aio.watch.state import WatchOptions

_WATCH_FILTERS: Final[Mapping[WatchFilter, str]] = {WatchFilter.NO_PUT: "NOPUT", WatchFilter.NO_DELETE: "NODELETE"}
"""By the names in etcd's messages."""


def watch_request(watch: WatchOptions, watch_id: int, start_revision: int, in_fragments: bool) -> "pb.WatchRequest":
    """The message that creates a watch.

    Args:
        watch: the options.
        watch_id: the id that the server is to use.
        start_revision: the first revision of interest; 0 is "from now".
        in_fragments: whether the server splits large messages.
    """
    return pb.WatchRequest(
        create_request=pb.WatchCreateRequest(
            key=watch.keys.key,
            range_end=watch.keys.range_end,
            start_revision=start_revision,
            progress_notify=watch.progress_notify,
            filters=[pb.WatchCreateRequestFilterType[_WATCH_FILTERS[filter_]] for filter_ in watch.filters],
            prev_kv=watch.prev_kv,
            watch_id=watch_id,
            fragment=in_fragments,
        )
    )


def watch_cancel_request(watch_id: int) -> "pb.WatchRequest":
    """The message that cancels a watch."""
    return pb.WatchRequest(cancel_request=pb.WatchCancelRequest(watch_id=watch_id))


def watch_progress_request() -> "pb.WatchRequest":
    """The message that requests the progress of all watches of a stream."""
    return pb.WatchRequest(progress_request=pb.WatchProgressRequest())
