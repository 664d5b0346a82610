"""Creations: which watch the answer to a creation is about, on one stream after the other. Pure.

Knows: the ids that are chosen for watches, the creations under way. Never knows: what else is said on the stream.

Theory. Each creation carries an id of the client's choice, and etcd gives the watch that id, so that the answer says
whose it is; only a refusal may lack it, and is about the oldest creation under way, since etcd answers in order. With
that, many creations are under way at once. Others than etcd choose the ids themselves: etcd's grpc-proxy does, and
answers out of order too. The first answer on a stream shows which kind the peer is, so the first creation goes alone; a
peer with ids of its own then gets one creation after the other, and each answer is about that one. The chosen ids begin
where no peer's own ones do.
"""

from typing import Final

from etcd_aio.types import WatchReply
from etcd_aio.watch.state import WatchState

WINDOW: Final = 4096
"""Creations under way on a stream: 10 000 watches need three times the distance to the server."""

FIRST_ID: Final = 1 << 32
"""Of the ids that are chosen here. A server counts from 0 for each stream, or for its life."""


class MixedUp(Exception):  # noqa: N818 - never leaves the machine
    """The peer answered in a way that does not say which watch it is about."""


class Creations:
    """The creations under way.

    Attributes:
        is_careful: they go one by one on every stream, whatever its peer is.
        takes_ids: the peer is known to give watches the ids that are chosen here.
    """

    def __init__(self) -> None:
        self.is_careful = False
        self.takes_ids = False
        self._next_id = FIRST_ID
        self._under_way: dict[int, WatchState] = {}  # by the chosen ids, the oldest first; some may have ended

    def __len__(self) -> int:
        return len(self._under_way)

    def __contains__(self, watch: object) -> bool:
        return watch in self._under_way.values()

    @property
    def may_begin(self) -> bool:
        """Whether one more may be under way."""
        return len(self._under_way) < (WINDOW if self.takes_ids and not self.is_careful else 1)

    @property
    def oldest(self) -> WatchState | None:
        """The watch whose creation is the longest under way."""
        return next(iter(self._under_way.values()), None)

    def begin(self, watch: WatchState) -> int:
        """The creation of a watch is sent; returns the id for it."""
        watch_id = self._next_id
        self._next_id += 1
        self._under_way[watch_id] = watch
        return watch_id

    def answered(self, reply: WatchReply) -> WatchState | None:
        """The watch whose creation this answers, which is no longer under way; None if it answers none.

        Raises:
            MixedUp: that cannot be told.
        """
        under_way, watch_id = self._under_way, reply.watch_id
        oldest = next(iter(under_way), None)
        if oldest is None:
            return None
        if watch_id in under_way:
            self.takes_ids = True
            if watch_id != oldest:
                raise MixedUp("creations were answered out of order")
        elif not reply.canceled and watch_id >= 0 and len(under_way) > 1:
            raise MixedUp("a creation was answered with another id than was chosen")
        return under_way.pop(oldest)

    def forget_stream(self) -> None:
        """The stream is gone, and what is known of its peer."""
        self.takes_ids = False
        self._next_id = FIRST_ID
        self._under_way.clear()
