"""Outages: which watches have no server, and when those with a `max_outage` give up. Pure."""

from itertools import islice
from math import inf

from etcd_aio.watch.state import STEP, WatchState


class Outages:
    """The outages of all watches of a client.

    Attributes:
        due: an instant no later than the end of the first bounded outage, so that reading it costs the same with ten
            thousand watches; infinity if there is none.
    """

    def __init__(self) -> None:
        self.due = inf
        self._ends: dict[WatchState, float] = {}  # of the bounded outages

    def begin(self, watch: WatchState, since: float) -> None:
        """A watch has no server since then."""
        watch.outage_since = since
        longest = watch.options.max_outage
        if longest is not None:
            self._ends[watch] = end = since + longest
            self.due = min(self.due, end)

    def end(self, watch: WatchState) -> None:
        """A watch has a server, or has ended."""
        watch.outage_since = None
        if self._ends.pop(watch, None) is not None and not self._ends:
            self.due = inf

    def expired(self, now: float) -> tuple[WatchState, ...]:
        """Some of the watches that have been without a server for too long; they are returned once."""
        expired = tuple(islice((watch for watch, end in self._ends.items() if now >= end), STEP))
        for watch in expired:
            del self._ends[watch]
        self.due = min(self._ends.values(), default=inf)
        return expired
