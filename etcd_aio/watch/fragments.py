"""Fragments: which watches ask the server to split its large messages. Pure.

Theory. Without fragments a server joins a thousand revisions in one message. With fragments it takes time that grows
with the square of their events. So fragments are requested, unless the user decided otherwise, only on the stream that
follows one which brought a message too large to be received, and only for the watch that the message was for: its first
bytes say which. If that watch already had fragments, or must not have them, it ends, and no other. If the bytes do not
say which watch it was, all watches request fragments.
"""

from collections.abc import Iterable

from etcd_aio.watch.state import WatchState


class Fragments:
    """The watches that request fragments on the next stream."""

    def __init__(self) -> None:
        self._watches: set[WatchState] = set()
        self._is_for_all = False

    def is_requested_for(self, watch: WatchState) -> bool:
        """Whether the creation of a watch requests fragments."""
        fragment = watch.options.fragment
        return fragment if fragment is not None else self._is_for_all or watch in self._watches

    def request_for(self, watch: WatchState) -> bool:
        """Request fragments for a watch; False if it has them already, or must not have them."""
        if watch.options.fragment is not None or self.is_requested_for(watch):
            return False
        self._watches.add(watch)
        return True

    def request_for_all(self, watches: Iterable[WatchState]) -> bool:
        """Request fragments for all watches; False if that changes nothing."""
        if self._is_for_all:
            return False
        self._is_for_all = True
        return any(watch.options.fragment is None for watch in watches)

    def forget(self, watch: WatchState) -> None:
        """A watch has ended."""
        self._watches.discard(watch)

    def clear(self) -> None:
        """Request no fragments: the last stream ended for another reason."""
        self._watches.clear()
        self._is_for_all = False
