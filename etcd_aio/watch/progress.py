"""Progress: when to ask the server how far the watches of a stream are, and for which of them an answer counts. Pure.

Theory. A progress notification for one id is about that watch. A notification for all watches (id -1) answers a
progress request, but does not say which: it counts only for the watches that the server had when it read that request,
and the server lets notifications and `created` replies overtake each other. So it counts for a watch only if the store
has moved on since that watch was created, or if every request that was sent before has been answered.

The server does not answer as long as any watch of the stream is behind, or was created from a revision that the store
has not reached, as a watch that has seen everything is. The request is repeated until it is answered, and if the first
one is not, such watches are created again from a revision that exists; events that come twice are dropped. All watches
could be created so in the first place, but then etcd serves them only after up to 0.1 s.

Releases before 3.4.25 and 3.5.8 send a notification for all at once, ahead of events that it covers. If such a stream
is lost before these come, going on behind the notification would lose them. So notifications for all count for the
consumer, but for the revision at which a watch goes on only once the member's release is known to be a later one.
"""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

from etcd_aio.watch.state import Phase, WatchState

_FIRST_WAIT: Final = 0.1  # seconds until a request is repeated: etcd serves watches that are behind as often
_LONGEST_WAIT: Final = 1.0


class ProgressRequests:
    """The progress requests on one stream.

    Args:
        asking: the watches whose consumers have asked for their progress, on this stream or before.

    Attributes:
        asking: the same.
        due: when to send a request, if any watch asks.
        is_reliable: whether notifications for all never overtake events on this stream; None before the first one.
    """

    def __init__(self, asking: Mapping[WatchState, None]) -> None:
        self.asking = asking
        self.is_reliable: bool | None = None
        self._unanswered = 0
        self.ask_now()

    @property
    def is_repeating(self) -> bool:
        """Whether the last request was not answered at once."""
        return self._wait > _FIRST_WAIT

    def ask_now(self) -> None:
        """Send a request at once: the stream is open, or another watch asks."""
        self.due = 0.0
        self._wait = _FIRST_WAIT

    def on_created(self, watch: WatchState, now: float) -> None:
        """The server has created a watch."""
        watch.older_requests = self._unanswered
        if watch.wants_progress:
            self.due = now

    def send(self, now: float) -> bool:
        """Whether to send a request now that it is due. It is repeated later, with growing pauses."""
        if not any(watch.phase is Phase.LIVE for watch in self.asking):
            self.due = inf  # until one of them is created
            return False
        self._unanswered += 1
        self.due = now + self._wait
        self._wait = min(self._wait * 2, _LONGEST_WAIT)
        return True

    def answered(self, watches: Iterable[WatchState], revision: int) -> list[WatchState]:
        """Return those of a stream's watches for which a notification for all counts."""
        counting: list[WatchState] = []
        for watch in watches:
            if revision > watch.created_revision or not watch.older_requests:
                counting.append(watch)
            else:
                watch.older_requests -= 1
        if self._unanswered:
            self._unanswered -= 1
        return counting
