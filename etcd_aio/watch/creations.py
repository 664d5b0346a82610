"""Creations: which watch the answer to a creation is about, on one stream. Pure.

Theory. Each creation carries an id that is chosen here. etcd gives the watch that id, so the answer says which watch it
is about. Only a refusal may lack it; it is about the oldest unanswered creation, since etcd answers in order. So many
creations can be unanswered at once. Other peers choose the ids themselves: etcd's grpc-proxy does, and answers out of
order too. The first answer on a stream shows which kind the peer is, so the first creation goes alone. A peer that
chooses the ids gets one creation after the other, and each answer is about that one. The ids that are chosen here begin
above all ids that peers choose. kine refuses a creation that carries an id: the next ones on that stream carry none.
"""

from typing import Final

from etcd_aio.types import WatchReply
from etcd_aio.watch.state import WatchState

WINDOW: Final = 4096
"""Unanswered creations on a stream: 10 000 watches take three round trips."""

FIRST_ID: Final = 1 << 32
"""The first id that is chosen here. A server counts from 0 for each stream, or for its life."""


class MixedUp(Exception):  # noqa: N818 - never leaves the package
    """The peer's answer does not say which watch it is about."""


class Creations:
    """The unanswered creations.

    Args:
        is_careful: creations go one by one, whatever the peer is.

    Attributes:
        takes_ids: the peer is known to give watches the ids that are chosen here.
        sends_ids: creations carry ids; False once the peer has refused one for that.
        unanswered: the watches by their chosen ids, the oldest first; some may have ended.
    """

    def __init__(self, *, is_careful: bool = False) -> None:
        self._is_careful = is_careful
        self.takes_ids = False
        self.sends_ids = True
        self._next_id = FIRST_ID
        self.unanswered: dict[int, WatchState] = {}

    @property
    def may_begin(self) -> bool:
        """Whether another creation may be sent."""
        return len(self.unanswered) < (WINDOW if self.takes_ids and not self._is_careful else 1)

    @property
    def oldest(self) -> WatchState | None:
        """The watch whose creation has been unanswered for longest."""
        return next(iter(self.unanswered.values()), None)

    def begin(self, watch: WatchState) -> int:
        """Note that the creation of a watch is sent; returns the id that it carries, or 0 for none."""
        watch_id = self._next_id
        self._next_id += 1
        self.unanswered[watch_id] = watch
        return watch_id if self.sends_ids else 0

    def answered(self, reply: WatchReply) -> WatchState | None:
        """Remove and return the watch whose creation this answers; None if it answers none.

        Raises:
            MixedUp: the reply does not say which watch it is about.
        """
        unanswered, watch_id = self.unanswered, reply.watch_id
        oldest = next(iter(unanswered), None)
        if oldest is None:
            return None
        if watch_id in unanswered:
            self.takes_ids = True
            if watch_id != oldest:
                raise MixedUp("creations were answered out of order")
        elif not reply.canceled and watch_id >= 0 and len(unanswered) > 1:
            raise MixedUp("a creation was answered with another id than was chosen")
        return unanswered.pop(oldest)
